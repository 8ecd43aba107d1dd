//! The byte layout of a saved index:
//!
//! ```text
//! magic (8) | footer length (8) | checksum of the footer (8) | columns (8) | row groups (8) | offset of the schema (8)
//! | locators (8 each, row group by row group) | checksums of the chunks' structs (4 each) | schema's list as in the footer
//! | checksum of everything before (8)
//! ```

use std::path::Path;

use crate::error::Error;
use crate::open::buffer::FooterBytes;
use crate::open::source::{self, RangeReader};
use crate::saved_index::index::{ChunkSums, FooterIndex};
use crate::saved_index::sum;
use crate::thrift::cursor::{Cursor, STRUCT};

/// The first bytes of an index of any version, and the current version.
pub(crate) const MAGIC: [u8; 7] = *b"SAWFIDX";
const VERSION: u8 = b'4';

/// The number of bytes before the locators.
const HEAD: usize = 48;

/// The sizes in bytes of a locator, of a chunk's checksum and of the final checksum.
const LOCATOR: usize = 8;
const CHUNK_SUM: usize = 4;
const SUM: usize = 8;

impl FooterIndex {
    /// The index as bytes to save.
    ///
    /// Costs a copy: twelve bytes a chunk and the schema.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sums = self.locators.len() / LOCATOR * CHUNK_SUM;
        let len = HEAD + self.locators.len() + sums + self.schema_bytes.len() + SUM;
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(VERSION);
        for number in [self.footer_len, self.sum, self.columns as u64, self.row_groups as u64, self.schema_at]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.locators.as_slice());
        match &self.chunk_sums {
            ChunkSums::Kept(sums) => bytes.extend_from_slice(sums.as_slice()),
            ChunkSums::OfFooter(footer) => self.chunk_sums_of(footer.as_slice(), &mut bytes),
        }
        bytes.extend_from_slice(self.schema_bytes.as_slice());
        let sum = sum::of(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Appends the checksums of all chunks of the indexed footer.
    fn chunk_sums_of(&self, footer: &[u8], bytes: &mut Vec<u8>) {
        for chunk in 0..self.columns * self.row_groups {
            let place = self.place(chunk / self.columns, chunk % self.columns).unwrap_or_default();
            let start = place.at as usize;
            let mut end = start + place.len as usize;
            if place.len == 0 {
                let mut cursor = Cursor::new(footer, start);
                // The chunk was walked when the index was built.
                if cursor.skip(STRUCT).is_ok() {
                    end = cursor.at;
                }
            }
            let sum = sum::of_chunk(footer.get(start..end).unwrap_or_default());
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
    }

    /// Whether a file starts like an index of any version, complete or damaged. Such a file may be
    /// overwritten.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn is_kept_in(path: impl AsRef<Path>) -> Result<bool, Error> {
        let path = path.as_ref();
        let (file, len) = source::open_regular(path)?;
        let mut start = [0; MAGIC.len()];
        if len < start.len() as u64 {
            return Ok(false);
        }
        let reading = |error| Error::io("reading the index", &error).in_path(path);
        file.read_exact_at(0, &mut start).map_err(reading)?;
        Ok(start == MAGIC)
    }

    /// Opens the index in these saved bytes, which it shares.
    ///
    /// Costs a checksum over the bytes, and the schema's decoding.
    ///
    /// # Errors
    ///
    /// The bytes are not an index, have another version, or were damaged after they were saved.
    pub fn from_bytes(bytes: impl Into<FooterBytes>) -> Result<Self, Error> {
        let shared = bytes.into();
        let bytes = shared.as_slice();
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err(no_index()) };
        match rest.first() {
            Some(&VERSION) => {}
            Some(version) => return Err(other_version(*version)),
            None => return Err(damaged("expected a complete index of a footer, found a part of one")),
        }
        let whole = |found: Option<FooterBytes>| {
            found.ok_or_else(|| damaged("expected a complete index of a footer, found a part of one"))
        };
        let end = bytes.len().saturating_sub(SUM);
        let (kept, expected) = bytes.split_at(end);
        if end < HEAD || expected.first_chunk().map(|sum| u64::from_le_bytes(*sum)) != Some(sum::of(kept)) {
            return Err(damaged(
                "expected an index whose checksum matches its bytes, found another checksum",
            ));
        }
        let number =
            |at: usize| kept.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |n| u64::from_le_bytes(*n));
        let [footer_len, sum, columns, row_groups, schema_at] = [8, 16, 24, 32, 40].map(number);
        // With a correct checksum this cannot fail, but numbers are checked all the same.
        let chunks = columns.checked_mul(row_groups).and_then(|count| usize::try_from(count).ok());
        let sums_at = chunks.and_then(|count| count.checked_mul(LOCATOR)?.checked_add(HEAD));
        let schema_start =
            sums_at.zip(chunks).and_then(|(at, count)| count.checked_mul(CHUNK_SUM)?.checked_add(at));
        let slice = |start: Option<usize>, end: Option<usize>| shared.slice(start?..end?);
        Ok(Self {
            footer_len,
            sum,
            columns: usize::try_from(columns).map_err(|_| no_index())?,
            row_groups: usize::try_from(row_groups).map_err(|_| no_index())?,
            schema_at,
            locators: whole(slice(Some(HEAD), sums_at))?,
            chunk_sums: ChunkSums::Kept(whole(slice(sums_at, schema_start))?),
            schema: std::sync::OnceLock::new(),
            schema_bytes: whole(slice(schema_start, Some(end)))?,
        })
    }
}

/// What to do about an index that cannot be used.
pub(crate) const WRITE_AGAIN: &str =
    "write the index again from the file: `sawmill footer FILE --save-index INDEX`, or Footer::index_bytes";

pub(crate) fn no_index() -> Error {
    Error::new("expected an index of a footer, found other bytes").with_advice(WRITE_AGAIN)
}

fn damaged(what: &str) -> Error {
    Error::new(what).with_advice(format!("the index is damaged or cut off: {WRITE_AGAIN}"))
}

fn other_version(found: u8) -> Error {
    let (expected, found) = (char::from(VERSION), found.escape_ascii());
    Error::new(format!("expected an index of version {expected}, found one of version {found}"))
        .with_advice(format!("another release of Sawmill wrote the index: {WRITE_AGAIN}"))
}
