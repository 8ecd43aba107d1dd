//! The types that columns of text can have.

use std::fmt;
use std::str::FromStr;

use arrow_schema::{DataType, Field, TimeUnit};
use sawmill_profile::{Error, Kind, Result};

use super::formats::Moment;
use crate::parquet_files::schema::{EXTENSION_NAME, JSON_EXTENSION, UUID_EXTENSION, marked};

/// The type of a column of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `true`, `false`, and the other words that PostgreSQL reads.
    Bool,
    /// Whole numbers.
    Int16,
    /// Whole numbers.
    Int32,
    /// Whole numbers.
    Int64,
    /// Floating-point numbers.
    Float32,
    /// Floating-point numbers.
    Float64,
    /// Digits, and how many of them are after the point. Up to 38 and 38.
    Decimal(u8, i8),
    /// `2024-01-31`.
    Date,
    /// `12:30:00.25`, in microseconds.
    Time,
    /// `2024-01-31 12:30:00.25`, with a space or a `T`, in microseconds or nanoseconds.
    Timestamp(TimeUnit),
    /// The same with an offset from UTC, which is `Z` if there is none.
    TimestampUtc(TimeUnit),
    /// A date or time by some of the patterns of the dialect, a set of their places.
    Pattern(Moment, TimeUnit, u32),
    /// Numbers of seconds, milliseconds, microseconds or nanoseconds since 1970.
    Epoch(TimeUnit),
    /// 32 hexadecimal digits with or without hyphens.
    Uuid,
    /// Any text.
    Text,
    /// Text with the mark of JSON.
    Json,
}

/// The names of the types without digits.
const NAMES: [(&str, ColumnType); 19] = [
    ("bool", ColumnType::Bool),
    ("int16", ColumnType::Int16),
    ("int32", ColumnType::Int32),
    ("int64", ColumnType::Int64),
    ("float32", ColumnType::Float32),
    ("float64", ColumnType::Float64),
    ("date", ColumnType::Date),
    ("time", ColumnType::Time),
    ("timestamp", ColumnType::Timestamp(TimeUnit::Microsecond)),
    ("timestamp_ns", ColumnType::Timestamp(TimeUnit::Nanosecond)),
    ("timestamptz", ColumnType::TimestampUtc(TimeUnit::Microsecond)),
    ("timestamptz_ns", ColumnType::TimestampUtc(TimeUnit::Nanosecond)),
    ("epoch_s", ColumnType::Epoch(TimeUnit::Second)),
    ("epoch_ms", ColumnType::Epoch(TimeUnit::Millisecond)),
    ("epoch_us", ColumnType::Epoch(TimeUnit::Microsecond)),
    ("epoch_ns", ColumnType::Epoch(TimeUnit::Nanosecond)),
    ("uuid", ColumnType::Uuid),
    ("text", ColumnType::Text),
    ("json", ColumnType::Json),
];

/// What SQL calls some of them.
const SQL_NAMES: [(&str, &str); 10] = [
    ("boolean", "bool"),
    ("smallint", "int16"),
    ("int", "int32"),
    ("integer", "int32"),
    ("bigint", "int64"),
    ("real", "float32"),
    ("double", "float64"),
    ("double precision", "float64"),
    ("string", "text"),
    ("varchar", "text"),
];

impl ColumnType {
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp(unit) => DataType::Timestamp(unit, None),
            Self::TimestampUtc(unit) => DataType::Timestamp(unit, Some("UTC".into())),
            Self::Pattern(of, unit, _) => Self::of_moment(of, unit).data_type(),
            Self::Epoch(TimeUnit::Nanosecond) => Self::TimestampUtc(TimeUnit::Nanosecond).data_type(),
            Self::Epoch(_) => Self::TimestampUtc(TimeUnit::Microsecond).data_type(),
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Text | Self::Json => DataType::Utf8View,
        }
    }

    /// The type of a pattern's values.
    fn of_moment(of: Moment, unit: TimeUnit) -> Self {
        match of {
            Moment::Date => Self::Date,
            Moment::Time => Self::Time,
            Moment::Local => Self::Timestamp(unit),
            Moment::Utc => Self::TimestampUtc(unit),
        }
    }

    /// Returns the type with the patterns of its values; `None` if they do not describe it.
    pub fn by_patterns(self, of: Moment, patterns: u32) -> Option<Self> {
        match (self, of) {
            (Self::Date, Moment::Date) | (Self::Time, Moment::Time) => {
                Some(Self::Pattern(of, TimeUnit::Microsecond, patterns))
            }
            (Self::Timestamp(unit), Moment::Local) | (Self::TimestampUtc(unit), Moment::Utc) => {
                Some(Self::Pattern(of, unit, patterns))
            }
            // A day is its midnight; without an offset, a point in time is in UTC.
            (Self::Timestamp(unit), Moment::Date) => Some(Self::Pattern(Moment::Local, unit, patterns)),
            (Self::TimestampUtc(unit), Moment::Date | Moment::Local) => {
                Some(Self::Pattern(Moment::Utc, unit, patterns))
            }
            _ => None,
        }
    }

    /// Returns everything that determines values, given the patterns of the dialect.
    pub(crate) fn identity(self) -> String {
        match self {
            Self::Pattern(.., patterns) => format!("{self} by {patterns:b}"),
            _ => self.to_string(),
        }
    }

    pub(crate) fn field(self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        match self {
            Self::Uuid => marked(&field, EXTENSION_NAME, UUID_EXTENSION).as_ref().clone(),
            Self::Json => marked(&field, EXTENSION_NAME, JSON_EXTENSION).as_ref().clone(),
            _ => field,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal(precision, scale) => write!(f, "decimal({precision},{scale})"),
            Self::Pattern(of, unit, _) => Self::of_moment(*of, *unit).fmt(f),
            other => {
                let named = NAMES.iter().find(|(_, of)| of == other);
                f.write_str(named.map_or("timestamp", |(name, _)| name))
            }
        }
    }
}

impl FromStr for ColumnType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let lower = name.trim().to_lowercase();
        let refused = |what: String| {
            Error::new(Kind::Config, what).advise(
                "the types are bool, int16, int32, int64, float32, float64, decimal(P,S), date, time, timestamp, \
                 timestamp_ns, timestamptz, timestamptz_ns, epoch_s, epoch_ms, epoch_us, epoch_ns, uuid, text, json",
            )
        };
        let decimal = lower.strip_prefix("decimal").or(lower.strip_prefix("numeric")).map(str::trim);
        if let Some(inner) = decimal {
            let inner = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            let (precision, scale) =
                inner.map_or(("", ""), |inner| inner.split_once(',').unwrap_or((inner, "0")));
            let parsed = precision.trim().parse::<u8>().ok().zip(scale.trim().parse::<i8>().ok());
            return parsed
                .filter(|(precision, scale)| {
                    (1..=38).contains(precision) && (0..=*precision as i8).contains(scale)
                })
                .map(|(precision, scale)| Self::Decimal(precision, scale))
                .ok_or_else(|| refused(format!("{name:?}: write decimal(P,S) with 1 to 38 digits")));
        }
        let other = SQL_NAMES.iter().find(|(name, _)| *name == lower).map(|(_, name)| *name);
        let wanted = other.unwrap_or(&lower);
        let found = NAMES.iter().find(|(name, _)| *name == wanted).map(|(_, of)| *of);
        found.ok_or_else(|| refused(format!("there is no type {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        for name in [
            "bool",
            "int16",
            "int32",
            "int64",
            "float32",
            "float64",
            "decimal(10,2)",
            "date",
            "time",
            "timestamp",
            "timestamp_ns",
            "timestamptz",
            "timestamptz_ns",
            "epoch_s",
            "epoch_ms",
            "epoch_us",
            "epoch_ns",
            "uuid",
            "text",
            "json",
        ] {
            assert_eq!(name.parse::<ColumnType>().unwrap().to_string(), name);
        }
        assert_eq!("NUMERIC( 5 )".parse::<ColumnType>().unwrap(), ColumnType::Decimal(5, 0));
        for wrong in ["", "decimal", "decimal(39,0)", "decimal(5,6)", "decimal(5,-1)", "number"] {
            assert!(wrong.parse::<ColumnType>().is_err(), "{wrong}");
        }
    }
}
