//! Opens footers for callers with their own I/O, asynchronous clients of object stores among them: the
//! decoder says which bytes it needs, the caller gets them.

use std::io;
use std::ops::Range;

use crate::decode::decoder::Decoder;
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::source::{RangeReader, allowed};
use crate::open::tail::{self, TAIL_LEN};
use crate::options::Options;

/// A footer that the caller's I/O opens: says which bytes it needs next, until it has all of them.
///
/// ```
/// # use sawmill_footer::{FooterRequest, NextStep, Options};
/// # let file = std::fs::read("../../fixtures/foreign/pyarrow_plain.parquet")?;
/// # let get = |range: std::ops::Range<u64>| file[range.start as usize..range.end as usize].to_vec();
/// let mut request = FooterRequest::new(file.len() as u64, "s3://trips/1.parquet", &Options::new())?;
/// let footer = loop {
///     let bytes = get(request.wanted()); // or `.await`, from wherever the file is
///     match request.supply(bytes)? {
///         NextStep::Fetch(again) => request = again,
///         NextStep::Done(footer) => break footer,
///     }
/// };
/// assert_eq!(footer.num_row_groups(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FooterRequest {
    file_len: u64,
    name: String,
    options: Box<Options>,
    wanted: Range<u64>,
    /// The last bytes of the footer, once its length is known to be greater; empty before.
    suffix: Vec<u8>,
}

/// The next step once a [`FooterRequest`] has its bytes.
#[derive(Debug)]
pub enum NextStep {
    /// More bytes are needed: the footer is longer than the tail hint.
    Fetch(FooterRequest),
    /// The footer is decoded.
    Done(Box<Footer>),
}

impl FooterRequest {
    /// A request for the footer of a file of this length, called `name` in errors. Costs one fetch of
    /// [`Options::tail_hint`] bytes (64 KiB), and a second one if the footer is longer.
    ///
    /// Page indexes are not fetched, whatever the options say: see [`Footer::page_index_ranges`].
    ///
    /// # Errors
    ///
    /// The file is too short for Parquet.
    pub fn new(file_len: u64, name: &str, options: &Options) -> Result<Self> {
        let hint = (options.tail_hint as u64).max(TAIL_LEN);
        if file_len < TAIL_LEN {
            // The error for a file that is too short.
            tail::metadata_len(&[], file_len).map_err(|error| error.in_file(name))?;
        }
        let wanted = file_len.saturating_sub(hint)..file_len;
        let (name, options) = (name.to_owned(), Box::new(options.clone()));
        Ok(Self { file_len, name, options, wanted, suffix: Vec::new() })
    }

    /// The range of the file to fetch next.
    pub fn wanted(&self) -> Range<u64> {
        self.wanted.clone()
    }

    /// Takes the bytes of the wanted range. Decodes the footer if it is complete.
    ///
    /// # Errors
    ///
    /// The bytes are fewer or more than wanted, or are not a footer: see [`Footer::read`].
    pub fn supply(self, bytes: Vec<u8>) -> Result<NextStep> {
        let options = (*self.options).clone();
        self.supply_to(bytes, &mut Decoder::of_one(options))
    }

    /// Like [`FooterRequest::supply`], with the decoder's options and its knowledge of earlier footers.
    ///
    /// # Errors
    ///
    /// As for [`FooterRequest::supply`].
    pub fn supply_to(self, bytes: Vec<u8>, decoder: &mut Decoder) -> Result<NextStep> {
        let Self { file_len, name, options, wanted, suffix } = self;
        if bytes.len() as u64 != wanted.end - wanted.start {
            let (expected, found) = (wanted.end - wanted.start, bytes.len());
            let what = format!("expected {expected} bytes from byte {} on, found {found}", wanted.start);
            return Err(Error::new(what).in_file(&name).with_advice("fetch exactly the wanted range"));
        }
        let named = |error: Error| error.in_file(&name);
        if !suffix.is_empty() {
            let mut whole = bytes;
            whole
                .try_reserve_exact(suffix.len())
                .map_err(|_| named(allocate::too_little("the footer", suffix.len())))?;
            whole.extend_from_slice(&suffix);
            return done(whole, decoder, &name, file_len);
        }
        let len = tail::metadata_len(&bytes, file_len)
            .and_then(|len| allowed(len, decoder.options()))
            .map_err(named)?;
        let mut suffix = bytes;
        suffix.truncate(suffix.len() - TAIL_LEN as usize);
        // A part of the file's end if that is longer than the footer.
        match usize::try_from(len).ok().and_then(|len| suffix.len().checked_sub(len)) {
            Some(before) => {
                suffix.drain(..before);
                suffix.shrink_to_fit();
                done(suffix, decoder, &name, file_len)
            }
            None => {
                let start = file_len - TAIL_LEN - len;
                // Without a part of the footer, the next answer is read like this one.
                let end =
                    if suffix.is_empty() { file_len } else { file_len - TAIL_LEN - suffix.len() as u64 };
                Ok(NextStep::Fetch(Self { file_len, name, options, wanted: start..end, suffix }))
            }
        }
    }
}

fn done(bytes: Vec<u8>, decoder: &mut Decoder, name: &str, file_len: u64) -> Result<NextStep> {
    let footer = decoder.decode_in_file(bytes.into(), name, file_len)?;
    Ok(NextStep::Done(Box::new(footer)))
}

/// Ranges of a file that the caller has fetched: page indexes are read from them without further I/O.
#[derive(Debug, Clone, Default)]
pub struct FetchedRanges {
    file_len: u64,
    /// In ascending order of their starts.
    parts: Vec<(u64, Vec<u8>)>,
}

impl FetchedRanges {
    /// No ranges yet, of a file of this length.
    pub fn new(file_len: u64) -> Self {
        Self { file_len, parts: Vec::new() }
    }

    /// Adds the bytes from `start` on.
    pub fn add(&mut self, start: u64, bytes: Vec<u8>) {
        let place = self.parts.partition_point(|(other, _)| *other <= start);
        self.parts.insert(place, (start, bytes));
    }
}

impl RangeReader for FetchedRanges {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file_len)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::UnexpectedEof, "these bytes were not fetched");
        let place = self.parts.partition_point(|(start, _)| *start <= offset).checked_sub(1);
        let (start, bytes) = place.and_then(|place| self.parts.get(place)).ok_or_else(missing)?;
        let from = usize::try_from(offset - start).map_err(|_| missing())?;
        let found = bytes.get(from..).and_then(|rest| rest.get(..buffer.len())).ok_or_else(missing)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}
