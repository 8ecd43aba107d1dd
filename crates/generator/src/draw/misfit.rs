//! Values that their column cannot hold: found while a block of rows is drawn, an error where the row was asked for.

use crate::draw::value_spec::ValueSpec;
use crate::types::logical_type::LogicalType;
use crate::types::logical_type::type_text;
use crate::types::number::Number;

/// Why a drawn value is none that its column can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Misfit {
    /// The type has no place for this number, given in ones.
    Outside(Number),
    DividedByZero,
    /// A function that has no value for this argument.
    Undefined(&'static str, f64),
    /// A formula came to a number of more than 128 bits on its way.
    TooLarge,
}

impl Misfit {
    /// What is wrong, in words, with a value of type `kind`.
    pub(crate) fn described(self, kind: &LogicalType) -> String {
        match self {
            Misfit::Outside(Number::Real(value)) if value.is_nan() => {
                format!("{} cannot hold a value that is not a number", type_text(kind))
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
            Misfit::Undefined(function, argument) => format!("there is no {function}({argument})"),
            Misfit::TooLarge => "the formula comes to a number of more than 128 bits".to_owned(),
        }
    }

    /// What to do about it in a column of these values.
    pub(crate) fn advice(self, values: &ValueSpec) -> &'static str {
        match (self, values) {
            (Misfit::DividedByZero, _) => "keep the divisor from being 0, for example with max(1, ...)",
            (Misfit::Undefined(..), _) => {
                "keep the argument where the function is defined, for example with max()"
            }
            (_, ValueSpec::Expression(_)) => {
                "take a wider type, or keep the formula within it with min() and max(); dates and times count in the \
                 unit of their type"
            }
            (_, ValueSpec::Curve { .. }) => "give the distribution `min` and `max`, or take a wider type",
            _ => "take a wider type, a smaller step or fewer rows",
        }
    }
}

/// A real number as the whole number nearest to it, `None` where that has more than 128 bits or there is none.
#[inline(always)]
pub(crate) fn nearest_whole(value: f64) -> Option<i128> {
    // 2^127 is a double, and every smaller double is an i128.
    const MOST: f64 = (1u128 << 127) as f64;
    let rounded = value.round();
    (rounded.abs() < MOST).then_some(rounded as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_reals_never_saturate() {
        assert_eq!(nearest_whole(-2.5), Some(-3));
        assert_eq!(nearest_whole(1e38), Some(1e38 as i128));
        for none in [1.8e38, -1.8e38, f64::INFINITY, f64::NAN] {
            assert_eq!(nearest_whole(none), None, "{none}");
        }
    }
}
