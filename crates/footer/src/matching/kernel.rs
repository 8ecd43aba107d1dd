//! What matches a chunk against a shape: one trait, an implementation for every kind of processor.

use crate::chunk::rows::{Packed, STATISTICS_NONE, statistics_place};
use crate::matching::portable::Portable;
use crate::matching::shape::Shape;

/// The decoded values of a match, by lane (see [`crate::matching::shape`]). Lanes that no segment decodes are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Values {
    pub lanes: [i64; 8],
    /// Where the statistics start; 0 where the shape has none.
    pub statistics: usize,
    /// Of a chunk that does not match, how far it does, if the kernel can tell.
    pub stopped: Option<Stopped>,
}

/// Where a match has stopped. What was found before is kept in the [`Values`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The segment that did not match.
    pub segment: usize,
    /// Where it starts.
    pub at: usize,
    /// Where the statistics start, as far as known.
    pub statistics: usize,
}

impl Values {
    /// The place of the statistics of a match that starts at `at`.
    #[inline(always)]
    pub fn statistics_place(&self, at: usize) -> u16 {
        match self.statistics {
            0 => STATISTICS_NONE,
            statistics => statistics_place(statistics - at),
        }
    }
}

/// How far ahead of the match bytes are fetched. On footers larger than the caches this was the largest
/// single gain; distances from 1 to 3 KiB measured alike.
pub(crate) const PREFETCH: usize = 1536;

/// The `REACH` bytes at all lanes' places, if the bytes hold them all.
#[inline(always)]
pub(crate) fn windows<const REACH: usize, const LANES: usize>(
    bytes: &[u8],
    at: [usize; LANES],
) -> Option<[&[u8; REACH]; LANES]> {
    let limit = bytes.len().checked_sub(REACH)?;
    let mut windows = [&[0; REACH]; LANES];
    for lane in 0..LANES {
        if at[lane] > limit {
            return None;
        }
        // SAFETY: `REACH` bytes from any place up to the limit lie within the bytes.
        windows[lane] = unsafe { &*bytes.as_ptr().add(at[lane]).cast::<[u8; REACH]>() };
    }
    Some(windows)
}

/// Something to be run by a kernel: a function over any of them, which each compiles for its own
/// processor.
pub(crate) trait Task {
    type Output;
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Matches chunks against shapes. All kernels give the same answers wherever they give one; where one
/// has no answer, the scalar walk has.
pub(crate) trait Kernel: Copy + Send {
    /// Runs `task` compiled for the kernel's processor.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// Where the chunks that start at `starts` end, those that are of the shape, and their values if
    /// `VALUES`; 0 for chunks that are not, or if the kernel cannot tell (near the end of the bytes,
    /// say), whose values mean nothing.
    fn step<const VALUES: bool, const LANES: usize>(
        self,
        bytes: &[u8],
        starts: [usize; LANES],
        shape: &Shape,
        values: &mut [Values; LANES],
    ) -> [usize; LANES];

    /// As [`Kernel::step`] for a chunk that a shape has matched up to where it stopped, against another
    /// shape that has the same segments up to there.
    fn resume<const VALUES: bool>(self, bytes: &[u8], shape: &Shape, values: &mut Values) -> usize;

    /// The packed row of a match, as [`crate::chunk::rows::pack`] would have it; none for chunks too wide and
    /// for values that the scalar walk refuses.
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed>;
}

/// How column chunks are decoded. All methods give the same; they differ in speed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// The fastest that the processor has.
    #[default]
    Fastest,
    /// A byte at a time.
    Scalar,
    /// Against learned shapes, eight bytes at a time.
    Portable,
    /// Against learned shapes, with AVX2 and BMI2; as [`Method::Portable`] where the processor has
    /// neither.
    Avx2,
    /// Against learned shapes, with AVX-512; as [`Method::Portable`] where the processor has none.
    Avx512,
}

/// Something to be done with the kernel that a method chooses.
pub(crate) trait Choose {
    type Output;
    fn with<K: Kernel>(self, kernel: K) -> Self::Output;
}

impl Method {
    pub(crate) fn choose<C: Choose>(self, chosen: C) -> C::Output {
        #[cfg(target_arch = "x86_64")]
        if matches!(self, Self::Fastest | Self::Avx512)
            && let Some(kernel) = crate::matching::avx512::Avx512::detect()
        {
            return chosen.with(kernel);
        }
        #[cfg(target_arch = "x86_64")]
        if matches!(self, Self::Fastest | Self::Avx2)
            && let Some(kernel) = crate::matching::bmi2::Avx2::detect()
        {
            return chosen.with(kernel);
        }
        chosen.with(Portable)
    }

    /// Whether the method is what it says on this processor.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => crate::matching::avx512::Avx512::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => crate::matching::bmi2::Avx2::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Fastest | Self::Scalar | Self::Portable => true,
        }
    }
}
