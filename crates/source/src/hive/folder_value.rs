//! The value of a column in all rows of a file, from a folder's name or a table's log, and the arrays of its rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int64Array, StringViewArray, UInt64Array, new_null_array};
use arrow_select::take::take;

use super::FolderKind;
use crate::condition::days_of;
use crate::condition::pruning::{Bounds, Known, Nulls};

/// The value of a folder's column in all rows of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FolderValue {
    Null(FolderKind),
    Integer(i64),
    /// Days since 1970-01-01.
    Date(i32),
    Text(String),
    /// The only value of an array.
    Given(ArrayRef),
}

/// Infers the type of these texts.
pub(super) fn infer<'a>(texts: impl Iterator<Item = &'a str>) -> FolderKind {
    let (mut integers, mut dates, mut any) = (true, true, false);
    for text in texts {
        any = true;
        integers &= integer(text).is_some();
        dates &= date(text).is_some();
    }
    match any {
        true if integers => FolderKind::Integer,
        true if dates => FolderKind::Date,
        _ => FolderKind::Text,
    }
}

/// Parses an integer whose digits are exactly this text; `01` is not one, because its zero would be lost.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// Parses a date such as `2024-01-31`.
fn date(text: &str) -> Option<i32> {
    let is_date = text.len() == 10 && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    i32::try_from(days_of(text)?).ok().filter(|_| is_date)
}

impl FolderValue {
    /// Returns the value of a text of the kind that [`infer`] returned; `None` is null.
    pub(super) fn new(kind: FolderKind, text: Option<&str>) -> Self {
        let value = text.and_then(|text| match kind {
            FolderKind::Integer => integer(text).map(Self::Integer),
            FolderKind::Date => date(text).map(Self::Date),
            FolderKind::Text => Some(Self::Text(text.to_owned())),
        });
        value.unwrap_or(Self::Null(kind))
    }

    /// Returns an array that repeats the value `rows` times.
    pub(crate) fn array(&self, rows: usize) -> ArrayRef {
        match self {
            Self::Null(kind) => new_null_array(&kind.data_type(), rows),
            Self::Integer(value) => Arc::new(Int64Array::from_value(*value, rows)),
            Self::Date(days) => Arc::new(Date32Array::from_value(*days, rows)),
            Self::Given(array) if array.is_null(0) => new_null_array(array.data_type(), rows),
            // A batch of another length than asked for is an error where it is used.
            Self::Given(array) => take(array, &UInt64Array::from_value(0, rows), None)
                .unwrap_or_else(|_| new_null_array(array.data_type(), 0)),
            Self::Text(text) => {
                let mut array = arrow_array::builder::StringViewBuilder::new().with_deduplicate_strings();
                (0..rows).for_each(|_| array.append_value(text));
                let array: StringViewArray = array.finish();
                Arc::new(array)
            }
        }
    }

    /// Returns the value as statistics, known without reading a row.
    pub(crate) fn known(&self) -> Known {
        let bounds = match self {
            Self::Null(_) => None,
            Self::Integer(value) => Some(Bounds::Whole((*value).into(), (*value).into())),
            Self::Date(days) => Some(Bounds::Whole((*days).into(), (*days).into())),
            Self::Text(text) => Some(Bounds::Bytes(text.clone().into(), text.clone().into())),
            Self::Given(array) => {
                let nulls = if array.is_null(0) { Nulls::All } else { Nulls::None };
                return Known { bounds: None, nulls };
            }
        };
        let nulls = if bounds.is_some() { Nulls::None } else { Nulls::All };
        Known { bounds, nulls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_type_of_all_its_values() {
        let of = |texts: &[&str]| infer(texts.iter().copied());
        assert_eq!(of(&["2020", "-7", "0"]), FolderKind::Integer);
        assert_eq!(of(&["9223372036854775807", "-9223372036854775808"]), FolderKind::Integer);
        assert_eq!(of(&["2024-01-31", "2024-02-29"]), FolderKind::Date);
        for texts in [
            &["2020", "x"][..],
            &["01", "12"],
            &["01234", "99999"],
            &["2024-02-30"],
            &["2024-1-31"],
            &["2024-01-31", "7"],
            &["9223372036854775808"],
            &["1.5"],
            &["+1"],
            &["-0"],
            &["-"],
            &[""],
            &[],
        ] {
            assert_eq!(of(texts), FolderKind::Text, "{texts:?}");
        }
    }
}
