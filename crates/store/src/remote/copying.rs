//! Copies whole objects, several ranges at a time.

use std::collections::VecDeque;
use std::io::{self, Write};

use futures_util::StreamExt;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::Pending;
use crate::remote::client::{Client, path_of};
use crate::remote::faults::fault;

/// The bytes of a request.
const PIECE: u64 = 8 << 20;
/// How many requests are under way.
const REQUESTS: usize = 4;

/// Writes all bytes of an object to `to`, in their order.
pub(super) fn copy(client: &Client, url: &ObjectUrl, to: &mut dyn Write) -> Result<(), Error> {
    let object = match client.open(url, 1) {
        Ok((object, _)) => object,
        Err(error) if error.kind() == Kind::NoRanges => return stream(client, url, to),
        Err(error) => return Err(error),
    };
    let mut ranges = (0..object.size().div_ceil(PIECE)).map(|nth| {
        let start = nth * PIECE;
        start..object.size().min(start + PIECE)
    });
    let mut pending: VecDeque<Pending> =
        ranges.by_ref().take(REQUESTS).map(|range| object.start(range)).collect();
    while let Some(piece) = pending.pop_front() {
        let bytes = piece.wait()?;
        pending.extend(ranges.next().map(|range| object.start(range)));
        to.write_all(&bytes).map_err(|error| not_stored(url, &error))?;
    }
    Ok(())
}

/// The same from a server that does not answer requests for ranges: with one request.
fn stream(client: &Client, url: &ObjectUrl, to: &mut dyn Write) -> Result<(), Error> {
    let path = path_of(url)?;
    client.wait(async {
        let answer = client.store.get_opts(&path, Default::default()).await;
        let answer = answer.map_err(|error| fault(url, &error))?;
        let length = answer.range.end - answer.range.start;
        let (mut parts, mut read) = (answer.into_stream(), 0);
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| fault(url, &error))?;
            read += part.len() as u64;
            to.write_all(&part).map_err(|error| not_stored(url, &error))?;
        }
        client.count(read);
        match read == length {
            true => Ok(()),
            false => Err(Error::new(Kind::Unavailable, "the transfer ended early")
                .at(url.to_string())
                .advise("run the command again")),
        }
    })?
}

fn not_stored(url: &ObjectUrl, error: &io::Error) -> Error {
    Error::new(Kind::Unavailable, format!("storing a copy of the object failed: {error}"))
        .at(url.to_string())
        .advise("free some space, or set TMPDIR")
}
