//! Matches a chunk against a shape: one trait, with an implementation for every kind of processor.

use crate::chunk::rows::{Packed, STATISTICS_NONE, statistics_place};
use crate::matching::engine::Learning;
use crate::matching::portable::Portable;
use crate::matching::shape::Shape;

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
    pub fn statistics_place(&self, at: usize) -> u16 {
        match self.statistics {
            0 => STATISTICS_NONE,
            statistics => statistics_place(statistics - at),
        }
    }
}

/// How many bytes ahead of the match to prefetch. For footers larger than the caches this was the largest
/// single gain; distances from 1 to 3 KiB measured alike.
pub(crate) const PREFETCH: usize = 1536;

/// Work to run on a kernel: a function generic over kernels, compiled for each kernel's processor.
pub(crate) trait Task {
    type Output;
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Matches chunks against shapes. All kernels that return an answer return the same one; otherwise the scalar
/// walk decides.
pub(crate) trait Kernel: Copy + Send {
    /// Runs `task` compiled for the kernel's processor.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// Where the chunks at `starts` end, for those that match the shape, and their values if `VALUES`. A lane
    /// is 0, and its values are undefined, if its chunk does not match or the kernel cannot tell (near the
    /// end of the bytes, for example).
    fn step<const VALUES: bool, const LANES: usize>(
        self,
        bytes: &[u8],
        starts: [usize; LANES],
        shape: &Shape,
        values: &mut [Values; LANES],
    ) -> [usize; LANES];

    /// The packed row of a match, equal to that of [`crate::chunk::rows::pack`]; `None` for chunks that are
    /// too wide and for values that the scalar walk rejects.
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed>;
}

/// How to decode column chunks. All methods return the same results; they differ only in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// The fastest method that the processor supports and the footer's size suggests.
    #[default]
    Fastest,
    /// One byte at a time.
    Scalar,
    /// Against learned shapes, however small the footer, eight bytes at a time. [`Method::Avx2`] also learns
    /// shapes from the first chunk on.
    Portable,
    /// Against learned shapes, with AVX2 and BMI2; falls back to [`Method::Portable`] if the processor lacks
    /// either, or the crate its feature `fast`.
    Avx2,
}

/// Work to run with the kernel that a method selects.
pub(crate) trait Choose {
    type Output;
    fn with<K: Kernel>(self, kernel: K) -> Self::Output;
}

impl Method {
    pub(crate) fn learning(self) -> Learning {
        match self {
            Self::Scalar => Learning::Never,
            Self::Fastest => Learning::WhenWorth,
            Self::Portable | Self::Avx2 => Learning::Always,
        }
    }

    pub(crate) fn choose<C: Choose>(self, chosen: C) -> C::Output {
        #[cfg(all(feature = "fast", target_arch = "x86_64"))]
        if matches!(self, Self::Fastest | Self::Avx2)
            && let Some(kernel) = crate::matching::avx2::Avx2::detect()
        {
            return chosen.with(kernel);
        }
        chosen.with(Portable)
    }

    /// Whether the processor supports the method without a fallback.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(all(feature = "fast", target_arch = "x86_64"))]
            Self::Avx2 => crate::matching::avx2::Avx2::detect().is_some(),
            #[cfg(not(all(feature = "fast", target_arch = "x86_64")))]
            Self::Avx2 => false,
            Self::Fastest | Self::Scalar | Self::Portable => true,
        }
    }
}
