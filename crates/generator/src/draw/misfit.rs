//! Values that their column cannot hold. A misfit becomes an error only if its row was requested.

use crate::draw::value_spec::ValueSpec;
use crate::types::logical_type::{LogicalType, type_text};
use crate::types::number::Number;

/// Why a column cannot hold a drawn value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Misfit {
    /// This number is outside of the type's range.
    Outside(Number),
    DividedByZero,
    /// A function that is undefined for this argument.
    Undefined(&'static str, f64),
    /// Another table has no row to take a column from.
    NoRow,
    /// A formula had an intermediate result of more than 128 bits.
    TooLarge,
}

impl Misfit {
    /// The message for a value of type `kind`.
    pub(crate) fn described(self, kind: &LogicalType) -> String {
        match self {
            Misfit::Outside(Number::Real(value)) if value.is_nan() => {
                format!("{} cannot hold NaN", type_text(kind))
            }
            Misfit::Outside(value) => {
                let range = match kind {
                    LogicalType::Integer { .. } | LogicalType::Date | LogicalType::Time { .. } => {
                        let (low, high) = kind.range();
                        format!(", which holds {low} to {high}")
                    }
                    _ => String::new(),
                };
                format!("the value {value} does not fit {}{range}", type_text(kind))
            }
            Misfit::DividedByZero => "the formula divides by zero".to_owned(),
            Misfit::Undefined(function, argument) => format!("{function}({argument}) is undefined"),
            Misfit::NoRow => "no row of the other table belongs to this row".to_owned(),
            Misfit::TooLarge => "the formula computes a number of more than 128 bits".to_owned(),
        }
    }

    /// The advice for a column of these values.
    pub(crate) fn advice(self, values: &ValueSpec) -> &'static str {
        match (self, values) {
            (Misfit::NoRow, _) => "make only as many rows as the spec declares for this table",
            (Misfit::DividedByZero, _) => "avoid a divisor of 0, for example with max(1, ...)",
            (Misfit::Undefined(..), _) => {
                "limit the argument to where the function is defined, for example with max()"
            }
            (_, ValueSpec::Expression(_)) => {
                "use a wider type, or limit the formula with min() and max(); dates and times count in the unit of \
                 their type"
            }
            (_, ValueSpec::Curve { .. }) => "set `min` and `max` of the distribution, or use a wider type",
            (_, ValueSpec::Own(_)) => {
                "let the distribution draw numbers of the field's type, or use a wider type"
            }
            _ => "use a wider type, a smaller step or fewer rows",
        }
    }
}

/// The nearest whole number; `None` for NaN, infinity and numbers of more than 128 bits.
#[inline(always)]
pub(crate) fn nearest_whole(value: f64) -> Option<i128> {
    // Up to here every double has its fraction, and the difference is exact.
    const FRACTIONS: f64 = (1u64 << 52) as f64;
    if value.abs() < FRACTIONS {
        let whole = value as i64;
        let rest = value - whole as f64;
        return Some((whole + i64::from(rest >= 0.5) - i64::from(rest <= -0.5)).into());
    }
    // 2^127 is a double, and every smaller double is an i128.
    const MAX: f64 = (1u128 << 127) as f64;
    let rounded = value.round();
    (rounded.abs() < MAX).then_some(rounded as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_numbers_are_rounded_without_saturating() {
        assert_eq!(nearest_whole(-2.5), Some(-3));
        for v in [0.5, 1.5, -0.5, 0.499_999_999_999_999_94, -1e15 - 0.5, 4.5e15, 9e15, 1e18, -7.25] {
            assert_eq!(nearest_whole(v), Some(v.round() as i128), "{v}");
        }
        assert_eq!(nearest_whole(1e38), Some(1e38 as i128));
        for none in [1.8e38, -1.8e38, f64::INFINITY, f64::NAN] {
            assert_eq!(nearest_whole(none), None, "{none}");
        }
    }
}
