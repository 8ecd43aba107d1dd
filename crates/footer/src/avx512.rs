//! The kernel for processors with AVX-512 (VBMI and VBMI2: Ice Lake, Zen 4 and later).
//!
//! A segment is one load of 64 bytes. Its masked bytes are compared under their mask. The bytes without
//! a continuation bit, as a bitmap, end the tokens: a bit deposit finds the last one, a compression
//! gathers the tokens' first bytes for comparison, and permutations gather up to eight varints into the
//! lanes of one register, where they are decoded together.

use std::arch::x86_64::*;

use crate::kernel::{Kernel, Task, Values};
use crate::portable::prefetch;
use crate::rows::{Packed, locator};
use crate::shape::{Mark, Segment, Shape, WINDOW};

/// Exists only where the processor has the features: see [`Avx512::detect`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

#[repr(C, align(64))]
struct Bytes([u8; 64]);

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

/// 0, 1 ... 7 in every lane.
static INDEX_IN_LANE: Bytes = Bytes({
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at] = at as u8 % 8;
        at += 1;
    }
    bytes
});

impl Avx512 {
    /// The kernel, if the processor has all it needs.
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
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes; the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The parts of a segment that every lane needs.
#[derive(Clone, Copy)]
struct Loaded {
    fixed: __m512i,
    mask: __m512i,
    constants: __m512i,
}

/// As [`Kernel::step`]. All lanes take a segment before any takes the next: none waits for another, and
/// the segment's own bytes are loaded once.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn step<const VALUES: bool, const LANES: usize>(
    bytes: &[u8],
    starts: [usize; LANES],
    shape: &Shape,
    values: &mut [Values; LANES],
) -> [usize; LANES] {
    let mut at = starts;
    let mut decoded = [_mm512_setzero_si512(); LANES];
    for segment in &shape.segments {
        let loaded = Loaded {
            fixed: load(&segment.fixed),
            mask: load(&segment.mask),
            constants: load(&segment.constants),
        };
        for lane in 0..LANES {
            let found = &mut decoded[lane];
            at[lane] =
                matched::<VALUES>(bytes, at[lane], segment, loaded, found, &mut values[lane].statistics);
        }
    }
    for lane in 0..LANES {
        if VALUES {
            // SAFETY: the lanes are 64 writable bytes.
            unsafe { _mm512_storeu_si512(values[lane].lanes.as_mut_ptr().cast(), decoded[lane]) };
        }
        if at[lane] > bytes.len() {
            at[lane] = 0;
        }
    }
    at
}

/// The place of a lane that does not match: beyond any bytes, so that it matches no other segment.
const NOWHERE: usize = usize::MAX;

/// Where the segment at `at` ends, or [`NOWHERE`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn matched<const VALUES: bool>(
    bytes: &[u8],
    at: usize,
    segment: &Segment,
    loaded: Loaded,
    decoded: &mut __m512i,
    statistics: &mut usize,
) -> usize {
    let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<WINDOW>()) else {
        return NOWHERE;
    };
    let found = load(window);
    // (found ^ fixed) & mask: fixed bytes are 0 where the mask is.
    let differ = _mm512_ternarylogic_epi64::<0x28>(found, loaded.fixed, loaded.mask);
    let differ = _mm512_test_epi64_mask(differ, differ);
    if let Mark::Fixed(place) = segment.statistics {
        *statistics = at + place as usize;
    }
    if segment.tokens == 0 {
        let end = at + segment.fixed_len as usize;
        let skipped = if segment.skips { window[(segment.fixed_len as usize - 1) % WINDOW] } else { 0 };
        return if differ == 0 { end + usize::from(skipped) } else { NOWHERE };
    }
    // Bits of bytes with the continuation bit, and of those without from the first token on.
    let continued = _mm512_movepi8_mask(found);
    let first = segment.first;
    let tokens = first.wrapping_neg();
    let ends = !continued & tokens;
    let last = _pdep_u64(segment.last_token, ends);
    let starts = ends << 1 | first;
    if let Mark::Token(token) = segment.statistics {
        // A token that starts behind the window's last byte has no bit: 64, which is its place.
        *statistics = at + _pdep_u64(token, starts).trailing_zeros() as usize;
    }
    let firsts = _mm512_maskz_compress_epi8(starts, found);
    let other = _mm512_mask_cmpneq_epi8_mask(segment.is_constant, firsts, loaded.constants);
    // Eight continuation bits in a row make a varint of more than eight bytes, of which only the scalar
    // walk knows whether it may be.
    let within = continued & last.wrapping_sub(1) & tokens;
    let two = within & within >> 1;
    let four = two & two >> 2;
    let long = four & four >> 4;
    if u64::from(differ) | other | long != 0 || last == 0 {
        return NOWHERE;
    }
    if VALUES && segment.lanes != 0 {
        *decoded = _mm512_or_si512(*decoded, decode(found, starts, ends, segment));
    }
    let len = last.trailing_zeros() as usize + 1;
    let end = at + len;
    if segment.skips {
        // The last token starts behind the last end before it, or behind the masked bytes.
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

/// Decodes the varints of a segment's lanes, none of which has more than eight bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
#[inline]
fn decode(found: __m512i, starts: u64, ends: u64, segment: &Segment) -> __m512i {
    let index = load(&INDEX.0);
    // Where each token starts and ends, by token; then, in each byte of a lane, by the lane's token.
    let start = _mm512_maskz_compress_epi8(starts, index);
    let end = _mm512_maskz_compress_epi8(ends, index);
    let tokens = load(&segment.lane_tokens);
    let start = _mm512_permutexvar_epi8(tokens, start);
    let end = _mm512_permutexvar_epi8(tokens, end);
    let place = _mm512_add_epi8(start, load(&INDEX_IN_LANE.0));
    let inside = _mm512_mask_cmple_epu8_mask(segment.lanes, place, end);
    let groups =
        _mm512_and_si512(_mm512_maskz_permutexvar_epi8(inside, place, found), _mm512_set1_epi8(0x7f));
    // Close the gaps: groups of 7 bits to 14, to 28, to 56.
    let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(i16::from_le_bytes([0x01, 0x80])), groups);
    let quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001));
    let high = _mm512_slli_epi64::<28>(_mm512_srli_epi64::<32>(quads));
    let low = _mm512_and_si512(quads, _mm512_set1_epi64(0xffff_ffff));
    let raw = _mm512_or_si512(high, low);
    // Zigzag.
    let sign = _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(raw, _mm512_set1_epi64(1)));
    _mm512_xor_si512(_mm512_srli_epi64::<1>(raw), sign)
}

/// As [`Kernel::pack`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn packed(found: &Values, at: usize, shape: &Shape) -> Option<Packed> {
    // SAFETY: the lanes are 64 readable bytes.
    let values = unsafe { _mm512_loadu_si512(found.lanes.as_ptr().cast()) };
    // Lane 1 becomes the distance from dictionary to data page (0 without a dictionary).
    let data = _mm512_maskz_permutexvar_epi64(2, _mm512_setzero_si512(), values);
    let lanes = _mm512_mask_sub_epi64(values, if shape.has_dictionary { 2 } else { 0 }, data, values);
    // No offset may be negative; nothing else may need more than 32 bits.
    let wide = i64::from_ne_bytes(0xffff_ffff_0000_0000_u64.to_ne_bytes());
    let limits = _mm512_setr_epi64(i64::MIN, wide, wide, wide, wide, 0, 0, 0);
    if _mm512_test_epi64_mask(lanes, limits) != 0 {
        return None;
    }
    let words = _mm512_setr_epi32(0, 1, 4, 6, 8, 2, 15, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    let row = _mm512_castsi512_si256(_mm512_permutexvar_epi32(words, lanes));
    let row = _mm256_insert_epi64::<3>(row, locator(at, shape.traits, found.statistics_place(at)) as i64);
    let mut packed = [0; 4];
    // SAFETY: the row is 32 bytes, as `packed` is.
    unsafe { _mm256_storeu_si256(packed.as_mut_ptr().cast(), row) };
    Some(packed)
}

impl Kernel for Avx512 {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: a value of `Avx512` exists only where the features were found.
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
        // SAFETY: a value of `Avx512` exists only where the features were found.
        unsafe { step::<VALUES, LANES>(bytes, starts, shape, values) }
    }

    #[inline(always)]
    fn pack(self, values: &Values, at: usize, shape: &Shape) -> Option<Packed> {
        // SAFETY: a value of `Avx512` exists only where the features were found.
        unsafe { packed(values, at, shape) }
    }
}
