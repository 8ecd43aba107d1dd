//! The kernel for processors with AVX2 and BMI2 (Haswell, Zen 3 and later) and no AVX-512.
//!
//! It goes as the portable one does, a varint after the other, in fewer instructions: masked bytes are
//! compared 32 at a time, and a bit extraction closes the gaps between the groups of a varint.

use std::arch::x86_64::*;

use crate::kernel::{Kernel, Task, Values};
use crate::portable::{self, Instructions, prefetch};
use crate::rows::Packed;
use crate::shape::{Segment, Shape, WINDOW};

/// Exists only where the processor has the features: see [`Avx2::detect`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The kernel, if the processor has all it needs.
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn enter<T: Task>(kernel: Avx2, task: T) -> T::Output {
    task.run(kernel)
}

/// Whether 32 bytes differ under a mask.
#[target_feature(enable = "avx2")]
#[inline]
fn differ(found: &[u8; 32], fixed: &[u8; 32], mask: &[u8; 32]) -> bool {
    // SAFETY: each reference is to 32 readable bytes; the loads ask for no alignment.
    let load = |bytes: &[u8; 32]| unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let other = _mm256_xor_si256(load(found), load(fixed));
    _mm256_testz_si256(other, load(mask)) == 0
}

#[target_feature(enable = "bmi2")]
#[inline]
fn compact(word: u64) -> u64 {
    _pext_u64(word, 0x7f7f_7f7f_7f7f_7f7f)
}

impl Instructions for Avx2 {
    #[inline(always)]
    fn same(self, window: &[u8; WINDOW], segment: &Segment) -> bool {
        let (found, _) = window.as_chunks::<32>();
        let (fixed, _) = segment.fixed.as_chunks::<32>();
        let (mask, _) = segment.mask.as_chunks::<32>();
        for part in 0..(segment.fixed_len as usize).div_ceil(32).min(2) {
            // SAFETY: a value of `Avx2` exists only where the features were found.
            if unsafe { differ(&found[part], &fixed[part], &mask[part]) } {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn compact(self, word: u64) -> u64 {
        // SAFETY: a value of `Avx2` exists only where the features were found.
        unsafe { compact(word) }
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: a value of `Avx2` exists only where the features were found.
        unsafe { enter(self, task) }
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
            prefetch(bytes, starts[lane]);
            ends[lane] =
                portable::matched::<Self, VALUES>(self, bytes, starts[lane], shape, &mut values[lane])
                    .unwrap_or(0);
        }
        ends
    }

    #[inline(always)]
    fn resume<const VALUES: bool>(self, _: &[u8], _: &Shape, _: &mut Values) -> usize {
        // It never tells where it has stopped.
        0
    }

    #[inline(always)]
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed> {
        portable::pack(values, at, shape)
    }
}
