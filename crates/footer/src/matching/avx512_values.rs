//! Decodes the values of a match with AVX-512: the varints of a segment's lanes all together, then the packed
//! row from a chunk's lanes (see [`crate::matching::avx512`]).

use std::arch::x86_64::*;

use crate::chunk::rows::{Packed, locator};
use crate::matching::avx512::{Bytes, load};
use crate::matching::kernel::Values;
use crate::matching::shape::{Segment, Shape};

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

/// Decodes the varints of a segment's lanes, each of at most eight bytes. `places` are the offsets of the
/// gathered bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")]
#[inline]
pub(crate) fn decode(found: __m512i, places: __m512i, segment: &Segment) -> __m512i {
    // The eight bytes from the start of each lane's varint. Bytes past the window's end are wrong, but they
    // are also past the varint's end.
    let start = _mm512_permutexvar_epi8(load(&segment.lane_tokens), places);
    let place = _mm512_add_epi8(start, load(&INDEX_IN_LANE.0));
    let bytes = _mm512_maskz_permutexvar_epi8(segment.lanes, place, found);
    // The lowest clear top bit marks a varint's last byte: x ^ (x - 1) has all bits up to there.
    let top = _mm512_set1_epi8(i8::MIN);
    let stops = _mm512_andnot_si512(bytes, top);
    let below = _mm512_sub_epi64(stops, _mm512_set1_epi64(1));
    // (stops ^ below) & bytes, without the top bits.
    let groups = _mm512_ternarylogic_epi64::<0x28>(stops, below, bytes);
    let groups = _mm512_andnot_si512(top, groups);
    // Close the gaps: groups of 7 bits to 14, to 28, to 56.
    let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(i16::from_le_bytes([0x01, 0x80])), groups);
    let quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001));
    let high = _mm512_slli_epi64::<28>(_mm512_srli_epi64::<32>(quads));
    let low = _mm512_and_si512(quads, _mm512_set1_epi64(0xffff_ffff));
    let raw = _mm512_or_si512(high, low);
    // Decode zigzag.
    let sign = _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(raw, _mm512_set1_epi64(1)));
    _mm512_xor_si512(_mm512_srli_epi64::<1>(raw), sign)
}

/// Implements [`Kernel::pack`](crate::matching::kernel::Kernel::pack).
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
pub(crate) fn packed(found: &Values, at: usize, shape: &Shape) -> Option<Packed> {
    // SAFETY: the lanes are 64 readable bytes.
    let values = unsafe { _mm512_loadu_si512(found.lanes.as_ptr().cast()) };
    // Lane 1 becomes the distance from dictionary to data page, 0 without a dictionary.
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
    // SAFETY: the row is 32 bytes, like `packed`.
    unsafe { _mm256_storeu_si256(packed.as_mut_ptr().cast(), row) };
    Some(packed)
}
