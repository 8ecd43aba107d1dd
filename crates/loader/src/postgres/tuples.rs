//! Rows in binary COPY format, taken apart and summed up as they pass.

use super::copy_binary::HEADER;
use super::locate::Part;
use super::read_back::Sums;
use crate::content_sum::{ContentSum, Tally};

/// Takes a stream of tuples in pieces of any size.
pub(crate) struct Tuples {
    columns: usize,
    /// Bytes of a tuple whose end has not come yet.
    rest: Vec<u8>,
    /// Bytes of a stream's header that are still to come.
    header: usize,
    whole: Tally,
    each: Option<Vec<ContentSum>>,
    /// Hashes of rows, of a part of all hashes.
    hashes: Option<(Part, Vec<u64>)>,
}

impl Tuples {
    pub(crate) fn new(columns: usize, each_column: bool) -> Self {
        Self {
            columns,
            rest: Vec::new(),
            header: 0,
            whole: Tally::empty(columns),
            each: each_column.then(|| vec![ContentSum::default(); columns]),
            hashes: None,
        }
    }

    /// Collects the hashes of rows, too, those of one part.
    pub(crate) fn hashing(mut self, part: Part) -> Self {
        self.hashes = Some((part, Vec::new()));
        self
    }

    /// The hashes that were collected.
    pub(crate) fn into_hashes(self) -> Vec<u64> {
        self.hashes.map(|(_, hashes)| hashes).unwrap_or_default()
    }

    /// A stream begins, with its header.
    pub(crate) fn begin(&mut self) {
        self.rest.clear();
        self.header = HEADER.len();
    }

    /// The next bytes. The server sends a message a row, so that mostly nothing is kept.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let skip = self.header.min(bytes.len());
        self.header -= skip;
        let mut bytes = &bytes[skip..];
        if !self.rest.is_empty() {
            let mut rest = std::mem::take(&mut self.rest);
            rest.extend_from_slice(bytes);
            let taken = self.tuples(&rest)?;
            rest.drain(..taken);
            self.rest = rest;
            return Ok(());
        }
        let taken = self.tuples(bytes)?;
        bytes = &bytes[taken..];
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Sums up all whole tuples; returns their bytes.
    fn tuples(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut taken = 0;
        while let Some(end) = self.tuple(&bytes[taken..])? {
            taken += end;
        }
        Ok(taken)
    }

    /// One tuple, `None` when its end is missing.
    fn tuple(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some((count, _)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            return Ok(Some(2));
        }
        if usize::try_from(count) != Ok(self.columns) {
            return Err(format!("a row has {count} fields instead of {}", self.columns));
        }
        let mut at = 2;
        for _ in 0..self.columns {
            let Some((length, _)) = bytes.get(at..).and_then(|rest| rest.split_first_chunk::<4>()) else {
                return Ok(None);
            };
            at += 4 + i32::from_be_bytes(*length).max(0) as usize;
        }
        if bytes.len() < at {
            return Ok(None);
        }
        let mut field = 2;
        for column in 0..self.columns {
            let mut length = [0; 4];
            length.copy_from_slice(&bytes[field..field + 4]);
            let length = i32::from_be_bytes(length);
            let end = field + 4 + length.max(0) as usize;
            self.whole.non_null[column] += u64::from(length >= 0);
            if let Some(each) = &mut self.each {
                each[column].add(&bytes[field..end]);
            }
            field = end;
        }
        if let Some((part, hashes)) = &mut self.hashes {
            let hash = xxhash_rust::xxh3::xxh3_64(&bytes[..at]);
            if part.has(hash) {
                hashes.push(hash);
            }
        }
        self.whole.rows += 1;
        self.whole.content_sum.add(&bytes[..at]);
        Ok(Some(at))
    }

    pub(crate) fn into_sums(self) -> Sums {
        Sums { whole: self.whole, each: self.each.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_does_not_depend_on_how_the_stream_is_cut() {
        let mut stream = HEADER.to_vec();
        for row in 0..5u8 {
            stream.extend_from_slice(&[0, 2, 0, 0, 0, 1, row, 0xff, 0xff, 0xff, 0xff]);
        }
        stream.extend_from_slice(&[0xff, 0xff]);
        let sums = |size: usize| {
            let mut tuples = Tuples::new(2, true);
            tuples.begin();
            stream.chunks(size).for_each(|piece| tuples.feed(piece).unwrap());
            tuples.into_sums()
        };
        let whole = sums(stream.len());
        assert_eq!((whole.whole.rows, whole.whole.non_null.as_slice()), (5, [5, 0].as_slice()));
        for size in [1, 2, 7, 20] {
            assert_eq!(sums(size).whole, whole.whole);
            assert_eq!(sums(size).each, whole.each);
        }
    }
}
