//! What a kernel finds in chunks that it matches against shapes, and the methods to choose from.

use crate::chunk::rows::{Packed, STATISTICS_NONE, locator, narrow_distance, statistics_place};
use crate::matching::avx2::Avx2;
use crate::matching::shape::{
    COMPRESSED, DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, NUM_VALUES, Shape, UNCOMPRESSED,
};

/// The decoded values of a match, by lane (see [`crate::matching::shape`]). Lanes that no segment decodes are
/// 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Values {
    pub lanes: [i64; 8],
    /// Where the statistics start; 0 if the shape has none.
    pub statistics: usize,
}

impl Values {
    /// The location of the statistics for a match that starts at `at`.
    #[inline(always)]
    fn statistics_place(&self, at: usize) -> u16 {
        match self.statistics {
            0 => STATISTICS_NONE,
            statistics => statistics_place(statistics - at),
        }
    }

    /// The packed row of a match, equal to the row from [`rows::pack`](crate::chunk::rows::pack); `None` for chunks that
    /// are too wide and for values that the scalar walk rejects.
    #[inline(always)]
    pub fn pack(&self, at: usize, shape: &Shape) -> Option<Packed> {
        let value = |lane: u8| self.lanes[usize::from(lane)];
        let data = value(DATA_PAGE_OFFSET);
        let distance =
            if shape.has_dictionary { data.wrapping_sub(value(DICTIONARY_PAGE_OFFSET)) } else { 0 };
        let (compressed, uncompressed) = (value(COMPRESSED), value(UNCOMPRESSED));
        let num_values = value(NUM_VALUES);
        let narrow = (compressed | uncompressed | num_values) as u64 >> 32 == 0;
        let distance = narrow_distance(distance)?;
        (narrow && data >= 0).then_some([
            data as u64,
            compressed as u64 | (uncompressed as u64) << 32,
            num_values as u64 | distance << 32,
            locator(at, shape.traits, self.statistics_place(at)),
        ])
    }
}

/// How many bytes ahead of the match to prefetch. For footers larger than the caches this was the largest
/// single gain; distances from 1 to 3 KiB measured alike.
pub(crate) const PREFETCH: usize = 1536;

/// Work to run with the kernel's instructions: a function compiled for the kernel's processor.
pub(crate) trait Task {
    type Output;
    fn run(self, kernel: Avx2) -> Self::Output;
}

/// How to decode column chunks. All methods return the same results; they differ only in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// The fastest method that the processor supports and the footer's size suggests.
    #[default]
    Fastest,
    /// One byte at a time.
    Scalar,
    /// Field by field in the order of usual chunks, with varints of up to eight bytes at a time. It needs no
    /// instructions of certain processors.
    Portable,
    /// Against learned shapes, however small the footer, with AVX2 and BMI2; falls back to [`Method::Portable`] if the
    /// processor lacks either, or the crate its feature `fast`.
    Avx2,
}

impl Method {
    /// What matches chunks against shapes, if the method does and the processor can.
    pub(crate) fn kernel(self) -> Option<Avx2> {
        match self {
            Self::Fastest | Self::Avx2 => Avx2::detect(),
            Self::Scalar | Self::Portable => None,
        }
    }

    /// Whether the processor supports the method without a fallback.
    pub fn is_available(self) -> bool {
        self != Self::Avx2 || self.kernel().is_some()
    }
}
