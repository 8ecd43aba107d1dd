//! Checks the levels of a data page: decoders take some that are cut short for nulls, and some above the maximum for
//! values.
//!
//! Only runs are walked, and of bit-packed levels each is compared; no value is decoded.
//!
//! Source: the [encodings of the format](https://parquet.apache.org/docs/file-format/data-pages/encodings/).

use std::borrow::Cow;
use std::ops::Range;

use sawmill_footer::{ChunkPage, Encoding, PageType};

use crate::pages::numbers::Numbers;

/// The bytes of the length before levels in a page of version 1.
const PREFIX: usize = 4;

/// The widest levels that are checked; the format's readers count them in 16 bits.
const MAX_WIDTH: usize = 16;

/// What the levels of a page tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    /// How many values are not NULL.
    pub values: u64,
    /// How many rows begin in the page.
    pub rows: u64,
    /// Whether its first value begins a row.
    pub begins_row: bool,
    /// How many values a row has at most in the page, also one that began before or goes on behind it; of less than
    /// nine the number may be higher.
    pub longest_row: u64,
    /// Where the values begin in the page's body.
    pub end: usize,
}

/// Checks the levels of a page, given the highest definition and repetition levels. `start` returns at least as many of
/// the body's first bytes as it is asked for, before compression, of which there are `len`; if it cannot, the levels are
/// unknown.
pub(crate) fn check<'b>(
    page: &ChunkPage,
    max_levels: [u32; 2],
    len: usize,
    start: impl Fn(usize) -> Option<Cow<'b, [u8]>>,
) -> Result<Option<Levels>, String> {
    let count = u64::try_from(page.num_values).unwrap_or(0);
    let mut known = Cow::Borrowed(&[][..]);
    let mut needed = usual_size(count, max_levels).min(len);
    loop {
        if needed > known.len() {
            match start(needed).filter(|start| start.len() >= needed) {
                Some(more) => known = more,
                None => return Ok(None),
            }
        }
        let places = places(page, count, max_levels, &known)?;
        let end = places[1].end;
        if end > len {
            return Err(format!(
                "expected the levels within the page's {len} bytes, found that they end at {end}"
            ));
        }
        if end <= known.len() {
            return counted(page, count, max_levels, &known, places).map(Some);
        }
        needed = end;
    }
}

/// The bytes that writers use for levels at most, which may be less than those of a page.
fn usual_size(count: u64, max_levels: [u32; 2]) -> usize {
    let of_levels = |max: u32| match width(max) as u64 {
        0 => 0,
        bits => (count.saturating_mul(bits) / 8).saturating_add(count / 256 + 16),
    };
    let [definition, repetition] = max_levels.map(of_levels);
    usize::try_from(definition.saturating_add(repetition)).unwrap_or(usize::MAX)
}

/// The bits of a level.
pub(crate) fn width(max: u32) -> usize {
    (u32::BITS - max.leading_zeros()) as usize
}

/// Where the repetition and the definition levels are in a body, of which `known` is the start. If that does not reach
/// to the end of both, they may end further on.
pub(crate) fn places(
    page: &ChunkPage,
    count: u64,
    [definition, repetition]: [u32; 2],
    known: &[u8],
) -> Result<[Range<usize>; 2], String> {
    if page.page_type == PageType::DataPageV2 {
        let (middle, end) = (page.repetition_size as usize, page.levels_size as usize);
        return Ok([0..middle.min(end), middle.min(end)..end]);
    }
    let place = |at: usize, max: u32, encoding: Encoding| match encoding {
        _ if max == 0 => Ok(at..at),
        Encoding::Rle => {
            let size = known.get(at..).and_then(|rest| rest.first_chunk());
            let size = size.map_or(0, |size| u32::from_le_bytes(*size) as usize);
            let from = at.saturating_add(PREFIX);
            Ok(from..from.saturating_add(size))
        }
        Encoding::BitPacked => {
            let size = count.saturating_mul(width(max) as u64).div_ceil(8);
            Ok(at..at.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)))
        }
        other => Err(format!("expected levels in RLE or BIT_PACKED, found the encoding {}", other.number())),
    };
    let [of_definition, of_repetition] = page.level_encodings;
    let repetition = place(0, repetition, of_repetition)?;
    let definition = place(repetition.end, definition, of_definition)?;
    Ok([repetition, definition])
}

/// How the definition and the repetition levels are encoded.
pub(crate) fn encodings(page: &ChunkPage) -> [Encoding; 2] {
    match page.page_type {
        PageType::DataPageV2 => [Encoding::Rle; 2],
        _ => page.level_encodings,
    }
}

/// Walks the levels in these places.
fn counted(
    page: &ChunkPage,
    count: u64,
    [max_definition, max_repetition]: [u32; 2],
    body: &[u8],
    [repetition, definition]: [Range<usize>; 2],
) -> Result<Levels, String> {
    let end = definition.end;
    let encodings = encodings(page);
    let walked = |name, place, max, wanted, encoding| {
        let bytes = body.get(place).unwrap_or_default();
        Walk::new(name, max, wanted, count).over(bytes, encoding)
    };
    let rows = walked("repetition", repetition, max_repetition, 0, encodings[1])?;
    let values = walked("definition", definition, max_definition, max_definition, encodings[0])?;
    let begins_row = rows.first.is_none_or(|first| first == 0);
    let (values, longest_row) = (values.matching, rows.longest);
    let found = Levels { values, rows: rows.matching, begins_row, longest_row, end };
    found.check_nulls(page, count).map(|()| found)
}

impl Levels {
    /// Checks how many NULLs the header of a page of version 2 counts.
    fn check_nulls(&self, page: &ChunkPage, count: u64) -> Result<(), String> {
        let nulls = count.saturating_sub(self.values);
        // Arrow C++ before release 12 took the number from statistics, which may be off, and counted no empty lists.
        let fits = |found: i32| u64::try_from(found).is_ok_and(|found| found <= nulls);
        if let Some(found) = page.num_nulls.filter(|found| !fits(*found)) {
            return Err(format!("expected a num_nulls of {nulls}, as the page's levels have, found {found}"));
        }
        Ok(())
    }
}

/// A walk over levels.
struct Walk {
    /// Which levels they are.
    name: &'static str,
    max: u32,
    /// The level that is counted, and how often it was found.
    wanted: u32,
    matching: u64,
    /// The levels to come.
    left: u64,
    first: Option<u32>,
    /// The levels from the last 0 on, and the most that there were between two of them.
    run: u64,
    longest: u64,
}

impl Walk {
    fn new(name: &'static str, max: u32, wanted: u32, left: u64) -> Self {
        Self { name, max, wanted, left, first: None, matching: 0, run: 0, longest: 0 }
    }

    /// Walks over all levels, which are encoded like this; a maximum of 0 has no bytes.
    fn over(mut self, bytes: &[u8], encoding: Encoding) -> Result<Self, String> {
        if self.max == 0 {
            self.matching = self.left;
            return Ok(self);
        }
        let (count, name) = (self.left, self.name);
        if width(self.max) > MAX_WIDTH {
            return Err(format!("expected {name} levels of at most {MAX_WIDTH} bits, found {}", self.max));
        }
        match encoding {
            Encoding::BitPacked => self.packed(bytes)?,
            _ => self.runs(bytes)?,
        }
        if self.left > 0 {
            return Err(format!("expected {count} {name} levels, found {}", count - self.left));
        }
        Ok(self)
    }

    /// Runs of one level, and of bit-packed levels.
    fn runs(&mut self, bytes: &[u8]) -> Result<(), String> {
        let name = self.name;
        let cut_off = || format!("expected a run of {name} levels, found one that is cut off");
        let width = width(self.max);
        let mut numbers = Numbers(bytes);
        while self.left > 0 && numbers.left() > 0 {
            let run = numbers.varint().ok_or_else(cut_off)?;
            if run & 1 > 0 {
                // Some writers cut off the last group of eight.
                let size = usize::try_from((run >> 1).saturating_mul(width as u64)).unwrap_or(usize::MAX);
                let packed = numbers.take(size.min(numbers.left())).ok_or_else(cut_off)?;
                self.packed(packed)?;
            } else {
                let stored = numbers.take(width.div_ceil(8)).ok_or_else(cut_off)?;
                let level = stored.iter().rev().fold(0, |level, byte| level << 8 | u32::from(*byte));
                let len = self.left.min(run >> 1);
                if len > 0 {
                    self.run = if level == 0 { 1 } else { self.run.saturating_add(len) };
                    self.longest = self.longest.max(self.run);
                    self.add(level, level, if level == self.wanted { len } else { 0 }, len)?;
                }
            }
        }
        Ok(())
    }

    /// Bit-packed levels: groups of eight, of which the last may be cut off.
    fn packed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let width = width(self.max);
        let len = self.left.min(bytes.len() as u64 * 8 / width as u64);
        let Some(first) = bytes.first().filter(|_| len > 0) else { return Ok(()) };
        if width == 1 {
            let (whole, rest) = bytes.split_at((len / 8) as usize);
            let last = rest.first().map_or(0, |last| last & !(0xff << (len % 8)));
            let ones: u64 = whole.iter().chain([&last]).map(|byte| u64::from(byte.count_ones())).sum();
            let matching = if self.wanted == 1 { ones } else { len - ones };
            if self.wanted == 0 {
                whole.iter().for_each(|byte| self.eight(*byte));
                self.run += len % 8;
                self.longest = self.longest.max(self.run);
            }
            return self.add(u32::from(first & 1), 0, matching, len);
        }
        let mask = (1_u32 << width) - 1;
        let (mut start, mut highest, mut matching, mut left) = (None, 0, 0, len);
        for group in bytes.chunks(width) {
            let mut word = [0; MAX_WIDTH];
            word[..group.len()].copy_from_slice(group);
            let mut word = u128::from_le_bytes(word);
            start.get_or_insert(word as u32 & mask);
            let here = left.min(8);
            for _ in 0..here {
                let level = word as u32 & mask;
                highest = highest.max(level);
                matching += u64::from(level == self.wanted);
                self.run = if level == 0 { 1 } else { self.run + 1 };
                self.longest = self.longest.max(self.run);
                word >>= width;
            }
            left -= here;
        }
        self.add(start.unwrap_or(0), highest, matching, len)
    }

    /// Follows runs through eight levels of one bit, the first in the lowest.
    fn eight(&mut self, levels: u8) {
        if levels == u8::MAX {
            self.run += 8;
        } else {
            // Those between two zeros here are fewer than nine.
            let before = self.run + u64::from(levels.trailing_ones());
            self.run = u64::from(levels.leading_ones()) + 1;
            self.longest = self.longest.max(before).max(8);
        }
        self.longest = self.longest.max(self.run);
    }

    /// Adds `len` levels with this first and this highest one, of which `matching` are wanted.
    fn add(&mut self, first: u32, highest: u32, matching: u64, len: u64) -> Result<(), String> {
        if highest > self.max {
            let Self { name, max, .. } = self;
            return Err(format!("expected {name} levels of at most {max}, found {highest}"));
        }
        self.first.get_or_insert(first);
        self.matching += matching;
        self.left -= len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many levels are wanted ones, and the first of them all.
    fn walk(max: u32, wanted: u32, count: u64, bytes: &[u8]) -> Result<(u64, Option<u32>), String> {
        let walk = Walk::new("definition", max, wanted, count);
        walk.over(bytes, Encoding::Rle).map(|walk| (walk.matching, walk.first))
    }

    #[test]
    fn the_longest_row_is_found_in_runs_and_in_groups() {
        let longest = |max, count, bytes: &[u8]| {
            Walk::new("repetition", max, 0, count).over(bytes, Encoding::Rle).map(|walk| walk.longest)
        };
        // One 0 and a thousand times 1.
        assert_eq!(longest(1, 1001, &[2, 0, 0xd0, 0x0f, 1]), Ok(1001));
        assert_eq!(longest(1, 1001, &[0xd0, 0x0f, 1, 2, 0]), Ok(1000));
        // Groups: 0 and 31 times 1; a 0 in the middle; the end of one row and the start of the next.
        assert_eq!(longest(1, 32, &[9, 0xfe, 0xff, 0xff, 0xff]), Ok(32));
        assert_eq!(longest(1, 32, &[9, 0xfe, 0xff, 0xfe, 0xff]), Ok(16));
        assert_eq!(longest(1, 32, &[9, 0xfe, 0xff, 0x0f, 0xff]), Ok(20));
        assert_eq!(longest(2, 8, &[3, 0b0110_0100, 0b1001_0010]), Ok(5));
    }

    #[test]
    fn levels_of_several_bits_are_counted_and_compared_with_their_maximum() {
        // A group of eight levels: 0, 1, 2, 3, 3, 2, 1, 0.
        let packed = [3, 0b1110_0100, 0b0001_1011];
        assert_eq!(walk(3, 3, 8, &packed), Ok((2, Some(0))));
        assert_eq!(walk(3, 2, 5, &packed), Ok((1, Some(0))));
        assert!(walk(2, 2, 8, &packed).unwrap_err().contains("at most 2, found 3"));
        assert_eq!(walk(2, 2, 3, &packed), Ok((1, Some(0))), "the other bits are padding");
        assert!(walk(3, 3, 9, &packed).unwrap_err().contains("expected 9 definition levels, found 8"));
        // Runs of levels of nine bits, which take two bytes.
        assert_eq!(walk(300, 300, 5, &[6, 0x2c, 1, 4, 0, 0]), Ok((3, Some(300))));
        assert!(walk(300, 300, 3, &[6, 0x2d, 1]).unwrap_err().contains("at most 300, found 301"));
        assert!(walk(300, 300, 3, &[6, 0x2c]).is_err(), "half a level");
    }
}
