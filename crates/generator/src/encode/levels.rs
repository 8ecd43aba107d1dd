//! Definition and repetition levels in pages: the RLE/bit-packing hybrid.
//!
//! (Parquet format, `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid": a run is a varint
//! header, its lowest bit 1 for bit-packed groups of eight values and 0 for a repeated value.)

use crate::encode::thrift::varint;
use crate::random::instruction_sets::widest;

pub(crate) fn bit_width(max: u32) -> usize {
    (u32::BITS - max.leading_zeros()) as usize
}

/// Appends `values`, each of at most `width` bits, as one run: repeated if they are all equal, else
/// bit-packed.
/// `width` is 1 to 8.
pub(crate) fn encode(values: &[u8], width: usize, out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    // In pieces, so the check ends early if they differ.
    if values.chunks(256).all(|piece| piece.iter().fold(0, |all, v| all | (v ^ first)) == 0) {
        varint((values.len() as u64) << 1, out);
        out.push(first);
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let start = out.len();
    // Every group stores eight bytes; the next group overwrites those after its width.
    out.resize(start + groups * width + 8, 0);
    let packed = &mut out[start..];
    let whole = values.len() / 8;
    pack(&values[..whole * 8], width, packed);
    let rest = &values[whole * 8..];
    if !rest.is_empty() {
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        let at = whole * width;
        packed[at..at + 8].copy_from_slice(&pack8(u64::from_le_bytes(eight), width).to_le_bytes());
    }
    out.truncate(start + groups * width);
}

widest! {
/// Packs whole groups of eight values of `width` bits. Each group stores eight bytes.
fn pack(values: &[u8], width: usize, out: &mut [u8]) {
    /// Each copy of the loop has a constant width.
    #[inline(always)]
    fn groups<const WIDTH: usize>(values: &[u8], out: &mut [u8]) {
        let groups = values.len() / 8;
        for i in 0..groups {
            let mut eight = [0; 8];
            eight.copy_from_slice(&values[8 * i..8 * i + 8]);
            let packed = pack8(u64::from_le_bytes(eight), WIDTH).to_le_bytes();
            out[i * WIDTH..i * WIDTH + 8].copy_from_slice(&packed);
        }
    }
    match width {
        1 => groups::<1>(values, out),
        2 => groups::<2>(values, out),
        3 => groups::<3>(values, out),
        4 => groups::<4>(values, out),
        5 => groups::<5>(values, out),
        6 => groups::<6>(values, out),
        7 => groups::<7>(values, out),
        _ => groups::<8>(values, out),
    }
}
}

/// Packs eight bytes of `width` bits each into the lowest `8 * width` bits, by pairing neighbours
/// three times.
#[inline(always)]
fn pack8(bytes: u64, width: usize) -> u64 {
    const PAIRS: u64 = 0x00FF_00FF_00FF_00FF;
    const QUADS: u64 = 0x0000_FFFF_0000_FFFF;
    let pairs = (bytes & PAIRS) | ((bytes >> 8) & PAIRS) << width;
    let quads = (pairs & QUADS) | ((pairs >> 16) & QUADS) << (2 * width);
    (quads & 0xFFFF_FFFF) | (quads >> 32) << (4 * width)
}

/// Appends the byte with the width, then dictionary indices of at most `width` bits (0 to 32) as one
/// bit-packed or repeated run.
pub(crate) fn encode_indices(indices: &[u32], width: usize, out: &mut Vec<u8>) {
    out.push(width as u8);
    let Some(&first) = indices.first() else { return };
    if width == 0 || indices.iter().all(|i| *i == first) {
        varint((indices.len() as u64) << 1, out);
        out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8)]);
        return;
    }
    let groups = indices.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let start = out.len();
    out.reserve(groups * width + 8);
    let (mut bits, mut held) = (0u64, 0);
    for group in indices.chunks(8) {
        for i in 0..8 {
            bits |= u64::from(group.get(i).copied().unwrap_or(0)) << held;
            held += width;
            if held >= 32 {
                out.extend_from_slice(&(bits as u32).to_le_bytes());
                bits >>= 32;
                held -= 32;
            }
        }
    }
    out.extend_from_slice(&bits.to_le_bytes()[..held.div_ceil(8)]);
    debug_assert_eq!(out.len(), start + groups * width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A decoder written from the format's text, one bit at a time.
    fn decode(mut bytes: &[u8], width: usize, n: usize) -> Vec<u32> {
        let mut out = Vec::new();
        while out.len() < n {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let read = |bytes: &[u8], at: usize, bits: usize| {
                (0..bits).fold(0u32, |v, b| v | u32::from(bytes[(at + b) / 8] >> ((at + b) % 8) & 1) << b)
            };
            if header & 1 == 1 {
                let groups = (header >> 1) as usize;
                out.extend((0..groups * 8).map(|i| read(bytes, i * width, width)));
                bytes = &bytes[groups * width..];
            } else {
                let value = read(bytes, 0, width);
                out.extend(std::iter::repeat_n(value, (header >> 1) as usize));
                bytes = &bytes[width.div_ceil(8)..];
            }
        }
        assert!(bytes.is_empty());
        out.truncate(n);
        out
    }

    proptest! {
        #[test]
        fn levels_come_back(width in 1usize..=8, values in proptest::collection::vec(any::<u8>(), 1..600)) {
            let values: Vec<u8> = values.iter().map(|v| (u32::from(*v) & ((1 << width) - 1)) as u8).collect();
            let mut out = Vec::new();
            encode(&values, width, &mut out);
            let expected: Vec<u32> = values.iter().map(|v| u32::from(*v)).collect();
            prop_assert_eq!(decode(&out, width, values.len()), expected);
        }

        #[test]
        fn indices_come_back(width in 1usize..=32, values in proptest::collection::vec(any::<u32>(), 1..200)) {
            let values: Vec<u32> = values.iter().map(|v| v & (u32::MAX >> (32 - width))).collect();
            let mut out = Vec::new();
            encode_indices(&values, width, &mut out);
            prop_assert_eq!(out[0] as usize, width);
            prop_assert_eq!(decode(&out[1..], width, values.len()), values);
        }
    }

    #[test]
    fn equal_values_are_one_repeated_run() {
        let mut out = Vec::new();
        encode(&[3; 1000], 2, &mut out);
        assert_eq!(out, [0xD0, 0x0F, 3]);
    }

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(bit_width), [0, 1, 2, 2, 3, 8, 9]);
    }
}
