//! Parses rows in binary COPY format and sums them as they arrive.

use std::collections::BTreeSet;

use sawmill_loader::{Block, ContentSum, Sums, Tally};
use sawmill_pgcopy::HEADER;
use sawmill_source::{Error, Kind};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::encoders::marked_rows;
use crate::verify::locate::HashRange;

/// Takes a stream of tuples in pieces of any size.
pub(crate) struct Tuples {
    columns: usize,
    /// Bytes of an incomplete tuple.
    rest: Vec<u8>,
    /// Bytes of a stream's header that have not arrived.
    header: usize,
    rows: u64,
    content_sum: ContentSum,
    /// NULLs of each column.
    nulls: Vec<u64>,
    row: Fields,
    each: Option<Vec<ContentSum>>,
    /// Hashes of rows, in a range of all hashes.
    hashes: Option<(HashRange, Vec<u64>)>,
    /// How rows are hashed.
    canonical: CanonicalRow,
}

/// The fields of the last row. Most have the same lengths as in the row before. Then their ends are known
/// before their lengths are read, and the processor need not wait for one length to find the next.
#[derive(Default)]
struct Fields {
    /// The lengths in wire format.
    lengths: Vec<[u8; 4]>,
    /// The end of each in its row.
    ends: Vec<usize>,
    /// How many of them were parsed.
    seen: usize,
    /// Whether one of them is NULL.
    null: bool,
}

/// The length of a NULL.
const NULL: [u8; 4] = (-1i32).to_be_bytes();

impl Fields {
    fn new(columns: usize) -> Self {
        Self { lengths: vec![NULL; columns], ends: vec![0; columns], seen: 0, null: false }
    }

    /// The end of the row; `None` if it is incomplete.
    fn find(&mut self, row: &[u8]) -> Option<usize> {
        let length_at = |at: usize| row.get(at..)?.first_chunk::<4>().copied();
        let (mut at, mut column) = (2, 0);
        for (length, end) in self.lengths.iter().zip(&self.ends).take(self.seen) {
            if length_at(at)? != *length {
                break;
            }
            at = *end;
            column += 1;
        }
        if column < self.lengths.len() {
            self.seen = column;
            for (known, end) in self.lengths.iter_mut().zip(&mut self.ends).skip(column) {
                *known = length_at(at)?;
                at += 4 + i32::from_be_bytes(*known).max(0) as usize;
                *end = at;
                self.seen += 1;
            }
            self.null = self.lengths.contains(&NULL);
        }
        (at <= row.len()).then_some(at)
    }
}

impl Tuples {
    /// Sums rows of this many columns; `canonical` selects the hashed bytes.
    pub(crate) fn new(columns: usize, canonical: CanonicalRow, each_column: bool) -> Self {
        Self {
            columns,
            rest: Vec::new(),
            header: 0,
            rows: 0,
            content_sum: ContentSum::default(),
            nulls: vec![0; columns],
            row: Fields::new(columns),
            each: each_column.then(|| vec![ContentSum::default(); columns]),
            hashes: None,
            canonical,
        }
    }

    /// Also collects the hashes of rows in a range.
    pub(crate) fn hashing(mut self, range: HashRange) -> Self {
        self.hashes = Some((range, Vec::new()));
        self
    }

    /// The hashes that were collected.
    pub(crate) fn into_hashes(self) -> Vec<u64> {
        self.hashes.map(|(_, hashes)| hashes).unwrap_or_default()
    }

    /// Starts a stream, with its header.
    pub(crate) fn begin(&mut self) {
        self.rest.clear();
        self.header = HEADER.len();
    }

    /// Adds the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let skip = self.header.min(bytes.len());
        self.header -= skip;
        let mut bytes = &bytes[skip..];
        // Copies only the possible rest of a tuple that began earlier.
        let mut rest = std::mem::take(&mut self.rest);
        while !rest.is_empty() && !bytes.is_empty() {
            let begun = rest.len();
            let more = bytes.len().min(begun.max(256));
            rest.extend_from_slice(&bytes[..more]);
            match self.tuple(&rest)? {
                Some(end) => {
                    bytes = &bytes[end - begun..];
                    rest.clear();
                }
                None => bytes = &bytes[more..],
            }
        }
        let taken = self.tuples(bytes)?;
        rest.extend_from_slice(&bytes[taken..]);
        self.rest = rest;
        Ok(())
    }

    /// Adds an encoded block's rows, without refused ones. Rows are counted in the row group; `first_row` is the
    /// first one of the block's unit.
    pub(crate) fn feed_without(
        &mut self,
        refused: &BTreeSet<u64>,
        first_row: u64,
        block: &Block,
    ) -> sawmill_source::Result<()> {
        let mut start = 0;
        let fed = match refused.is_empty() {
            true => self.feed(&block.bytes),
            false => marked_rows(block).try_for_each(|mark| {
                let row = &block.bytes[start..mark.end as usize];
                start = mark.end as usize;
                if refused.contains(&(first_row + u64::from(mark.row))) { Ok(()) } else { self.feed(row) }
            }),
        };
        fed.map_err(|what| Error::new(Kind::Source, what))
    }

    /// Sums all complete tuples; returns their bytes.
    fn tuples(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut taken = 0;
        while let Some(end) = self.tuple(&bytes[taken..])? {
            taken += end;
        }
        Ok(taken)
    }

    /// Adds one tuple; `None` if it is incomplete.
    fn tuple(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some((count, _)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            return Ok(Some(2));
        }
        if usize::try_from(count) != Ok(self.columns) {
            return Err(format!("a row has {count} fields instead of {}", self.columns));
        }
        let Some(end) = self.row.find(bytes) else { return Ok(None) };
        let row = self.canonical.row(&bytes[..end]);
        if self.row.null {
            for (nulls, length) in self.nulls.iter_mut().zip(&self.row.lengths) {
                *nulls += u64::from(*length == NULL);
            }
        }
        if let Some(each) = &mut self.each {
            let mut from = 2;
            for (sum, to) in each.iter_mut().zip(&self.row.ends) {
                sum.add(&row[from..*to]);
                from = *to;
            }
        }
        if let Some((range, hashes)) = &mut self.hashes {
            let hash = xxhash_rust::xxh3::xxh3_64(row);
            if range.has(hash) {
                hashes.push(hash);
            }
        }
        self.rows += 1;
        self.content_sum.add(row);
        Ok(Some(end))
    }

    pub(crate) fn into_sums(self) -> Sums {
        let non_null = self.nulls.iter().map(|nulls| self.rows - nulls).collect();
        let whole = Tally { rows: self.rows, content_sum: self.content_sum, non_null };
        Sums { whole, each: self.each.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sums_are_those_of_the_rows_however_the_stream_is_cut(
            rows in proptest::collection::vec(
                proptest::array::uniform3(prop_oneof![
                    3 => Just(Some(vec![1, 2])),
                    1 => proptest::collection::vec(any::<u8>(), 0..9).prop_map(Some),
                    1 => Just(None),
                ]),
                0..40,
            ),
            pieces in proptest::collection::vec(1..60usize, 1..9),
        ) {
            let (mut stream, mut whole) = (HEADER.to_vec(), Tally::empty(3));
            let mut each = vec![ContentSum::default(); 3];
            for row in &rows {
                let fields = row.each_ref().map(|field| match field {
                    None => NULL.to_vec(),
                    Some(bytes) => [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat(),
                });
                let bytes = [&[0, 3], fields.concat().as_slice()].concat();
                whole.rows += 1;
                whole.content_sum.add(&bytes);
                for (column, field) in fields.iter().enumerate() {
                    each[column].add(field);
                    whole.non_null[column] += u64::from(row[column].is_some());
                }
                stream.extend_from_slice(&bytes);
            }
            stream.extend_from_slice(&[0xff, 0xff]);
            let mut tuples = Tuples::new(3, CanonicalRow::default(), true);
            tuples.begin();
            let mut rest = &stream[..];
            for piece in pieces.iter().cycle() {
                let (next, behind) = rest.split_at(rest.len().min(*piece));
                tuples.feed(next).unwrap();
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            let sums = tuples.into_sums();
            prop_assert_eq!((sums.whole, sums.each), (whole, each));
        }

        #[test]
        fn bytes_that_are_no_rows_do_no_harm(
            pieces in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![any::<u8>(), 0..4u8, Just(0)], 0..40),
                0..9,
            ),
        ) {
            let mut tuples = Tuples::new(2, CanonicalRow::default(), false);
            // An error also counts as an answer.
            let _ = pieces.iter().try_for_each(|piece| tuples.feed(piece));
        }
    }

    #[test]
    fn a_row_of_another_number_of_fields_is_an_error() {
        let mut tuples = Tuples::new(2, CanonicalRow::default(), false);
        assert_eq!(tuples.feed(&[0, 1, 0]).unwrap_err(), "a row has 1 fields instead of 2");
    }
}
