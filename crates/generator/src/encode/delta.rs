//! The three encodings that store differences: of integers, of lengths, and of neighbouring strings.
//!
//! (Parquet format, `Encodings.md`: `DELTA_BINARY_PACKED`, `DELTA_LENGTH_BYTE_ARRAY`,
//! `DELTA_BYTE_ARRAY`.) A block has 128 differences less their minimum, in four miniblocks of 32,
//! each bit-packed to the width of its widest.

use crate::encode::thrift::{varint, zigzag};
use crate::encode::values::PhysicalValues;

/// The values of a block and of a miniblock.
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

/// Appends 32-bit integers as `DELTA_BINARY_PACKED`.
pub(crate) fn encode_i32(values: &[i32], out: &mut Vec<u8>) {
    encode(
        values.len(),
        values.first().map(|v| i64::from(*v)),
        // Differences wrap in 32 bits, so none is wider.
        |i| i64::from(values[i].wrapping_sub(values[i - 1])),
        |delta, least| u64::from((delta as i32).wrapping_sub(least as i32) as u32),
        out,
    );
}

/// Appends 64-bit integers as `DELTA_BINARY_PACKED`.
pub(crate) fn encode_i64(values: &[i64], out: &mut Vec<u8>) {
    encode(
        values.len(),
        values.first().copied(),
        |i| values[i].wrapping_sub(values[i - 1]),
        |delta, least| delta.wrapping_sub(least) as u64,
        out,
    );
}

fn encode(
    n: usize,
    first: Option<i64>,
    delta: impl Fn(usize) -> i64,
    above: impl Fn(i64, i64) -> u64,
    out: &mut Vec<u8>,
) {
    varint(BLOCK as u64, out);
    varint(MINIBLOCKS as u64, out);
    varint(n as u64, out);
    varint(zigzag(first.unwrap_or(0)), out);
    let mut at = 1;
    while at < n {
        let here = BLOCK.min(n - at);
        let mut deltas = [0i64; BLOCK];
        for (i, out) in deltas[..here].iter_mut().enumerate() {
            *out = delta(at + i);
        }
        let least = deltas[..here].iter().copied().min().unwrap_or(0);
        varint(zigzag(least), out);
        let mut packed = [0u64; BLOCK];
        for (delta, out) in deltas[..here].iter().zip(&mut packed) {
            *out = above(*delta, least);
        }
        // Miniblocks after the last value have a width of 0 and no bytes.
        let widths = out.len();
        out.extend_from_slice(&[0; MINIBLOCKS]);
        for (m, miniblock) in packed.chunks_exact(MINIBLOCK).enumerate() {
            let all = miniblock.iter().fold(0, |all, v| all | v);
            let width = u64::BITS - all.leading_zeros();
            out[widths + m] = width as u8;
            pack(miniblock, width as usize, out);
        }
        at += here;
    }
}

/// Appends values of `width` bits, the first value in the lowest bits. Their number is a multiple of 8.
fn pack(values: &[u64], width: usize, out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u128, 0);
    for value in values {
        bits |= u128::from(*value) << held;
        held += width;
        if held >= 64 {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= 64;
            held -= 64;
        }
    }
    out.extend_from_slice(&(bits as u64).to_le_bytes()[..held / 8]);
}

/// Appends byte arrays as `DELTA_LENGTH_BYTE_ARRAY`.
pub(crate) fn encode_lengths(offsets: &[u32], data: &[u8], out: &mut Vec<u8>) {
    let lengths: Vec<i32> = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i32).collect();
    encode_i32(&lengths, out);
    if let [first, .., last] = offsets {
        out.extend_from_slice(&data[*first as usize..*last as usize]);
    }
}

/// Appends byte arrays, or fixed-length byte arrays, as `DELTA_BYTE_ARRAY`.
pub(crate) fn encode_prefixes(values: PhysicalValues<'_>, out: &mut Vec<u8>) {
    let n = values.len();
    let (mut prefixes, mut offsets) = (Vec::with_capacity(n), Vec::with_capacity(n + 1));
    let mut suffixes = Vec::new();
    let mut last: &[u8] = &[];
    offsets.push(0);
    values.each(|value| {
        let shared = value.iter().zip(last).take_while(|(a, b)| a == b).count();
        prefixes.push(shared as i32);
        suffixes.extend_from_slice(&value[shared..]);
        offsets.push(suffixes.len() as u32);
        last = value;
    });
    encode_i32(&prefixes, out);
    encode_lengths(&offsets, &suffixes, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first example of the format: 1, 2, 3, 4, 5.
    #[test]
    fn equal_differences_take_no_bits() {
        let mut out = Vec::new();
        encode_i32(&[1, 2, 3, 4, 5], &mut out);
        assert_eq!(out, [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn without_values_there_is_only_a_header() {
        let mut out = Vec::new();
        encode_i64(&[], &mut out);
        assert_eq!(out, [128, 1, 4, 0, 0]);
    }

    /// A reader written from the format's text.
    struct Reader<'a>(&'a [u8]);

    impl Reader<'_> {
        fn varint(&mut self) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = self.0[0];
                self.0 = &self.0[1..];
                value |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        }

        fn signed(&mut self) -> i64 {
            let value = self.varint();
            (value >> 1) as i64 ^ -((value & 1) as i64)
        }

        fn integers(&mut self) -> Vec<i64> {
            let (block, miniblocks, n) = (self.varint(), self.varint() as usize, self.varint() as usize);
            let each = block as usize / miniblocks;
            let first = self.signed();
            let mut out = if n == 0 { Vec::new() } else { vec![first] };
            while out.len() < n {
                let least = self.signed();
                let widths = self.0[..miniblocks].to_vec();
                self.0 = &self.0[miniblocks..];
                for width in widths {
                    let width = usize::from(width);
                    if out.len() == n {
                        assert_eq!(width, 0);
                        continue;
                    }
                    for i in 0..each {
                        let bit = |b: usize| u64::from(self.0[b / 8] >> (b % 8) & 1);
                        let above = (0..width).fold(0, |v, b| v | bit(i * width + b) << b);
                        let next = out[out.len() - 1].wrapping_add(least).wrapping_add(above as i64);
                        if out.len() < n {
                            out.push(next);
                        }
                    }
                    self.0 = &self.0[each * width / 8..];
                }
            }
            out
        }

        fn strings(&mut self) -> Vec<Vec<u8>> {
            let lengths = self.integers();
            let mut each = Vec::new();
            for length in lengths {
                let (value, rest) = self.0.split_at(length as usize);
                each.push(value.to_vec());
                self.0 = rest;
            }
            each
        }
    }

    proptest! {
        #[test]
        fn decoding_returns_the_integers(
            values in proptest::collection::vec(prop_oneof![any::<i64>(), -100i64..100, Just(i64::MIN)], 0..500),
        ) {
            let mut out = Vec::new();
            encode_i64(&values, &mut out);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.integers(), values.clone());
            prop_assert!(reader.0.is_empty());
            let narrow: Vec<i32> = values.iter().map(|v| *v as i32).collect();
            out.clear();
            encode_i32(&narrow, &mut out);
            let read: Vec<i32> = Reader(&out).integers().into_iter().map(|v| v as i32).collect();
            prop_assert_eq!(read, narrow);
        }

        #[test]
        fn decoding_returns_the_strings(values in proptest::collection::vec("[ab]{0,6}", 0..300)) {
            let mut offsets = vec![0];
            offsets.extend(values.iter().scan(0, |at, v| { *at += v.len() as u32; Some(*at) }));
            let data = values.concat().into_bytes();
            let expected: Vec<Vec<u8>> = values.into_iter().map(String::into_bytes).collect();
            let mut out = Vec::new();
            encode_lengths(&offsets, &data, &mut out);
            prop_assert_eq!(Reader(&out).strings(), expected.clone());
            out.clear();
            encode_prefixes(PhysicalValues::Bytes { offsets: &offsets, data: &data }, &mut out);
            let mut reader = Reader(&out);
            let prefixes = reader.integers();
            let suffixes = reader.strings();
            let mut last = Vec::new();
            for ((prefix, suffix), expected) in prefixes.into_iter().zip(suffixes).zip(expected) {
                last.truncate(prefix as usize);
                last.extend(suffix);
                prop_assert_eq!(&last, &expected);
            }
            prop_assert!(reader.0.is_empty());
        }
    }
}
