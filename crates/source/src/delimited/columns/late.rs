//! Values after the sample that gave a column its type: each is one that inference takes, or an error.

use arrow_array::ArrayRef;

use super::arrays::{Fields, Part, Texts, array};
use super::column_type::ColumnType;
use super::formats::Formats;
use super::inference::accepts;
use super::numbers::has_letters;

/// The type of a column, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Typing {
    pub of: ColumnType,
    /// Whether a sample says so. A user or a table that says so means the conversion, too: `007` is an integer.
    pub inferred: bool,
}

impl Typing {
    /// Returns the array of texts.
    ///
    /// # Errors
    /// The row of the first text that the type does not have, or that inference would not have taken. A moment without
    /// a zone is an error of a stated type, too.
    pub(crate) fn array(self, texts: &impl Texts, formats: &Formats) -> Result<ArrayRef, usize> {
        let of = self.of;
        let is_tested = match of {
            // A time without a zone is not of this type, whether a sample or a user gave it.
            ColumnType::TimestampUtc(_) => true,
            ColumnType::Bool | ColumnType::Int64 | ColumnType::Float64 | ColumnType::Decimal(..) => {
                self.inferred
            }
            // Others are parsed by the test of inference itself.
            _ => false,
        };
        match is_tested {
            true => array(&Late { texts, formats, of }, formats, of),
            false => array(texts, formats, of),
        }
    }

    /// Returns the array of fields.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub(crate) fn array_of(self, mut fields: Fields<'_>) -> Result<ArrayRef, usize> {
        fields.trims = self.of != ColumnType::Text;
        self.array(&fields, &fields.dialect.formats)
    }
}

/// The texts of a column of an inferred type.
struct Late<'t, T> {
    texts: &'t T,
    formats: &'t Formats,
    of: ColumnType,
}

impl<T: Texts> Texts for Late<'_, T> {
    fn rows(&self) -> usize {
        self.texts.rows()
    }

    #[inline(always)]
    fn try_each(
        &self,
        mut each: impl FnMut(usize, Option<Part<'_>>) -> Result<(), usize>,
    ) -> Result<(), usize> {
        let Self { texts, formats, of } = *self;
        let mark = if formats.decimal_comma { b',' } else { b'.' };
        texts.try_each(|row, text| {
            let is_changed =
                |text: Part<'_>| may_change(of, text.bytes(), mark) && !accepts(of, text.text(), formats);
            if text.is_some_and(is_changed) { Err(row) } else { each(row, text) }
        })
    }
}

/// Whether a type may change the value that it reads from a text: a cheap test that passes most values. `mark` is
/// before the fraction.
#[inline(always)]
fn may_change(of: ColumnType, text: &[u8], mark: u8) -> bool {
    let plain = |unsigned: &[u8]| match unsigned {
        [b'1'..=b'9', ..] | [b'0'] => true,
        [b'0', next, ..] => *next == mark,
        [first, ..] => *first == mark,
        [] => false,
    };
    match of {
        // PostgreSQL's other words are shorter, or the beginning `fals`.
        ColumnType::Bool => text.len() < 4 || matches!(text.last(), Some(b's' | b'S')),
        ColumnType::Int64 => !matches!(text, [b'0'] | [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..]),
        ColumnType::Decimal(..) => {
            !(plain(text) || matches!(text, [b'-', b'1'..=b'9', ..])) || has_letters(text)
        }
        ColumnType::Float64 => {
            text.len() > MAX_EXACT || !plain(text.strip_prefix(b"-").unwrap_or(text)) || has_letters(text)
        }
        // An offset comes after a date and an hour.
        ColumnType::TimestampUtc(_) => {
            !text.iter().skip(13).any(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'))
        }
        _ => false,
    }
}

/// Floats keep all numbers of this many characters that have no exponent.
const MAX_EXACT: usize = 15;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A column of one value.
    struct One<'t>(&'t str);

    impl Texts for One<'_> {
        fn rows(&self) -> usize {
            1
        }

        fn try_each(
            &self,
            mut each: impl FnMut(usize, Option<Part<'_>>) -> Result<(), usize>,
        ) -> Result<(), usize> {
            each(0, Some(Part::new(self.0)))
        }
    }

    const NUMBERS: &str = "[-+]?0{0,2}[0-9]{0,18}[.,]?[0-9]{0,18}0?([eE]-?[0-9]{1,3})?";
    const MOMENTS: &str = "20[0-9]{2}-0[1-9]-0[1-9]([T ]1[0-9]:00(:00)?([.]5)?(Z|[+-]0[0-9](:?00)?)?)?";
    const WORDS: &str = "true|TRUE|tru|t|1|yes|y|on|o|false|False|fals|f|0|no|n|of|NaN|inf|-inf";

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]
        #[test]
        fn the_cheap_test_passes_no_value_that_inference_refuses(
            text in prop_oneof![NUMBERS, MOMENTS, WORDS],
            decimal_comma: bool,
            thousands: bool,
        ) {
            let separator = if decimal_comma { b'.' } else { b',' };
            let thousands = thousands.then_some(separator);
            let formats = Formats { decimal_comma, thousands, ..Formats::default() };
            for of in ["bool", "int64", "float64", "decimal(38,0)", "decimal(38,3)", "timestamptz", "timestamptz_ns"] {
                let of: ColumnType = of.parse().unwrap();
                let read = |inferred| Typing { of, inferred }.array(&One(&text), &formats).is_ok();
                prop_assert_eq!(read(true), read(false) && accepts(of, &text, &formats), "{:?} {}", text, of);
            }
        }
    }
}
