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
            Self::Bool => f.write_str("bool"),
            Self::Int16 => f.write_str("int16"),
            Self::Int32 => f.write_str("int32"),
            Self::Int64 => f.write_str("int64"),
            Self::Float32 => f.write_str("float32"),
            Self::Float64 => f.write_str("float64"),
            Self::Decimal(precision, scale) => write!(f, "decimal({precision},{scale})"),
            Self::Date => f.write_str("date"),
            Self::Time => f.write_str("time"),
            Self::Timestamp(TimeUnit::Nanosecond) => f.write_str("timestamp_ns"),
            Self::Timestamp(_) => f.write_str("timestamp"),
            Self::TimestampUtc(TimeUnit::Nanosecond) => f.write_str("timestamptz_ns"),
            Self::TimestampUtc(_) => f.write_str("timestamptz"),
            Self::Pattern(of, unit, _) => Self::of_moment(*of, *unit).fmt(f),
            Self::Epoch(TimeUnit::Second) => f.write_str("epoch_s"),
            Self::Epoch(TimeUnit::Millisecond) => f.write_str("epoch_ms"),
            Self::Epoch(TimeUnit::Microsecond) => f.write_str("epoch_us"),
            Self::Epoch(TimeUnit::Nanosecond) => f.write_str("epoch_ns"),
            Self::Uuid => f.write_str("uuid"),
            Self::Text => f.write_str("text"),
            Self::Json => f.write_str("json"),
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
        Ok(match lower.as_str() {
            "bool" | "boolean" => Self::Bool,
            "int16" | "smallint" => Self::Int16,
            "int32" | "int" | "integer" => Self::Int32,
            "int64" | "bigint" => Self::Int64,
            "float32" | "real" => Self::Float32,
            "float64" | "double" | "double precision" => Self::Float64,
            "date" => Self::Date,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp(TimeUnit::Microsecond),
            "timestamp_ns" => Self::Timestamp(TimeUnit::Nanosecond),
            "timestamptz" => Self::TimestampUtc(TimeUnit::Microsecond),
            "timestamptz_ns" => Self::TimestampUtc(TimeUnit::Nanosecond),
            "epoch_s" => Self::Epoch(TimeUnit::Second),
            "epoch_ms" => Self::Epoch(TimeUnit::Millisecond),
            "epoch_us" => Self::Epoch(TimeUnit::Microsecond),
            "epoch_ns" => Self::Epoch(TimeUnit::Nanosecond),
            "uuid" => Self::Uuid,
            "text" | "string" | "varchar" => Self::Text,
            "json" => Self::Json,
            _ => return Err(refused(format!("there is no type {name:?}"))),
        })
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
