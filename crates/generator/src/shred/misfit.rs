//! Values that their column cannot hold: found while a block of rows is drawn, an error where the row was asked for.

use std::ops::Range;

use crate::draw::values::Values;
use crate::error::Error;
use crate::expression::Number;
use crate::spec::dataset::{Field, Leaf};
use crate::spec::explain::type_text;
use crate::spec::logical_type::LogicalType;

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

/// The first value that does not fit, among the values that were asked for.
pub(crate) struct FirstMisfit {
    wanted: Range<usize>,
    pub found: Option<(usize, Misfit)>,
}

impl FirstMisfit {
    /// Of the values `wanted` of those that are drawn together.
    pub(crate) fn among(wanted: Range<usize>) -> Self {
        FirstMisfit { wanted, found: None }
    }

    /// Value `i`, or a stand-in where it does not fit.
    #[inline(always)]
    pub(crate) fn or_stand_in<T: Default>(&mut self, i: usize, value: Result<T, Misfit>) -> T {
        value.unwrap_or_else(|misfit| {
            if self.found.is_none() && self.wanted.contains(&i) {
                self.found = Some((i, misfit));
            }
            T::default()
        })
    }
}

/// A misfit and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MisfitAt {
    /// The row, numbered over the whole dataset.
    pub row: u64,
    /// The position of the column.
    pub leaf: usize,
    pub misfit: Misfit,
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
    pub(crate) fn advice(self, values: &Values) -> &'static str {
        match (self, values) {
            (Misfit::DividedByZero, _) => "keep the divisor from being 0, for example with max(1, ...)",
            (Misfit::Undefined(..), _) => {
                "keep the argument where the function is defined, for example with max()"
            }
            (_, Values::Expression(_)) => {
                "take a wider type, or keep the formula within it with min() and max(); dates and times count in the \
                 unit of their type"
            }
            (_, Values::Curve { .. }) => "give the distribution `min` and `max`, or take a wider type",
            _ => "take a wider type, a smaller step or fewer rows",
        }
    }
}

impl MisfitAt {
    /// The error about it, in a column that is `leaf` in `field`.
    pub(crate) fn error(&self, field: &Field, leaf: &Leaf) -> Error {
        let place = format!("field {}, row {}", field.path, self.row);
        Error::spec(self.misfit.described(&leaf.kind), place, self.misfit.advice(&leaf.values))
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
    fn only_the_first_wanted_misfit_is_kept() {
        let mut misfits = FirstMisfit::among(2..5);
        for i in 0..8 {
            let value = if i == 3 { Ok(7) } else { Err(Misfit::Undefined("ln", i as f64)) };
            assert_eq!(misfits.or_stand_in(i, value), if i == 3 { 7 } else { 0 });
        }
        assert_eq!(misfits.found, Some((2, Misfit::Undefined("ln", 2.0))));
    }

    #[test]
    fn whole_numbers_of_reals_never_saturate() {
        assert_eq!(nearest_whole(-2.5), Some(-3));
        assert_eq!(nearest_whole(1e38), Some(1e38 as i128));
        for none in [1.8e38, -1.8e38, f64::INFINITY, f64::NAN] {
            assert_eq!(nearest_whole(none), None, "{none}");
        }
    }
}
