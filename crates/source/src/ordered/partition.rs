//! How rows are assigned to partitions: by year, month, day or hour of a time, or by the values of a column.

use std::fmt;
use std::str::FromStr;

use arrow_schema::{DataType, Field, Schema};
use sawmill_profile::{Error, Kind, Result, civil, days_from_civil};

use crate::condition::pruning::{Bounds, Known, Nulls};
use crate::parquet_files::schema::UUID_EXTENSION;

/// A span of time, in UTC for timestamps with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// A calendar year.
    Year,
    /// A calendar month.
    Month,
    /// A day.
    Day,
    /// An hour.
    Hour,
}

/// How rows are assigned to partitions.
///
/// ```
/// use sawmill_source::PartitionedBy;
/// let by: PartitionedBy = "day(\"picked up\")".parse()?;
/// assert_eq!(by.to_string(), "day(\"picked up\")");
/// assert!("week(at)".parse::<PartitionedBy>().is_err());
/// # Ok::<(), sawmill_source::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PartitionedBy {
    /// By the period of a column's time.
    Period(Period, String),
    /// By the values of a column.
    List(String),
}

/// The common property of a partition's rows. Slots compare in the order of their values, null last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// All rows: no partitions.
    All,
    /// The number of a period since 1970, or a whole number.
    Number(i128),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// No value.
    Null,
}

impl Period {
    /// The name of the period, which is also the folders' column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
        }
    }

    /// Returns the number of the period of a time, and the range of times of that period; times count `a_day`
    /// per day. The ends of the range are cut to what 64 bits hold.
    pub(super) fn containing(self, time: i64, a_day: i64) -> (i64, i64, i64) {
        let day = time.div_euclid(a_day);
        let number = match self {
            Self::Year => civil(day).0 - 1970,
            Self::Month => {
                let (year, month, _) = civil(day);
                (year - 1970) * 12 + month - 1
            }
            Self::Day => day,
            // A date has no hours: it is the first hour of its day.
            Self::Hour => {
                day * 24
                    + i64::try_from(i128::from(time.rem_euclid(a_day)) * 24 / i128::from(a_day)).unwrap_or(0)
            }
        };
        let (from, to) = self.range(number, a_day);
        (number, from, to)
    }

    /// The first time of a period and the first one after it.
    pub(super) fn range(self, number: i64, a_day: i64) -> (i64, i64) {
        let start = |number: i64| -> i128 {
            let day = match self {
                Self::Year => days_from_civil(1970 + number, 1, 1),
                Self::Month => days_from_civil(1970, number + 1, 1),
                Self::Day => number,
                Self::Hour => return i128::from(number) * i128::from(a_day) / 24,
            };
            i128::from(day) * i128::from(a_day)
        };
        let cut = |time: i128| i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX });
        (cut(start(number)), cut(start(number + 1)))
    }

    /// The text of a period: `2024`, `2024-01`, `2024-01-05` or `2024-01-05T13`.
    pub fn text(self, number: i64) -> String {
        let day = match self {
            Self::Year => return format!("{:04}", 1970 + number),
            Self::Month => days_from_civil(1970, number + 1, 1),
            Self::Day => number,
            Self::Hour => number.div_euclid(24),
        };
        let (year, month, of_month) = civil(day);
        match self {
            Self::Month => format!("{year:04}-{month:02}"),
            Self::Hour => format!("{year:04}-{month:02}-{of_month:02}T{:02}", number.rem_euclid(24)),
            _ => format!("{year:04}-{month:02}-{of_month:02}"),
        }
    }
}

impl PartitionedBy {
    /// The column whose values decide.
    pub fn column(&self) -> &str {
        match self {
            Self::Period(_, column) | Self::List(column) => column,
        }
    }

    /// The facts that statistics tell about the values of a partition. `a_day` is the number of time units in
    /// a day.
    pub(super) fn known(&self, slot: &Slot, a_day: i64) -> Known {
        let bounds = match (self, slot) {
            (_, Slot::Null) => return Known { bounds: None, nulls: Nulls::All },
            (_, Slot::All) => return Known { bounds: None, nulls: Nulls::Maybe },
            (Self::Period(period, _), Slot::Number(number)) => {
                let number = i64::try_from(*number).unwrap_or_default();
                let (from, to) = period.range(number, a_day);
                Bounds::Whole(from.into(), i128::from(to) - 1)
            }
            (_, Slot::Number(value)) => Bounds::Whole(*value, *value),
            (_, Slot::Bytes(bytes)) => Bounds::Bytes(bytes.clone(), bytes.clone()),
        };
        Known { bounds: Some(bounds), nulls: Nulls::None }
    }
}

/// The value of a list's partition as folders show it.
pub(super) fn value_text(slot: &Slot, schema: &Schema, column: &str) -> String {
    let data_type = schema.field_with_name(column).map(Field::data_type);
    match (slot, data_type) {
        (Slot::Number(value), Ok(DataType::Boolean)) => (*value != 0).to_string(),
        (Slot::Number(value), Ok(DataType::Date32)) => {
            Period::Day.text(i64::try_from(*value).unwrap_or_default())
        }
        (Slot::Number(value), _) => value.to_string(),
        (Slot::Bytes(bytes), Ok(DataType::FixedSizeBinary(_))) => {
            let of_uuid = schema.field_with_name(column).ok().and_then(Field::extension_type_name);
            let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            if of_uuid == Some(UUID_EXTENSION) && bytes.len() == 16 {
                [20, 16, 12, 8].iter().for_each(|at| text.insert(*at, '-'));
            }
            text
        }
        (Slot::Bytes(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
        (Slot::All | Slot::Null, _) => String::new(),
    }
}

impl fmt::Display for PartitionedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, column) = match self {
            Self::Period(period, column) => (period.name(), column),
            Self::List(column) => ("list", column),
        };
        let is_plain = column.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match is_plain && !column.is_empty() {
            true => write!(f, "{word}({column})"),
            false => write!(f, "{word}(\"{}\")", column.replace('"', "\"\"")),
        }
    }
}

impl FromStr for PartitionedBy {
    type Err = Error;

    /// # Errors
    /// Text of any other form than `month(COLUMN)`.
    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            Error::new(Kind::Config, "it does not say how to partition")
                .at(format!("--partition-by {text}"))
                .advise("give month(COLUMN), day(COLUMN), hour(COLUMN), year(COLUMN) or list(COLUMN)")
        };
        let (word, inner) =
            text.trim().strip_suffix(')').and_then(|inner| inner.split_once('(')).ok_or_else(refused)?;
        let column = match inner.trim().strip_prefix('"') {
            None => inner.trim().to_owned(),
            Some(quoted) => {
                let quoted = quoted.strip_suffix('"').ok_or_else(refused)?;
                if quoted.replace("\"\"", "").contains('"') {
                    return Err(refused());
                }
                quoted.replace("\"\"", "\"")
            }
        };
        if column.is_empty() {
            return Err(refused());
        }
        let word = word.trim().to_ascii_lowercase();
        if word == "list" {
            return Ok(Self::List(column));
        }
        let periods = [Period::Year, Period::Month, Period::Day, Period::Hour];
        let period = periods.into_iter().find(|period| period.name() == word);
        period.map(|period| Self::Period(period, column)).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_quoted() {
        let parsed = |text: &str| text.parse::<PartitionedBy>().map(|by| by.to_string()).ok();
        assert_eq!(parsed("day(at)").as_deref(), Some("day(at)"));
        assert_eq!(parsed(" Hour( \"the \"\"hour\"\"\" ) ").as_deref(), Some("hour(\"the \"\"hour\"\"\")"));
        for wrong in ["day", "day()", "week(at)", "day(\"a)", "day(\"a\"b\")", "hash(id, 3)", ""] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn periods_follow_one_another_and_contain_their_times() {
        const SECONDS: i64 = 86_400;
        for period in [Period::Year, Period::Month, Period::Day, Period::Hour] {
            let mut time = -2 * 366 * SECONDS;
            while time < 3 * 366 * SECONDS {
                let (number, from, to) = period.containing(time, SECONDS);
                assert!((from..to).contains(&time));
                assert_eq!(period.containing(to - 1, SECONDS).0, number);
                assert_eq!(period.containing(to, SECONDS).0, number + 1);
                time = to + (to - from) / 3;
            }
        }
        let texts = [Period::Year, Period::Month, Period::Day, Period::Hour]
            .map(|period| period.text(period.containing(1_704_459_600, SECONDS).0));
        assert_eq!(texts, ["2024", "2024-01", "2024-01-05", "2024-01-05T13"]);
        // Times at the ends of 64 bits also have periods.
        for time in [i64::MIN, i64::MAX] {
            let (_, from, to) = Period::Hour.containing(time, SECONDS * 1_000_000_000);
            assert!(from <= time && time <= to);
        }
    }
}
