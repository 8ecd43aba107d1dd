//! The kernel for any processor: eight bytes at a time in general registers.

use crate::chunk::rows::{Packed, locator};
use crate::matching::kernel::{Kernel, PREFETCH, Task, Values};
use crate::matching::shape::{
    COMPRESSED, DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, Mark, NO_LANE, NUM_VALUES, Segment, Shape,
    UNCOMPRESSED, WINDOW,
};
use crate::memory::pages::prefetch;

/// The bytes that must exist from a segment's start: its window and one word after it.
const REACH: usize = WINDOW + 16;

/// The top bit of every byte of a word.
pub(crate) const TOP_BITS: u64 = 0x8080_8080_8080_8080;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

#[inline(always)]
pub(crate) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether the window matches the segment's masked bytes.
#[inline(always)]
fn same(window: &[u8; WINDOW], segment: &Segment) -> bool {
    let (found, _) = window.as_chunks::<8>();
    let (fixed, _) = segment.fixed.as_chunks::<8>();
    let (mask, _) = segment.mask.as_chunks::<8>();
    let words = (segment.fixed_len as usize).div_ceil(8).min(WINDOW / 8);
    let word = |bytes: [u8; 8]| u64::from_ne_bytes(bytes);
    let differ =
        (0..words).fold(0, |differ, at| differ | (word(found[at]) ^ word(fixed[at])) & word(mask[at]));
    differ == 0
}

/// Drops the top bit of every byte and closes the gaps.
#[inline(always)]
fn compact(word: u64) -> u64 {
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    (word & 0x0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4)
}

/// Decodes the varint that starts the word; returns the integer and the varint's length, or `None` for more
/// than eight bytes. Does not branch on the length, which no processor predicts if numbers vary in size.
#[inline(always)]
pub(crate) fn integer(word: u64) -> Option<(i64, usize)> {
    let stops = !word & TOP_BITS;
    if stops == 0 {
        return None;
    }
    let last = stops.trailing_zeros();
    let value = compact(word & (u64::MAX >> (63 - last)) & !TOP_BITS);
    Some(((value >> 1) as i64 ^ -((value & 1) as i64), last as usize / 8 + 1))
}

/// The number of bytes to skip: the varint of `len` bytes that ends before `end`; `None` if it has more than
/// two bytes.
#[inline(always)]
fn skip_length(bytes: &[u8], end: usize, len: usize) -> Option<usize> {
    let last = usize::from(*bytes.get(end.wrapping_sub(1))?);
    match len {
        1 => Some(last),
        2 => Some(last << 7 | usize::from(*bytes.get(end.wrapping_sub(2))?) & 0x7f),
        _ => None,
    }
}

/// Implements [`Kernel::step`] for one chunk; `None` if it does not match.
#[inline(always)]
fn matched<const VALUES: bool>(bytes: &[u8], at: usize, shape: &Shape, values: &mut Values) -> Option<usize> {
    let mut at = at;
    let mut ops = shape.ops.as_slice();
    let mut done = 0;
    for segment in &shape.segments {
        let window: &[u8; REACH] = bytes.get(at..)?.first_chunk()?;
        if !same(window.first_chunk()?, segment) {
            return None;
        }
        let fixed_len = segment.fixed_len as usize;
        if let Mark::Fixed(place) = segment.statistics {
            values.statistics = at + place as usize;
        }
        let (here, rest) = ops.split_at_checked((segment.ops_end - done) as usize)?;
        (ops, done) = (rest, segment.ops_end);
        let mut place = fixed_len;
        // Without tokens, the last masked byte is the number of bytes to skip.
        let mut varint_len = 1;
        for op in here {
            if op.statistics {
                values.statistics = at + place;
            }
            if op.varint {
                let found = word(window, place)?;
                let stops = !found & TOP_BITS;
                if stops == 0 {
                    return None;
                }
                let last = stops.trailing_zeros();
                if VALUES && op.lane != NO_LANE {
                    let kept = found & (u64::MAX >> (63 - last)) & !TOP_BITS;
                    let value = compact(kept);
                    values.lanes[usize::from(op.lane & 7)] = (value >> 1) as i64 ^ -((value & 1) as i64);
                }
                varint_len = last as usize / 8 + 1;
                place += varint_len;
            }
            if word(window, place)? & op.constant_mask != op.constant {
                return None;
            }
            place += usize::from(op.constant_len);
        }
        at += place;
        if segment.skips {
            at += skip_length(bytes, at, varint_len)?;
        }
    }
    (at <= bytes.len()).then_some(at)
}

impl Kernel for Portable {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    #[inline(always)]
    fn step<const VALUES: bool, const LANES: usize>(
        self,
        bytes: &[u8],
        starts: [usize; LANES],
        shape: &Shape,
        values: &mut [Values; LANES],
    ) -> [usize; LANES] {
        let mut ends = [0; LANES];
        for lane in 0..LANES {
            prefetch(bytes, starts[lane], PREFETCH);
            ends[lane] = matched::<VALUES>(bytes, starts[lane], shape, &mut values[lane]).unwrap_or(0);
        }
        ends
    }

    #[inline(always)]
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed> {
        pack(values, at, shape)
    }
}

/// Implements [`Kernel::pack`].
#[inline(always)]
pub(crate) fn pack(values: &Values, at: usize, shape: &Shape) -> Option<Packed> {
    let value = |lane: u8| values.lanes[usize::from(lane)];
    let data = value(DATA_PAGE_OFFSET);
    let distance = if shape.has_dictionary { data.wrapping_sub(value(DICTIONARY_PAGE_OFFSET)) } else { 0 };
    let (compressed, uncompressed) = (value(COMPRESSED), value(UNCOMPRESSED));
    let num_values = value(NUM_VALUES);
    let narrow = (compressed | uncompressed | num_values | distance) as u64 >> 32 == 0;
    (narrow && data >= 0).then_some([
        data as u64,
        compressed as u64 | (uncompressed as u64) << 32,
        num_values as u64 | (distance as u64) << 32,
        locator(at, shape.traits, values.statistics_place(at)),
    ])
}
