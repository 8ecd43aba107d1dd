//! Least and greatest value of a page or a column chunk, from values that are still codes.
//!
//! (Parquet format, `parquet.thrift`, `Statistics`: `min_value` and `max_value` are PLAIN encoded
//! without a length, ordered as the column's type is; NaN is left out, a zero minimum is written
//! as -0.0 and a zero maximum as +0.0.)

use crate::person_name;
use crate::values::{ValueBuffer, Values};

/// The bounds of some values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bounds {
    /// Codes whose order is the order of their values: indices of a sorted dictionary, names, ids.
    Codes(u64, u64),
    Integers(i64, i64),
    Reals(f64, f64),
}

impl Bounds {
    /// The bounds of a page's values, `None` where there are no values or none that are ordered.
    pub(crate) fn of(values: &Values, buffer: &ValueBuffer) -> Option<Bounds> {
        fn codes<T: Copy + Ord + Into<u64>>(codes: &[T]) -> Option<Bounds> {
            let (first, rest) = codes.split_first()?;
            let fold = |(low, high): (T, T), c: &T| (low.min(*c), high.max(*c));
            let (low, high) = rest.iter().fold((*first, *first), fold);
            Some(Bounds::Codes(low.into(), high.into()))
        }
        fn integers<T: Copy + Ord + Into<i64>>(values: &[T]) -> Option<Bounds> {
            Some(Bounds::Integers((*values.iter().min()?).into(), (*values.iter().max()?).into()))
        }
        fn reals(values: impl Iterator<Item = f64>) -> Option<Bounds> {
            let fold = |bounds: Option<(f64, f64)>, v: f64| match bounds {
                _ if v.is_nan() => bounds,
                None => Some((v, v)),
                Some((low, high)) => Some((low.min(v), high.max(v))),
            };
            values.fold(None, fold).map(|(low, high)| Bounds::Reals(low, high))
        }
        match (values, buffer) {
            // Ids grow from row to row.
            (Values::Unique(template), ValueBuffer::Ids(ids)) => {
                let (first, last) = (*ids.first()?, *ids.last()?);
                (last <= template.largest_ordered_id()?).then_some(Bounds::Codes(first, last))
            }
            (_, ValueBuffer::Ids(_)) => None,
            (_, ValueBuffer::Names(v) | ValueBuffer::Indices(v)) => codes(v),
            (_, ValueBuffer::Booleans(v)) => codes(v),
            (_, ValueBuffer::Int32(v)) => integers(v),
            (_, ValueBuffer::Int64(v)) => integers(v),
            (_, ValueBuffer::Float(v)) => reals(v.iter().map(|v| f64::from(*v))),
            (_, ValueBuffer::Double(v)) => reals(v.iter().copied()),
        }
    }

    /// The bounds of both.
    pub(crate) fn union(&self, other: &Bounds) -> Bounds {
        match (self, other) {
            (Bounds::Codes(a, b), Bounds::Codes(c, d)) => Bounds::Codes(*a.min(c), *b.max(d)),
            (Bounds::Integers(a, b), Bounds::Integers(c, d)) => Bounds::Integers(*a.min(c), *b.max(d)),
            (Bounds::Reals(a, b), Bounds::Reals(c, d)) => Bounds::Reals(a.min(*c), b.max(*d)),
            // A column has bounds of one kind.
            (one, _) => one.clone(),
        }
    }

    /// Whether neither bound is above the other's.
    pub(crate) fn at_most(&self, other: &Bounds) -> bool {
        match (self, other) {
            (Bounds::Codes(a, b), Bounds::Codes(c, d)) => a <= c && b <= d,
            (Bounds::Integers(a, b), Bounds::Integers(c, d)) => a <= c && b <= d,
            (Bounds::Reals(a, b), Bounds::Reals(c, d)) => a <= c && b <= d,
            _ => false,
        }
    }

    /// Least and greatest value as `Statistics` has them, for a column drawn by `values`; `width`
    /// is 4 or 8 bytes for numbers.
    pub(crate) fn plain(&self, values: &Values, width: usize) -> (Vec<u8>, Vec<u8>) {
        let code = |code: u64| match values {
            Values::Choice { dictionary, .. } => dictionary.entries[code as usize].clone(),
            Values::Unique(template) => {
                let mut out = Vec::new();
                template.render(code, &mut out);
                out
            }
            Values::PersonName => {
                let mut out = Vec::new();
                person_name::render(code as u32, &mut out);
                out
            }
            _ => vec![code as u8],
        };
        let real = |v: f64| match width {
            4 => (v as f32).to_le_bytes().to_vec(),
            _ => v.to_le_bytes().to_vec(),
        };
        match *self {
            Bounds::Codes(low, high) => (code(low), code(high)),
            Bounds::Integers(low, high) => {
                (low.to_le_bytes()[..width].to_vec(), high.to_le_bytes()[..width].to_vec())
            }
            Bounds::Reals(low, high) => {
                (real(if low == 0.0 { -0.0 } else { low }), real(if high == 0.0 { 0.0 } else { high }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_signed_outwards_and_nan_is_left_out() {
        let values = Values::Reals { min: 0.0, width: 1.0 };
        let bounds = Bounds::of(&values, &ValueBuffer::Double(vec![f64::NAN, -0.0, 0.0])).unwrap();
        let (low, high) = bounds.plain(&values, 8);
        assert_eq!(low, (-0.0f64).to_le_bytes());
        assert_eq!(high, 0.0f64.to_le_bytes());
        assert_eq!(Bounds::of(&values, &ValueBuffer::Float(vec![f32::NAN])), None);
    }
}
