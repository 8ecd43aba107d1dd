//! The minimum and maximum of a page or column chunk, from values that are still codes.
//!
//! (Parquet format, `parquet.thrift`, `Statistics`: `min_value` and `max_value` are PLAIN encoded
//! without a length, ordered as the column's type is; NaN is left out, a zero minimum is written
//! as -0.0 and a zero maximum as +0.0.)

use crate::draw::text::person_name;
use crate::draw::value_spec::ValueSpec;
use crate::encode::long_bounds::{short_high, short_low};
use crate::shred::value_buffer::{ByteStrings, ValueBuffer};
use crate::spec::dataset::Leaf;
use crate::types::logical_type::{LogicalType, Physical};

/// The bounds of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bounds {
    /// Codes that sort like their values: indices of a sorted dictionary, names, ids, booleans.
    Codes(u64, u64),
    Integers(i64, i64),
    /// Unsigned.
    Naturals(u64, u64),
    Reals(f64, f64),
    /// Byte strings that sort by their bytes. The sign bit of decimals is flipped for this.
    Bytes(Vec<u8>, Vec<u8>),
}

/// The minimum and maximum of ordered items.
fn extremes<T: Copy + Ord>(values: &[T]) -> Option<(T, T)> {
    let (first, rest) = values.split_first()?;
    Some(rest.iter().fold((*first, *first), |(low, high), v| (low.min(*v), high.max(*v))))
}

/// The sign bit of the first eight bytes of a decimal.
const SIGN: u64 = 1 << 63;

/// The first eight of the `length` bytes at `at`, as a number that sorts like them. Missing bytes count as zeros.
#[inline(always)]
fn start(data: &[u8], at: usize, length: usize) -> u64 {
    let whole = match data.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(start) => u64::from_be_bytes(*start),
        None => data[at..].iter().rev().fold(0, |n, byte| n >> 8 | u64::from(*byte) << 56),
    };
    // Without a branch: lengths are as random as the strings.
    let after = u64::MAX.unbounded_shr(8 * length as u32);
    whole & !after
}

/// The minimum and maximum of byte strings, each with a start that sorts like it. Nearly all of them are decided by
/// the start: an equal one needs a whole comparison, a smaller one does not.
#[inline(always)]
fn byte_extremes<'a, S: Copy + Ord>(
    mut values: impl Iterator<Item = (S, &'a [u8])>,
) -> Option<(&'a [u8], &'a [u8])> {
    let (first_start, first) = values.next()?;
    let (mut low, mut low_start, mut high, mut high_start) = (first, first_start, first, first_start);
    for (start, value) in values {
        if start <= low_start && (start < low_start || value < low) {
            (low, low_start) = (value, start);
        }
        if start >= high_start && (start > high_start || value > high) {
            (high, high_start) = (value, start);
        }
    }
    Some((low, high))
}

/// The minimum and maximum of strings.
fn string_extremes(strings: &ByteStrings) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    byte_extremes(strings.ends.iter().map(|end| {
        let (from, to) = (at, *end as usize);
        at = to;
        (start(&strings.data, from, to - from), &strings.data[from..to])
    }))
}

/// The minimum and maximum of values of `width` bytes, compared after the `flipped` bits of their first eight were
/// flipped.
fn fixed_extremes(data: &[u8], width: usize, flipped: u64) -> Option<(&[u8], &[u8])> {
    let values = data.chunks_exact(width);
    // The first eight bytes of small decimals are the same; together with the last eight they are the whole value.
    if flipped != 0 && (8..=16).contains(&width) {
        let halves = |value| [start(value, 0, 8) ^ flipped, start(value, width - 8, 8)];
        return byte_extremes(values.map(|value| (halves(value), value)));
    }
    byte_extremes(values.map(|value| (start(value, 0, width) ^ flipped, value)))
}

fn reals(values: impl Iterator<Item = f64>) -> Option<Bounds> {
    let fold = |bounds: Option<(f64, f64)>, v: f64| match bounds {
        _ if v.is_nan() => bounds,
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    };
    values.fold(None, fold).map(|(low, high)| Bounds::Reals(low, high))
}

fn half(bytes: &[u8]) -> f64 {
    half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f64()
}

impl Bounds {
    /// The bounds of a page's values; `None` if it has no values, or none with an order.
    pub(crate) fn new(leaf: &Leaf, buffer: &ValueBuffer) -> Option<Bounds> {
        let unsigned = matches!(leaf.kind, LogicalType::Integer { signed: false, .. });
        match buffer {
            _ if !leaf.kind.is_ordered() => None,
            ValueBuffer::Ids(ids) => {
                let template = leaf.template()?;
                let (low, high) = extremes(ids)?;
                (high <= template.largest_ordered_id()?).then_some(Bounds::Codes(low, high))
            }
            ValueBuffer::Rows { .. } => Bounds::new(leaf, &buffer.plain(leaf)),
            ValueBuffer::Indices(v) => {
                let ordered = match &leaf.values {
                    ValueSpec::Choice { dictionary, .. } => dictionary.ordered as u32,
                    _ => u32::MAX,
                };
                let (low, high) = extremes(v)?;
                // Entries after the last ordered one are NaN.
                let high = if high < ordered { high } else { *v.iter().filter(|i| **i < ordered).max()? };
                Some(Bounds::Codes(low.into(), high.into()))
            }
            ValueBuffer::Names(v) => extremes(v).map(|(low, high)| Bounds::Codes(low.into(), high.into())),
            ValueBuffer::Booleans(v) => extremes(v).map(|(low, high)| Bounds::Codes(low.into(), high.into())),
            ValueBuffer::Int32(v) if unsigned => {
                let low = v.iter().map(|v| *v as u32).min()?;
                Some(Bounds::Naturals(low.into(), v.iter().map(|v| u64::from(*v as u32)).max()?))
            }
            ValueBuffer::Int64(v) if unsigned => {
                let low = v.iter().map(|v| *v as u64).min()?;
                Some(Bounds::Naturals(low, v.iter().map(|v| *v as u64).max()?))
            }
            ValueBuffer::Int32(v) => extremes(v).map(|(low, high)| Bounds::Integers(low.into(), high.into())),
            ValueBuffer::Int64(v) => extremes(v).map(|(low, high)| Bounds::Integers(low, high)),
            ValueBuffer::Float(v) => reals(v.iter().map(|v| f64::from(*v))),
            ValueBuffer::Double(v) => reals(v.iter().copied()),
            ValueBuffer::Fixed { width: 2, data } if leaf.kind == LogicalType::Float16 => {
                reals(data.chunks_exact(2).map(half))
            }
            ValueBuffer::Fixed { width, data } => {
                let sign = if is_decimal(leaf) { SIGN } else { 0 };
                let (low, high) = fixed_extremes(data, *width, sign)?;
                Some(Bounds::Bytes(turned(leaf, low.to_vec()), turned(leaf, high.to_vec())))
            }
            ValueBuffer::Bytes(strings) => {
                let (low, high) = string_extremes(strings)?;
                Some(Bounds::Bytes(short_low(leaf, low), short_high(leaf, high)))
            }
        }
    }

    pub(crate) fn union(&self, other: &Bounds) -> Bounds {
        match (self, other) {
            (Bounds::Codes(a, b), Bounds::Codes(c, d)) => Bounds::Codes(*a.min(c), *b.max(d)),
            (Bounds::Integers(a, b), Bounds::Integers(c, d)) => Bounds::Integers(*a.min(c), *b.max(d)),
            (Bounds::Naturals(a, b), Bounds::Naturals(c, d)) => Bounds::Naturals(*a.min(c), *b.max(d)),
            (Bounds::Reals(a, b), Bounds::Reals(c, d)) => Bounds::Reals(a.min(*c), b.max(*d)),
            (Bounds::Bytes(a, b), Bounds::Bytes(c, d)) => Bounds::Bytes(a.min(c).clone(), b.max(d).clone()),
            // All bounds of a column are of the same kind.
            (one, _) => one.clone(),
        }
    }

    /// Whether each bound is at most the other's bound.
    pub(crate) fn at_most(&self, other: &Bounds) -> bool {
        match (self, other) {
            (Bounds::Codes(a, b), Bounds::Codes(c, d)) => a <= c && b <= d,
            (Bounds::Integers(a, b), Bounds::Integers(c, d)) => a <= c && b <= d,
            (Bounds::Naturals(a, b), Bounds::Naturals(c, d)) => a <= c && b <= d,
            (Bounds::Reals(a, b), Bounds::Reals(c, d)) => a <= c && b <= d,
            (Bounds::Bytes(a, b), Bounds::Bytes(c, d)) => a <= c && b <= d,
            _ => false,
        }
    }

    /// The minimum and maximum in the encoding of `Statistics`, for a column of `leaf`.
    pub(crate) fn plain(&self, leaf: &Leaf) -> (Vec<u8>, Vec<u8>) {
        let code = |code: u64, zero: f64| match &leaf.values {
            ValueSpec::Choice { dictionary, .. } => {
                let entry = dictionary.entries[code as usize].clone();
                // All bits but the sign.
                let (sign, rest) = entry.split_last().map_or((0, &[][..]), |(last, rest)| (*last, rest));
                let is_zero = leaf.kind.is_real() && sign & 0x7F == 0 && rest.iter().all(|b| *b == 0);
                if is_zero { real(leaf, zero) } else { entry }
            }
            ValueSpec::PersonName => {
                let mut out = Vec::new();
                person_name::render(code as u32, &mut out);
                out
            }
            _ => match leaf.template() {
                Some(template) => {
                    let mut out = Vec::new();
                    template.render(code, &mut out);
                    out
                }
                None => vec![code as u8],
            },
        };
        let width = leaf.physical.width().unwrap_or(8).min(8);
        match self {
            Bounds::Codes(low, high) => {
                (short_low(leaf, &code(*low, -0.0)), short_high(leaf, &code(*high, 0.0)))
            }
            Bounds::Integers(low, high) => {
                (low.to_le_bytes()[..width].to_vec(), high.to_le_bytes()[..width].to_vec())
            }
            Bounds::Naturals(low, high) => {
                (low.to_le_bytes()[..width].to_vec(), high.to_le_bytes()[..width].to_vec())
            }
            Bounds::Reals(low, high) => {
                let (low, high) = (*low, *high);
                (
                    real(leaf, if low == 0.0 { -0.0 } else { low }),
                    real(leaf, if high == 0.0 { 0.0 } else { high }),
                )
            }
            Bounds::Bytes(low, high) => (turned(leaf, low.clone()), turned(leaf, high.clone())),
        }
    }
}

/// A real number in the encoding of the leaf.
fn real(leaf: &Leaf, value: f64) -> Vec<u8> {
    match leaf.physical {
        Physical::Fixed(_) => half::f16::from_f64(value).to_le_bytes().to_vec(),
        Physical::Float => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

fn is_decimal(leaf: &Leaf) -> bool {
    matches!(leaf.kind, LogicalType::Decimal { .. })
}

/// The bytes of a decimal with the sign bit flipped, which sorts negative numbers first; other bytes
/// unchanged. It is its own inverse.
fn turned(leaf: &Leaf, mut bytes: Vec<u8>) -> Vec<u8> {
    if let (true, Some(first)) = (is_decimal(leaf), bytes.first_mut()) {
        *first ^= 0x80;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::literal::big_endian;

    proptest! {
        #[test]
        fn extremes_of_byte_strings_are_those_of_their_order(
            strings in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..12), 1..30),
        ) {
            let mut joined = ByteStrings::default();
            for string in &strings {
                joined.data.extend(string);
                joined.push_end();
            }
            let found = string_extremes(&joined).unwrap();
            prop_assert_eq!(found.0, strings.iter().min().unwrap().as_slice());
            prop_assert_eq!(found.1, strings.iter().max().unwrap().as_slice());
        }

        #[test]
        fn extremes_of_decimals_are_those_of_their_numbers(
            numbers in proptest::collection::vec(prop_oneof![-3i128..3, any::<i128>()], 1..30),
        ) {
            for width in [5, 8, 11, 16, 20] {
                let mut bytes = vec![0; numbers.len() * width];
                let cut = |n: i128| n << (128 - 8 * width.min(16)) >> (128 - 8 * width.min(16));
                let each = bytes.chunks_exact_mut(width).zip(&numbers);
                each.for_each(|(out, n)| big_endian(cut(*n), out));
                let of = |n: Option<i128>| {
                    let mut out = vec![0; width];
                    big_endian(n.unwrap(), &mut out);
                    out
                };
                let found = fixed_extremes(&bytes, width, SIGN).unwrap();
                prop_assert_eq!(found.0, of(numbers.iter().map(|n| cut(*n)).min()));
                prop_assert_eq!(found.1, of(numbers.iter().map(|n| cut(*n)).max()));
            }
        }
    }

    #[test]
    fn a_zero_minimum_is_negative_a_zero_maximum_positive_and_nan_is_ignored() {
        let leaf = Leaf::new(0, LogicalType::Double, ValueSpec::Reals { min: 0.0, width: 1.0 });
        let bounds = Bounds::new(&leaf, &ValueBuffer::Double(vec![f64::NAN, -0.0, 0.0])).unwrap();
        let (low, high) = bounds.plain(&leaf);
        assert_eq!(low, (-0.0f64).to_le_bytes());
        assert_eq!(high, 0.0f64.to_le_bytes());
        assert_eq!(Bounds::new(&leaf, &ValueBuffer::Float(vec![f32::NAN])), None);
    }
}
