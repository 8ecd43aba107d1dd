//! The kernel for processors with AVX-512 (VBMI and VBMI2: Ice Lake, Zen 4 and later).
//!
//! A segment is one 64-byte load. A bitmap of the bytes without a continuation bit marks the ends of tokens.
//! A bit deposit finds the last token; a compression gathers the masked bytes and the first byte of each
//! token, which are compared under a mask; permutations gather up to eight varints into the lanes of one
//! register, where they are decoded together ([`crate::matching::avx512_values`]).
//!
//! Chunks of several row groups go through each segment together. If one of them does not match or needs a
//! closer look, all lanes are examined separately for this segment.

use std::arch::x86_64::*;

use crate::chunk::rows::Packed;
use crate::matching::avx512_values::{decode, packed};
use crate::matching::kernel::{Kernel, Stopped, Task, Values, windows};
use crate::matching::portable::prefetch;
use crate::matching::shape::{Mark, Segment, Shape, WINDOW};

/// Exists only where the processor has the features: see [`Avx512::detect`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

#[repr(C, align(64))]
pub(crate) struct Bytes(pub [u8; 64]);

/// 0, 1, 2 ... 63.
static INDEX: Bytes = Bytes({
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
});

impl Avx512 {
    /// The kernel, if the processor has every required feature.
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn enter<T: Task>(kernel: Avx512, task: T) -> T::Output {
    task.run(kernel)
}

/// Loads 64 bytes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes; the load requires no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The constants of a segment that all lanes share.
#[derive(Clone, Copy)]
struct Loaded {
    gathered: __m512i,
    mask: __m512i,
}

/// Implements [`Kernel::step`]. All lanes go through a segment before any goes on to the next: no lane waits
/// for another, and the segment's own bytes are loaded once. Always inlined despite its size: handing values
/// over in memory, written as separate words and read together, costs as much as a segment.
///
/// # Safety
///
/// The processor has the features that [`Avx512::detect`] checks; the same holds for the other unsafe
/// functions here.
#[inline(always)]
unsafe fn step<const VALUES: bool, const LANES: usize>(
    bytes: &[u8],
    starts: [usize; LANES],
    shape: &Shape,
    values: &mut [Values; LANES],
) -> [usize; LANES] {
    // SAFETY: the caller ensures the features.
    unsafe {
        let mut lanes = Progress { at: starts, decoded: [_mm512_setzero_si512(); LANES], stopped: 0 };
        for (index, segment) in shape.segments.iter().enumerate() {
            let loaded = Loaded { gathered: load(&segment.gathered), mask: load(&segment.gathered_mask) };
            let decoded = &mut lanes.decoded;
            let ends = match windows(bytes, lanes.at) {
                None => None,
                Some(windows) if segment.tokens == 0 => masked(windows, lanes.at, segment, loaded, values),
                Some(windows) if VALUES && segment.lanes != 0 => {
                    together::<true, LANES>(windows, lanes.at, segment, loaded, decoded, values)
                }
                Some(windows) => {
                    together::<false, LANES>(windows, lanes.at, segment, loaded, decoded, values)
                }
            };
            match ends {
                Some(ends) => lanes.at = ends,
                None => {
                    lanes = apart::<VALUES, LANES>(bytes, lanes, segment, index, values);
                    if lanes.stopped == (1 << LANES) - 1 {
                        break;
                    }
                }
            }
        }
        let mut ends = lanes.at;
        for lane in 0..LANES {
            if lanes.stopped >> lane & 1 != 0 {
                // Another lane's values overwrote those after the stop.
                values[lane].statistics = values[lane].stopped.map_or(0, |stopped| stopped.statistics);
                ends[lane] = 0;
                continue;
            }
            if VALUES {
                _mm512_storeu_si512(values[lane].lanes.as_mut_ptr().cast(), lanes.decoded[lane]);
            }
            // Skipped bytes may end after the last byte.
            if ends[lane] > bytes.len() {
                ends[lane] = 0;
            }
        }
        ends
    }
}

/// The progress of each lane.
#[derive(Clone, Copy)]
struct Progress<const LANES: usize> {
    /// Where the next segment starts.
    at: [usize; LANES],
    decoded: [__m512i; LANES],
    /// The stopped lanes as bits.
    stopped: u32,
}

/// Matches a segment lane by lane because a lane does not match or needs a closer look.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn apart<const VALUES: bool, const LANES: usize>(
    bytes: &[u8],
    mut lanes: Progress<LANES>,
    segment: &Segment,
    index: usize,
    values: &mut [Values; LANES],
) -> Progress<LANES> {
    let mut moving = None;
    for (lane, values) in values.iter_mut().enumerate() {
        if lanes.stopped >> lane & 1 != 0 {
            continue;
        }
        let statistics = values.statistics;
        match matched::<VALUES>(bytes, lanes.at[lane], segment, &mut lanes.decoded[lane], values) {
            NOWHERE => {
                lanes.stopped |= 1 << lane;
                values.stopped = Some(Stopped { segment: index, at: lanes.at[lane], statistics });
                // SAFETY: the lanes are 64 writable bytes.
                unsafe { _mm512_storeu_si512(values.lanes.as_mut_ptr().cast(), lanes.decoded[lane]) };
            }
            end => {
                lanes.at[lane] = end;
                moving = Some(end);
            }
        }
    }
    // A stopped lane continues as a copy of an active one, so that the others stay together.
    if let Some(end) = moving {
        for lane in (0..LANES).filter(|lane| lanes.stopped >> lane & 1 != 0) {
            lanes.at[lane] = end;
        }
    }
    lanes
}

/// Implements [`Kernel::resume`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn resume<const VALUES: bool>(bytes: &[u8], shape: &Shape, values: &mut Values) -> usize {
    let Some(Stopped { segment, mut at, .. }) = values.stopped else { return 0 };
    // SAFETY: the lanes are 64 readable bytes.
    let mut decoded = unsafe { _mm512_loadu_si512(values.lanes.as_ptr().cast()) };
    for segment in shape.segments.iter().skip(segment) {
        at = matched::<VALUES>(bytes, at, segment, &mut decoded, values);
        if at == NOWHERE {
            return 0;
        }
    }
    // SAFETY: the lanes are 64 writable bytes.
    unsafe { _mm512_storeu_si512(values.lanes.as_mut_ptr().cast(), decoded) };
    if at > bytes.len() { 0 } else { at }
}

/// Where a segment without tokens ends in each lane; `None` if a lane does not match.
#[inline(always)]
unsafe fn masked<const LANES: usize>(
    windows: [&[u8; WINDOW]; LANES],
    at: [usize; LANES],
    segment: &Segment,
    loaded: Loaded,
    values: &mut [Values; LANES],
) -> Option<[usize; LANES]> {
    // SAFETY: the caller ensures the features.
    unsafe {
        let len = segment.fixed_len as usize;
        let mut ends = at;
        let mut differ = _mm512_setzero_si512();
        for lane in 0..LANES {
            differ = _mm512_or_si512(differ, other(load(windows[lane]), loaded));
            ends[lane] += len;
        }
        if segment.skips {
            for lane in 0..LANES {
                ends[lane] += usize::from(windows[lane][(len - 1) % WINDOW]);
            }
        }
        if _mm512_test_epi64_mask(differ, differ) != 0 {
            return None;
        }
        if let Mark::Fixed(place) = segment.statistics {
            for lane in 0..LANES {
                values[lane].statistics = at[lane] + place as usize;
            }
        }
        Some(ends)
    }
}

/// Where a segment with tokens ends in each lane; `None` if a lane does not match or needs a closer look.
#[inline(always)]
unsafe fn together<const DECODES: bool, const LANES: usize>(
    windows: [&[u8; WINDOW]; LANES],
    at: [usize; LANES],
    segment: &Segment,
    loaded: Loaded,
    decoded: &mut [__m512i; LANES],
    values: &mut [Values; LANES],
) -> Option<[usize; LANES]> {
    // SAFETY: the caller ensures the features.
    unsafe {
        let tokens = segment.first.wrapping_neg();
        let fixed = (segment.first << 1).wrapping_sub(1);
        let mut ends = at;
        let mut places = [_mm512_setzero_si512(); LANES];
        let mut marked = [0; LANES];
        let mut differ = _mm512_setzero_si512();
        for lane in 0..LANES {
            let found = load(windows[lane]);
            let ended = !_mm512_movepi8_mask(found) & tokens;
            let last = _pdep_u64(segment.last_token, ended);
            let kept = (ended << 1) | fixed;
            let gathered = if DECODES {
                places[lane] = _mm512_maskz_compress_epi8(kept, load(&INDEX.0));
                _mm512_permutexvar_epi8(places[lane], found)
            } else {
                _mm512_maskz_compress_epi8(kept, found)
            };
            differ = _mm512_or_si512(differ, other(gathered, loaded));
            // Uses branches: the compiler would gather sums over the lanes in vectors, which takes longer.
            let within = (ended ^ tokens) & last.wrapping_sub(1);
            let two = within & within >> 1;
            let four = two & two >> 2;
            if four & four >> 4 != 0 || last == 0 {
                return None;
            }
            if let Mark::Token(token) = segment.statistics {
                // A token that starts after the window's last byte has no bit: the result is 64, its offset.
                marked[lane] = _pdep_u64(token, kept).trailing_zeros();
            }
            let len = last.trailing_zeros() as usize;
            ends[lane] += len + 1;
            if segment.skips {
                // A two-byte token if the last token does not start with its last byte.
                if last & kept == 0 {
                    return None;
                }
                ends[lane] += usize::from(windows[lane][len % WINDOW]);
            }
        }
        if _mm512_test_epi64_mask(differ, differ) != 0 {
            return None;
        }
        match segment.statistics {
            Mark::Absent => {}
            Mark::Fixed(place) => {
                for lane in 0..LANES {
                    values[lane].statistics = at[lane] + place as usize;
                }
            }
            Mark::Token(_) => {
                for lane in 0..LANES {
                    values[lane].statistics = at[lane] + marked[lane] as usize;
                }
            }
        }
        if DECODES {
            for lane in 0..LANES {
                let varints = decode(load(windows[lane]), places[lane], segment);
                decoded[lane] = _mm512_or_si512(decoded[lane], varints);
            }
        }
        Some(ends)
    }
}

/// The offset of a lane that does not match: past the end of any bytes.
const NOWHERE: usize = usize::MAX;

/// Where the segment at `at` ends, or [`NOWHERE`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn matched<const VALUES: bool>(
    bytes: &[u8],
    at: usize,
    segment: &Segment,
    decoded: &mut __m512i,
    values: &mut Values,
) -> usize {
    let loaded = Loaded { gathered: load(&segment.gathered), mask: load(&segment.gathered_mask) };
    let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<WINDOW>()) else {
        return NOWHERE;
    };
    let found = load(window);
    if let Mark::Fixed(place) = segment.statistics {
        values.statistics = at + place as usize;
    }
    if segment.tokens == 0 {
        let end = at + segment.fixed_len as usize;
        let skipped = if segment.skips { window[(segment.fixed_len as usize - 1) % WINDOW] } else { 0 };
        return if differ(found, loaded) == 0 { end + usize::from(skipped) } else { NOWHERE };
    }
    // Bits of bytes with a continuation bit, and of those without one, starting with the first token.
    let continued = _mm512_movepi8_mask(found);
    let first = segment.first;
    let tokens = first.wrapping_neg();
    let ends = !continued & tokens;
    let last = _pdep_u64(segment.last_token, ends);
    // The masked bytes and the first byte of each token.
    let kept = ends << 1 | (first << 1).wrapping_sub(1);
    if let Mark::Token(token) = segment.statistics {
        // A token that starts after the window's last byte has no bit: the result is 64, its offset.
        values.statistics = at + _pdep_u64(token, kept).trailing_zeros() as usize;
    }
    let decodes = VALUES && segment.lanes != 0;
    let (gathered, places) = if decodes {
        let places = _mm512_maskz_compress_epi8(kept, load(&INDEX.0));
        (_mm512_permutexvar_epi8(places, found), places)
    } else {
        (_mm512_maskz_compress_epi8(kept, found), found)
    };
    // Eight continuation bits in a row mean a varint of more than eight bytes; only the scalar walk can tell
    // whether it is valid.
    let within = continued & last.wrapping_sub(1) & tokens;
    let two = within & within >> 1;
    let four = two & two >> 2;
    let long = four & four >> 4;
    if u64::from(differ(gathered, loaded)) | long != 0 || last == 0 {
        return NOWHERE;
    }
    if decodes {
        *decoded = _mm512_or_si512(*decoded, decode(found, places, segment));
    }
    let len = last.trailing_zeros() as usize + 1;
    let end = at + len;
    if segment.skips {
        // The last token starts after the previous token's end, or after the masked bytes.
        let before = ends & last.wrapping_sub(1) | first >> 1;
        let start = 64 - before.leading_zeros() as usize;
        let low = usize::from(window[(len - 1) % WINDOW]);
        return match len - start {
            1 => end + low,
            2 => end + (low << 7 | usize::from(window[(len - 2) % WINDOW]) & 0x7f),
            _ => NOWHERE,
        };
    }
    end
}

/// The bits in which gathered bytes differ from those of the segment.
#[target_feature(enable = "avx512f")]
#[inline]
fn other(found: __m512i, loaded: Loaded) -> __m512i {
    // (found ^ gathered) & mask: gathered bytes are 0 where the mask is 0.
    _mm512_ternarylogic_epi64::<0x28>(found, loaded.gathered, loaded.mask)
}

/// Nonzero if they differ at all.
#[target_feature(enable = "avx512f")]
#[inline]
fn differ(found: __m512i, loaded: Loaded) -> __mmask8 {
    let other = other(found, loaded);
    _mm512_test_epi64_mask(other, other)
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: an `Avx512` exists only if the features were detected.
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
        for start in starts {
            prefetch(bytes, start);
        }
        // SAFETY: an `Avx512` exists only if the features were detected.
        unsafe { step::<VALUES, LANES>(bytes, starts, shape, values) }
    }

    #[inline(always)]
    fn resume<const VALUES: bool>(self, bytes: &[u8], shape: &Shape, values: &mut Values) -> usize {
        // SAFETY: an `Avx512` exists only if the features were detected.
        unsafe { resume::<VALUES>(bytes, shape, values) }
    }

    #[inline(always)]
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed> {
        // SAFETY: an `Avx512` exists only if the features were detected.
        unsafe { packed(values, at, shape) }
    }
}
