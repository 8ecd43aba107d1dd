//! Adds up the bytes of lists whose values are places in a dictionary: the longest text and the longest list may be in
//! different rows.
//!
//! Runs are added as a whole, so that a few bytes that claim many values cost no time.
//!
//! Source: the [encodings of the format](https://parquet.apache.org/docs/file-format/data-pages/encodings/).

use sawmill_footer::{ChunkPage, Encoding};

use crate::pages::levels::{self, Levels};
use crate::pages::numbers::{Numbers, bits};

/// The bits of the widest place in a dictionary.
const MAX_WIDTH: usize = 32;

/// The bytes of the rows of a page, decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowBytes {
    /// The most bytes of a row, with those of earlier pages.
    pub largest: u64,
    /// How many rows had begun in the page when the largest was reached, if that was looked at.
    pub begun: Option<u64>,
    /// The bytes of the last row, which may go on in the next page.
    pub last: u64,
}

impl RowBytes {
    /// The bytes of rows of which no value is longer than this. The first may have `open` bytes of earlier pages.
    pub(crate) fn at_most(longest: u64, levels: Levels, open: u64) -> Self {
        let here = levels.longest_row.max(1).min(levels.values).saturating_mul(longest);
        let largest = open.saturating_add(here);
        Self { largest, begun: None, last: if levels.rows == 0 { largest } else { here } }
    }

    /// The bytes of the rows of a page, given the lengths of the dictionary's values. `body` has the page's levels, and
    /// `values` what follows them, both decompressed. `None` if they cannot be decoded.
    pub(crate) fn summed(
        page: &ChunkPage,
        max_levels: [u32; 2],
        (body, values): (&[u8], &[u8]),
        lengths: &[u32],
        open: u64,
    ) -> Option<Self> {
        let mut left = u64::try_from(page.num_values).ok()?;
        let [repetition, definition] = levels::places(page, left, max_levels, body).ok()?;
        let [max_definition, max_repetition] = max_levels;
        let [of_definition, of_repetition] = levels::encodings(page);
        let levels_of = |place, max, encoding| Some(Runs::of_levels(body.get(place)?, max, encoding));
        let mut repetitions = levels_of(repetition, max_repetition, of_repetition)?;
        let mut definitions = levels_of(definition, max_definition, of_definition)?;
        let (width, values) = values.split_first().unwrap_or((&0, &[]));
        let mut places = Runs::new(values, usize::from(*width));
        let (mut found, mut rows) = (Self { largest: open, begun: Some(0), last: open }, 0_u64);
        while left > 0 {
            let ((repetition, repeated), (definition, defined)) = (repetitions.peek()?, definitions.peek()?);
            let (mut len, mut length) = (left.min(repeated).min(defined), 0);
            if definition == max_definition {
                let (place, times) = places.peek()?;
                length = u64::from(*lengths.get(place as usize)?);
                len = len.min(times);
                places.left -= len;
            }
            repetitions.left -= len;
            definitions.left -= len;
            left -= len;
            if repetition == 0 {
                rows += len;
                found.last = length;
            } else {
                found.last = found.last.saturating_add(length.saturating_mul(len));
            }
            if found.last > found.largest {
                (found.largest, found.begun) = (found.last, Some(rows));
            }
        }
        Some(found)
    }
}

/// Numbers in runs of one and in packed ones.
struct Runs<'b> {
    numbers: Numbers<'b>,
    width: usize,
    /// How many numbers of the run are to come.
    left: u64,
    /// The number of the run; or the packed ones, and how many there were.
    number: u32,
    packed: Option<(&'b [u8], u64)>,
}

impl<'b> Runs<'b> {
    fn new(bytes: &'b [u8], width: usize) -> Self {
        // Numbers of no bits are all 0.
        let left = if width == 0 { u64::MAX } else { 0 };
        Self { numbers: Numbers(bytes), width, left, number: 0, packed: None }
    }

    fn of_levels(bytes: &'b [u8], max: u32, encoding: Encoding) -> Self {
        let mut runs = Self::new(bytes, levels::width(max));
        if encoding == Encoding::BitPacked && runs.width > 0 {
            runs.pack(bytes);
        }
        runs
    }

    fn pack(&mut self, bytes: &'b [u8]) {
        let len = bytes.len() as u64 * 8 / self.width.max(1) as u64;
        (self.left, self.packed) = (len, Some((bytes, len)));
    }

    /// The next number and how often it comes; `left` is then to be lowered by how many are taken. `None` at the end.
    fn peek(&mut self) -> Option<(u32, u64)> {
        while self.left == 0 {
            self.next_run()?;
        }
        let Some((bytes, len)) = self.packed else { return Some((self.number, self.left)) };
        Some((bits(bytes, (len - self.left) * self.width as u64, self.width), 1))
    }

    fn next_run(&mut self) -> Option<()> {
        if self.width > MAX_WIDTH {
            return None;
        }
        let run = self.numbers.varint()?;
        if run & 1 > 0 {
            // Some writers cut off the last group of eight.
            let size = usize::try_from((run >> 1).saturating_mul(self.width as u64)).unwrap_or(usize::MAX);
            let packed = self.numbers.take(size.min(self.numbers.left()))?;
            self.pack(packed);
        } else {
            let stored = self.numbers.take(self.width.div_ceil(8))?;
            self.number = stored.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
            (self.left, self.packed) = (run >> 1, None);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::limits::tests::page;
    use sawmill_footer::PageType;

    /// The lengths of a dictionary's texts.
    const LENGTHS: [u32; 4] = [5, 7, 1000, 1];

    /// The rows of a page of five texts with these runs of levels, and these of places in the dictionary.
    fn summed(repetition: &[u8], definition: &[u8], places: &[u8], open: u64) -> Option<RowBytes> {
        let levels = |runs: &[u8]| [&(runs.len() as u32).to_le_bytes(), runs].concat();
        let body = [levels(repetition), levels(definition)].concat();
        RowBytes::summed(&page(PageType::DataPage, 100, 5), [1, 1], (&body, places), &LENGTHS, open)
    }

    #[test]
    fn the_largest_row_is_the_one_whose_own_texts_are_the_most() {
        // The places 0, 1, 2, 3 and 0 in two bits each, packed.
        let (all, places) = ([10, 1], [2, 3, 0b1110_0100, 0]);
        let found = |largest, begun, last| Some(RowBytes { largest, begun: Some(begun), last });
        assert_eq!(summed(&[3, 0b10110], &all, &places, 9), found(1012, 1, 6), "three texts, and two");
        assert_eq!(summed(&[3, 0b11011], &all, &places, 9), found(1006, 1, 1006), "the first row goes on");
        assert_eq!(summed(&[3, 0b11011], &all, &places, 2000), found(2012, 0, 1006), "and is the largest");
        let nulls = [3, 0b11001];
        assert_eq!(summed(&[3, 0b10110], &nulls, &places, 0), found(1007, 2, 1007), "NULL has no text");
        assert_eq!(summed(&[2, 0, 8, 1], &all, &[2, 10, 2], 0), found(5000, 1, 5000), "a run of one text");
        assert_eq!(summed(&[10, 0], &all, &[2, 10, 2], 0), found(1000, 5, 1000), "in five rows");
        assert_eq!(summed(&[10, 0], &all, &[0], 0), found(5, 5, 5), "places of no bits");
    }

    #[test]
    fn rows_that_cannot_be_decoded_are_not_added_up() {
        assert_eq!(summed(&[10, 0], &[10, 1], &[3, 10, 4], 0), None, "a place behind the dictionary");
        assert_eq!(summed(&[10, 0], &[10, 1], &[2, 8, 1], 0), None, "four texts of five");
        assert_eq!(summed(&[10, 0], &[10, 1], &[2, 8], 0), None, "half a run");
        assert_eq!(summed(&[10, 0], &[10, 1], &[33, 10, 0, 0, 0, 0, 0], 0), None, "more bits than there are");
    }
}
