//! One request: keep-alive, pipelining, chunked and gzip bodies, the content length limit.

use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::Ordering::Relaxed;

use crate::cluster::Shared;

pub(super) struct Request {
    pub(super) schema: String,
    pub(super) authorization: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) target: String,
    /// The client closes the connection afterwards.
    pub(super) close: bool,
}

/// Why a request was not read.
pub(super) enum Unread {
    /// The connection has ended, or does not carry HTTP.
    Ended,
    /// Its body exceeds `http.max_content_length`.
    TooLarge,
}

/// How a body is sent.
#[derive(Default)]
struct Transfer {
    length: usize,
    chunked: bool,
    gzip: bool,
}

/// The next request.
pub(super) fn read<S: Read>(stream: &mut BufReader<S>, shared: &Shared) -> Result<Request, Unread> {
    let (mut request, transfer) = head(stream).ok_or(Unread::Ended)?;
    let most = shared.max_content_length.load(Relaxed);
    if transfer.length > most {
        return Err(Unread::TooLarge);
    }
    request.body = if transfer.chunked {
        chunks(stream, most)?
    } else {
        let mut body = vec![0; transfer.length];
        stream.read_exact(&mut body).map_err(|_| Unread::Ended)?;
        body
    };
    if transfer.gzip {
        request.body = inflated(&request.body, most)?;
        shared.compressed.fetch_add(1, Relaxed);
    }
    Ok(request)
}

/// The request line and the headers.
fn head<S: Read>(stream: &mut BufReader<S>) -> Option<(Request, Transfer)> {
    let mut line = String::new();
    if stream.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (_, target) = (words.next()?, words.next()?.to_owned());
    let mut request =
        Request { schema: "doc".into(), authorization: None, body: Vec::new(), target, close: false };
    let mut transfer = Transfer::default();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            return Some((request, transfer));
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => transfer.length = value.parse::<usize>().ok()?,
            "transfer-encoding" => transfer.chunked = value == "chunked",
            "content-encoding" => transfer.gzip = value == "gzip",
            "default-schema" => request.schema = value.to_owned(),
            "authorization" => request.authorization = Some(value.to_owned()),
            "connection" => request.close = value == "close",
            _ => {}
        }
    }
}

/// A body in chunks of at most `most` bytes together.
fn chunks<S: Read>(stream: &mut BufReader<S>, most: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).map_err(|_| Unread::Ended)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(|_| Unread::Ended)?;
        let start = body.len();
        if size > most - start {
            return Err(Unread::TooLarge);
        }
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..]).map_err(|_| Unread::Ended)?;
        stream.read_line(&mut line).map_err(|_| Unread::Ended)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn inflated(compressed: &[u8], most: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    let limited = flate2::read::GzDecoder::new(compressed).take(most as u64 + 1).read_to_end(&mut body);
    match limited {
        Ok(_) if body.len() > most => Err(Unread::TooLarge),
        Ok(_) => Ok(body),
        Err(_) => Err(Unread::Ended),
    }
}
