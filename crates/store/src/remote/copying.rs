//! Copies whole objects, several ranges at a time.

use std::collections::VecDeque;
use std::io::{self, Write};

use futures_util::StreamExt;
use object_store::GetOptions;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::{Pending, Version};
use crate::remote::client::{Client, path_of, version_of};
use crate::remote::faults::fault;

/// The bytes of a request.
const PIECE: u64 = 8 << 20;
/// How often a transfer that ends early is begun.
const TRANSFERS: usize = 4;
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

/// The same from a server that does not answer requests for ranges: with one request. If a transfer ends early,
/// the next one skips the bytes already written, unless the object has changed.
fn stream(client: &Client, url: &ObjectUrl, to: &mut dyn Write) -> Result<(), Error> {
    let path = path_of(url)?;
    let (mut version, mut written) = (None, 0_u64);
    client.wait(async {
        for _ in 0..TRANSFERS {
            let answer = client.store.get_opts(&path, GetOptions::default()).await;
            let answer = answer.map_err(|error| fault(url, &error))?;
            let (now, length) = (version_of(&answer.meta), answer.range.end - answer.range.start);
            if *version.get_or_insert_with(|| now.clone()) != now {
                return Err(Error::new(Kind::Changed, "the object changed while it was read")
                    .at(url.to_string())
                    .advise("run the command again when it no longer changes"));
            }
            let (mut parts, mut read) = (answer.into_stream(), 0);
            while let Some(Ok(part)) = parts.next().await {
                let known =
                    usize::try_from(written.saturating_sub(read)).unwrap_or(usize::MAX).min(part.len());
                read += part.len() as u64;
                let new = part.get(known..).unwrap_or_default();
                to.write_all(new).map_err(|error| not_stored(url, &error))?;
                written = written.max(read);
            }
            client.count(read);
            if read == length {
                return Ok(());
            }
            // The object could not be distinguished from another one.
            if version == Some(Version::Unknown) {
                break;
            }
        }
        Err(Error::new(Kind::Unavailable, "the transfer ended early, again and again")
            .at(url.to_string())
            .advise("run the command again"))
    })?
}

fn not_stored(url: &ObjectUrl, error: &io::Error) -> Error {
    Error::new(Kind::Unavailable, format!("storing a copy of the object failed: {error}"))
        .at(url.to_string())
        .advise("free some space, or set TMPDIR")
}
