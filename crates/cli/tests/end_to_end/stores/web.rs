//! A web server in the test process: it serves a folder with or without ranges, counts requests, and answers
//! some of them wrongly. Reads of S3 are the same requests, so it also replaces a store with faults.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It is answered after this many milliseconds.
    Late(u64),
    /// Its body comes at a few megabytes a second.
    Trickling,
    /// It is refused with this status and body.
    Refused(u16, &'static str),
    /// It is sent to another address.
    Moved(String),
    /// The connection breaks after this many bytes of the body.
    CutAfter(usize),
    /// The connection breaks at once.
    Reset,
    /// The answer has fewer bytes than the range, and says so in `Content-Length` alone.
    Short,
    /// The answer has another entity tag.
    OtherTag,
    /// The whole file comes, whatever range was asked for.
    NoRange,
}

/// A request for bytes.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub range: Option<String>,
    pub if_match: Option<String>,
    /// Whether it carries a signature or a token.
    pub authorized: bool,
    /// The bytes that the range names, if it has both ends.
    pub bytes: u64,
}

type Decide = dyn Fn(&Asked, usize) -> Fate + Send + Sync;

/// The server. It serves until the process ends.
pub struct Web {
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Web {
    /// Serves a folder; `decide` gets each request and how many came before it.
    pub fn serve(folder: &Path, decide: impl Fn(&Asked, usize) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (folder, decide): (PathBuf, Arc<Decide>) = (folder.to_owned(), Arc::new(decide));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (folder, decide, log) = (folder.clone(), Arc::clone(&decide), Arc::clone(&log));
                // A client that goes away ends its own connection alone.
                std::thread::spawn(move || stream.map(|stream| connection(&stream, &folder, &*decide, &log)));
            }
        });
        Self { address, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn connection(stream: &TcpStream, folder: &Path, decide: &Decide, log: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut words = head.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let header = |name: &str| {
            let found = head.lines().find_map(|line| {
                line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            });
            found.map(|value| value.trim().to_owned())
        };
        let asked = Asked {
            path: target.split('?').next()?.trim_start_matches('/').to_owned(),
            bytes: header("range").and_then(|range| length_of(&range)).unwrap_or(0),
            range: header("range"),
            if_match: header("if-match"),
            authorized: header("authorization").is_some(),
        };
        let before = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        let fate = decide(&asked, before);
        answer(stream, folder, &method, &asked, fate)?;
    }
}

fn length_of(range: &str) -> Option<u64> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some(end.parse::<u64>().ok()? + 1 - start.parse::<u64>().unwrap_or(1))
}

/// Answers one request; `None` if the connection ends with it.
fn answer(mut stream: &TcpStream, folder: &Path, method: &str, asked: &Asked, fate: Fate) -> Option<()> {
    match fate {
        Fate::Reset => return None,
        Fate::Late(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        Fate::Refused(status, body) => {
            let head = format!("HTTP/1.1 {status} refused\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            return stream.write_all(head.as_bytes()).ok();
        }
        Fate::Moved(ref to) => {
            let head =
                format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            return stream.write_all(head.as_bytes()).ok();
        }
        _ => {}
    }
    let Ok(bytes) = std::fs::read(folder.join(&asked.path)) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    };
    let tag = match fate {
        Fate::OtherTag => "\"another\"".to_owned(),
        _ => format!("\"{:x}\"", xxhash_rust::xxh3::xxh3_64(&bytes)),
    };
    if asked.if_match.as_ref().is_some_and(|wanted| *wanted != tag) {
        return stream.write_all(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let mut head = format!("ETag: {tag}\r\nLast-Modified: Wed, 01 Jan 2020 00:00:00 GMT\r\n");
    let range = asked.range.as_ref().filter(|_| !matches!(fate, Fate::NoRange));
    let body = match range {
        None => {
            head.insert_str(0, "HTTP/1.1 200 OK\r\n");
            &bytes[..]
        }
        Some(range) => {
            let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
            let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
                (Ok(start), Ok(end)) => (start, (end + 1).min(bytes.len())),
                (Ok(start), Err(_)) => (start, bytes.len()),
                (Err(_), end) => (bytes.len().saturating_sub(end.ok()?), bytes.len()),
            };
            head.insert_str(0, "HTTP/1.1 206 Partial Content\r\n");
            write!(head, "Content-Range: bytes {start}-{}/{}\r\n", end - 1, bytes.len()).unwrap();
            &bytes[start..end]
        }
    };
    let body = if matches!(fate, Fate::Short) { &body[..body.len() / 2] } else { body };
    write!(head, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(head.as_bytes()).ok()?;
    if method == "HEAD" {
        return Some(());
    }
    match fate {
        Fate::CutAfter(few) if few < body.len() => {
            let _ = stream.write_all(&body[..few]);
            None
        }
        Fate::Trickling => body.chunks(8 << 10).try_for_each(|piece| {
            std::thread::sleep(Duration::from_millis(2));
            stream.write_all(piece).ok()
        }),
        _ => stream.write_all(body).ok(),
    }
}
