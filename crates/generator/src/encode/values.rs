//! The encodings of values in data pages, and the PLAIN encoding.
//!
//! The input are [`PhysicalValues`], slices of one of Parquet's physical types without nulls; the output are
//! the bytes of a page's body.
//!
//! (Parquet format, `Encodings.md`.)

use std::fmt;
use std::str::FromStr;

use crate::encode::{byte_stream_split, delta};
use crate::random::instruction_sets::widest;

/// Values of one column, by their physical type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PhysicalValues<'a> {
    /// One byte each, 0 or 1.
    Booleans(&'a [u8]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    /// Value `i` is `data[offsets[i]..offsets[i + 1]]`; there is one more offset than values.
    Bytes {
        offsets: &'a [u32],
        data: &'a [u8],
    },
    /// `width` bytes each.
    Fixed {
        width: usize,
        data: &'a [u8],
    },
}

/// The encoding of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// One value after the other.
    Plain,
    /// Indices into a dictionary of the column chunk (`RLE_DICTIONARY`). A dictionary that grows over
    /// 1 MiB is abandoned: the pages after that are plain.
    Dictionary,
    /// Differences, bit-packed (`DELTA_BINARY_PACKED`), for 32 and 64 bit integers.
    Delta,
    /// Lengths as differences, then the bytes (`DELTA_LENGTH_BYTE_ARRAY`), for byte arrays.
    DeltaLength,
    /// The length of the prefix shared with the previous value, then the rest (`DELTA_BYTE_ARRAY`), for byte
    /// arrays and fixed-length byte arrays.
    DeltaByteArray,
    /// All first bytes, all second bytes and so on (`BYTE_STREAM_SPLIT`), for numbers and fixed-length byte
    /// arrays.
    ByteStreamSplit,
}

/// The largest dictionary page. A column chunk with a larger one continues without a dictionary: 1 MiB, as in
/// other writers.
pub(crate) const DICTIONARY_BYTES: usize = 1 << 20;

impl Encoding {
    /// All encodings, in the order of messages and help.
    pub const ALL: [Self; 6] = [
        Self::Plain,
        Self::Dictionary,
        Self::Delta,
        Self::DeltaLength,
        Self::DeltaByteArray,
        Self::ByteStreamSplit,
    ];

    /// Its name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Dictionary => "dict",
            Self::Delta => "delta",
            Self::DeltaLength => "delta-length",
            Self::DeltaByteArray => "delta-bytearray",
            Self::ByteStreamSplit => "byte-stream-split",
        }
    }

    /// `Encoding` of `parquet.thrift`.
    pub(crate) fn id(self) -> i32 {
        match self {
            Self::Plain => 0,
            Self::Delta => 5,
            Self::DeltaLength => 6,
            Self::DeltaByteArray => 7,
            Self::Dictionary => 8,
            Self::ByteStreamSplit => 9,
        }
    }

    /// Whether the format allows it for a physical type (`Type` of `parquet.thrift`).
    pub(crate) fn allows(self, physical_type: i32) -> bool {
        match self {
            Self::Plain => true,
            Self::Dictionary => physical_type != 0,
            Self::Delta => matches!(physical_type, 1 | 2),
            Self::DeltaLength => physical_type == 6,
            Self::DeltaByteArray => matches!(physical_type, 6 | 7),
            Self::ByteStreamSplit => matches!(physical_type, 1 | 2 | 4 | 5 | 7),
        }
    }

    /// Appends the body of a page. The indices of a dictionary are encoded elsewhere; here it means PLAIN.
    pub(crate) fn encode(self, values: PhysicalValues<'_>, out: &mut Vec<u8>) {
        match (self, values) {
            (Self::Delta, PhysicalValues::Int32(v)) => delta::encode_i32(v, out),
            (Self::Delta, PhysicalValues::Int64(v)) => delta::encode_i64(v, out),
            (Self::DeltaLength, PhysicalValues::Bytes { offsets, data }) => {
                delta::encode_lengths(offsets, data, out);
            }
            (Self::DeltaByteArray, values) => delta::encode_prefixes(values, out),
            (Self::ByteStreamSplit, values) => byte_stream_split::encode(values, out),
            (_, values) => plain(values, out),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|e| e.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is not an encoding: use one of {names}")
        })
    }
}

impl<'a> PhysicalValues<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Booleans(v) => v.len(),
            Self::Int32(v) => v.len(),
            Self::Int64(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Double(v) => v.len(),
            Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Fixed { width, data } => data.len().checked_div(width).unwrap_or(0),
        }
    }

    /// The bytes of byte arrays; 0 for other types.
    pub(crate) fn string_bytes(self) -> usize {
        match self {
            Self::Bytes { offsets: [first, .., last], .. } => (last - first) as usize,
            _ => 0,
        }
    }

    /// Calls `see` with each PLAIN-encoded value, byte arrays without their length, booleans as one byte.
    pub(crate) fn each(self, mut see: impl FnMut(&'a [u8])) {
        match self {
            Self::Booleans(v) => v.chunks(1).for_each(see),
            Self::Int32(v) => number_bytes(v).chunks_exact(4).for_each(see),
            Self::Int64(v) => number_bytes(v).chunks_exact(8).for_each(see),
            Self::Float(v) => number_bytes(v).chunks_exact(4).for_each(see),
            Self::Double(v) => number_bytes(v).chunks_exact(8).for_each(see),
            Self::Bytes { offsets, data } => {
                for pair in offsets.windows(2) {
                    see(&data[pair[0] as usize..pair[1] as usize]);
                }
            }
            Self::Fixed { width, data } => data.chunks_exact(width.max(1)).for_each(see),
        }
    }
}

/// Number types without padding, whose bytes may be read.
pub(crate) trait Number: Copy {}
impl Number for i32 {}
impl Number for i64 {}
impl Number for f32 {}
impl Number for f64 {}

/// The bytes of numbers: their PLAIN encoding on a little-endian machine.
pub(crate) fn number_bytes<T: Number>(values: &[T]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "pages are little-endian") };
    // SAFETY: `Number` is implemented only for types without padding, any byte is a valid u8, u8 has an
    // alignment of 1, and the length is the slice's. This avoids a copy that takes a tenth of the time
    // of a page of numbers.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn plain(values: PhysicalValues<'_>, out: &mut Vec<u8>) {
    match values {
        PhysicalValues::Booleans(values) => {
            // Bits, the first value in the lowest one.
            let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
            out.extend(values.chunks(8).map(byte));
        }
        PhysicalValues::Int32(v) => out.extend_from_slice(number_bytes(v)),
        PhysicalValues::Int64(v) => out.extend_from_slice(number_bytes(v)),
        PhysicalValues::Float(v) => out.extend_from_slice(number_bytes(v)),
        PhysicalValues::Double(v) => out.extend_from_slice(number_bytes(v)),
        PhysicalValues::Bytes { offsets, data } => {
            out.reserve(values.len() * 4 + values.string_bytes() + PIECE);
            plain_strings(offsets, data, out);
        }
        PhysicalValues::Fixed { data, .. } => out.extend_from_slice(data),
    }
}

/// The bytes that copying a short string writes. Copies of a fixed size need no branches that depend on lengths.
const PIECE: usize = 64;

widest! {
/// Appends each string after its length.
fn plain_strings(offsets: &[u32], data: &[u8], out: &mut Vec<u8>) {
    for pair in offsets.windows(2) {
        let (start, end) = (pair[0] as usize, pair[1] as usize);
        out.extend_from_slice(&(pair[1] - pair[0]).to_le_bytes());
        match data.get(start..).and_then(|rest| rest.first_chunk::<PIECE>()) {
            Some(piece) if end - start <= PIECE => {
                let end = out.len() + (end - start);
                out.extend_from_slice(piece);
                out.truncate(end);
            }
            _ => out.extend_from_slice(&data[start..end]),
        }
    }
}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_parsed_and_the_error_for_a_wrong_name_lists_them() {
        for encoding in Encoding::ALL {
            assert_eq!(encoding.to_string().parse(), Ok(encoding));
        }
        let error = "rle".parse::<Encoding>().unwrap_err();
        assert!(error.contains("byte-stream-split"), "{error}");
    }

    #[test]
    fn plain_strings_come_after_their_lengths_also_in_slices() {
        let values = PhysicalValues::Bytes { offsets: &[1, 3, 3, 6], data: b"xabcde" };
        let mut out = Vec::new();
        let rest = PhysicalValues::Bytes { offsets: &[3, 3, 6], data: b"xabcde" };
        Encoding::Plain.encode(rest, &mut out);
        assert_eq!(out, b"\0\0\0\0\x03\0\0\0cde");
        assert_eq!((values.len(), values.string_bytes()), (3, 5));
    }

    proptest! {
        #[test]
        fn plain_strings_of_any_length_come_after_their_lengths(
            strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..2 * PIECE), 0..40),
        ) {
            let ends = strings.iter().scan(0, |end, text| { *end += text.len() as u32; Some(*end) });
            let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
            let mut out = vec![7];
            Encoding::Plain.encode(PhysicalValues::Bytes { offsets: &offsets, data: &strings.concat() }, &mut out);
            let each = strings.iter().map(|text| [&(text.len() as u32).to_le_bytes(), text.as_slice()].concat());
            prop_assert_eq!(&out[1..], each.collect::<Vec<_>>().concat());
        }
    }

    #[test]
    fn plain_booleans_are_bits() {
        let mut out = Vec::new();
        Encoding::Plain.encode(PhysicalValues::Booleans(&[1, 0, 0, 1, 0, 0, 0, 0, 1]), &mut out);
        assert_eq!(out, [9, 1]);
    }
}
