//! The PostgreSQL type of a new column, and the existing columns that can store a field exactly.

use std::fmt;

use arrow_schema::{DataType, Field};

use crate::arrays::marks::{is_bool8, is_interval, is_uuid};

/// A column type of PostgreSQL.
///
/// | Arrow / Parquet | new column | also into an existing |
/// |---|---|---|
/// | bool, bool8 | boolean | |
/// | int8, uint8, int16 | smallint | wider integers, numeric |
/// | uint16, int32 | integer | bigint, numeric |
/// | uint32, int64 | bigint | numeric |
/// | uint64 | numeric(20,0) | numeric of 20 integer digits |
/// | float16, float32 | real | double precision |
/// | float64 | double precision | |
/// | decimal(p,s) | numeric(p,s) | numeric with room on both sides |
/// | text | text | varchar, citext |
/// | text marked as JSON | jsonb | |
/// | bytes | bytea | uuid, of 16 bytes |
/// | 16 bytes marked as UUID | uuid | bytea |
/// | date | date | |
/// | time | time | |
/// | timestamp without, with zone | timestamp, timestamptz | |
/// | interval, duration, 12 bytes marked as INTERVAL | interval | |
/// | list, struct, map | jsonb | |
/// | null | text | any |
/// | dictionary | as its values | as its values |
///
/// `conversion` handles columns that fit only if each single value does.
///
/// Sources: <https://www.postgresql.org/docs/current/datatype.html>,
/// <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgType {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric` with precision and scale, which may be greater than the precision or negative; `None` for one without
    /// bounds.
    Numeric(Option<(u16, i16)>),
    /// `text`.
    Text,
    /// `varchar`, with its limit of characters if it has one.
    Varchar(Option<u32>),
    /// `character` of a fixed number of characters.
    Char(u32),
    /// `name`.
    Name,
    /// An enumeration, whose labels the server knows.
    Enum,
    /// `bytea`.
    Bytea,
    /// `uuid`.
    Uuid,
    /// `date`.
    Date,
    /// `time without time zone`.
    Time,
    /// `timestamp without time zone`.
    Timestamp,
    /// `timestamp with time zone`.
    TimestampTz,
    /// `interval`.
    Interval,
    /// `json`.
    Json,
    /// `jsonb`.
    Jsonb,
    /// `inet`.
    Inet,
    /// `cidr`.
    Cidr,
    /// `oid`, which only text becomes.
    Oid,
    /// `time with time zone`, which only text becomes.
    TimeTz,
}

/// Types without a modifier that matters, or that have one of digits of a second: OID, which built-in types have fixed
/// (src/include/catalog/pg_type.dat), and name.
const BUILT_IN: [(PgType, u32, &str); 21] = [
    (PgType::Bool, 16, "boolean"),
    (PgType::Bytea, 17, "bytea"),
    (PgType::Name, 19, "name"),
    (PgType::Int8, 20, "bigint"),
    (PgType::Int2, 21, "smallint"),
    (PgType::Int4, 23, "integer"),
    (PgType::Text, 25, "text"),
    (PgType::Oid, 26, "oid"),
    (PgType::Json, 114, "json"),
    (PgType::Cidr, 650, "cidr"),
    (PgType::Float4, 700, "real"),
    (PgType::Float8, 701, "double precision"),
    (PgType::Inet, 869, "inet"),
    (PgType::Date, 1082, "date"),
    (PgType::Time, 1083, "time without time zone"),
    (PgType::Timestamp, 1114, "timestamp without time zone"),
    (PgType::TimestampTz, 1184, "timestamp with time zone"),
    (PgType::Interval, 1186, "interval"),
    (PgType::TimeTz, 1266, "time with time zone"),
    (PgType::Uuid, 2950, "uuid"),
    (PgType::Jsonb, 3802, "jsonb"),
];

impl fmt::Display for PgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric(Some((precision, scale))) => write!(f, "numeric({precision},{scale})"),
            Self::Numeric(None) => f.write_str("numeric"),
            Self::Varchar(Some(length)) => write!(f, "character varying({length})"),
            Self::Varchar(None) => f.write_str("character varying"),
            Self::Char(length) => write!(f, "character({length})"),
            Self::Enum => f.write_str("an enumeration"),
            other => {
                let built_in = BUILT_IN.iter().find(|(known, ..)| known == other);
                f.write_str(built_in.map_or("", |(.., name)| name))
            }
        }
    }
}

impl PgType {
    /// Returns the type of a new column for this field. The error says why there is none.
    pub fn natural(field: &Field) -> Result<Self, String> {
        Ok(match field.data_type() {
            DataType::Boolean => Self::Bool,
            _ if is_bool8(field) => Self::Bool,
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => Self::Int2,
            DataType::UInt16 | DataType::Int32 => Self::Int4,
            DataType::UInt32 | DataType::Int64 => Self::Int8,
            DataType::UInt64 => Self::Numeric(Some((20, 0))),
            DataType::Float16 | DataType::Float32 => Self::Float4,
            DataType::Float64 => Self::Float8,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => match *scale {
                0.. => Self::Numeric(Some((u16::from(*precision), i16::from(*scale)))),
                _ => {
                    return Err(format!(
                        "PostgreSQL before version 15 has no exact type for decimals of negative scale {scale}; make \
                         the table first, with a numeric column"
                    ));
                }
            },
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Self::Text,
            DataType::FixedSizeBinary(16) if is_uuid(field) => Self::Uuid,
            DataType::FixedSizeBinary(_) if is_interval(field) => Self::Interval,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytea,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::TimestampTz,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            DataType::Dictionary(_, value) => {
                return Self::natural(&field.clone().with_data_type(value.as_ref().clone()));
            }
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
            | DataType::Map(..) => Self::Jsonb,
            other => return Err(format!("Arrow type {other} is not supported")),
        })
    }

    /// Returns the type of a catalogue entry (`pg_attribute.atttypid` and `atttypmod`), or `None` if its
    /// values cannot be encoded.
    pub fn of_catalogue(oid: u32, modifier: i32) -> Option<Self> {
        let length = u32::try_from(modifier.saturating_sub(4));
        Some(match oid {
            1700 if modifier < 4 => Self::Numeric(None),
            1700 => {
                // numeric_in: ((precision << 16) | (scale & 0x7ff)) + VARHDRSZ, scale signed.
                let packed = modifier - 4;
                let scale = ((packed & 0x7ff) ^ 1024) - 1024;
                Self::Numeric(Some(((packed >> 16) as u16, i16::try_from(scale).ok()?)))
            }
            // varchar and bpchar: the length and VARHDRSZ.
            1043 => Self::Varchar(length.ok()),
            1042 => length.map_or(Self::Text, Self::Char),
            _ => {
                let (built_in, ..) = *BUILT_IN.iter().find(|(_, known, _)| *known == oid)?;
                // The modifier of time types is their number of digits; fewer than six would round.
                return match built_in {
                    Self::Interval => (modifier < 0).then_some(built_in),
                    Self::Time | Self::TimeTz | Self::Timestamp | Self::TimestampTz => {
                        (modifier < 0 || modifier == 6).then_some(built_in)
                    }
                    _ => Some(built_in),
                };
            }
        })
    }

    /// Whether every value of the field fits into this type unchanged.
    pub(crate) fn takes(self, field: &Field) -> bool {
        if *field.data_type() == DataType::Null {
            return true;
        }
        let Ok(natural) = Self::natural(field) else { return false };
        match (natural, self) {
            (Self::Bytea, Self::Uuid) => *field.data_type() == DataType::FixedSizeBinary(16),
            (Self::Numeric(Some((20, 0))), Self::Int8) => false,
            // The integers 0 and 1 are converted.
            (Self::Bool, Self::Bool) => *field.data_type() == DataType::Boolean,
            (a, b) if a == b => true,
            (Self::Int2, Self::Int4 | Self::Int8)
            | (Self::Int4, Self::Int8)
            | (Self::Float4, Self::Float8)
            | (Self::Text, Self::Varchar(_))
            | (Self::Uuid, Self::Bytea)
            | (Self::Int2 | Self::Int4 | Self::Int8 | Self::Numeric(_), Self::Numeric(None)) => true,
            (from, Self::Numeric(Some((precision, scale)))) => {
                let Some((before, behind)) = from.digits() else { return false };
                i32::from(scale) >= behind && i32::from(precision) - i32::from(scale) >= before
            }
            _ => false,
        }
    }

    /// Returns the digits before and behind the point of integers and of `numeric` with bounds. One number is negative
    /// if there are only digits from a place further to the right, or to the left.
    pub fn digits(self) -> Option<(i32, i32)> {
        Some(match self {
            Self::Int2 => (5, 0),
            Self::Int4 => (10, 0),
            Self::Int8 => (19, 0),
            Self::Numeric(Some((precision, scale))) => {
                (i32::from(precision) - i32::from(scale), i32::from(scale))
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(data_type: DataType) -> Field {
        Field::new("c", data_type, true)
    }

    #[test]
    fn integers_widen_and_never_narrow() {
        assert!(PgType::Int8.takes(&field(DataType::Int32)));
        assert!(PgType::Numeric(None).takes(&field(DataType::UInt64)));
        assert!(PgType::Numeric(Some((12, 2))).takes(&field(DataType::Int32)));
        assert!(!PgType::Numeric(Some((11, 2))).takes(&field(DataType::Int32)));
        assert!(!PgType::Int2.takes(&field(DataType::Int32)));
        assert!(!PgType::Int4.takes(&field(DataType::UInt32)));
        assert!(!PgType::Int8.takes(&field(DataType::UInt64)));
    }

    #[test]
    fn decimals_need_room_on_both_sides_of_the_point() {
        let decimal = field(DataType::Decimal128(10, 2));
        assert!(PgType::Numeric(Some((12, 4))).takes(&decimal));
        assert!(!PgType::Numeric(Some((10, 4))).takes(&decimal));
        assert!(!PgType::Numeric(Some((10, 1))).takes(&decimal));
        assert!(!PgType::Float8.takes(&decimal));
        let small = field(DataType::Decimal128(5, 5));
        assert!(PgType::Numeric(Some((5, 5))).takes(&small));
        assert!(!PgType::Numeric(Some((3, 5))).takes(&small));
        assert!(!PgType::Numeric(Some((30, -2))).takes(&field(DataType::Int16)));
    }

    #[test]
    fn numeric_bounds_are_read_from_the_catalogue() {
        let modifier = ((38 << 16) | 9) + 4;
        assert_eq!(PgType::of_catalogue(1700, modifier), Some(PgType::Numeric(Some((38, 9)))));
        assert_eq!(PgType::of_catalogue(1700, -1), Some(PgType::Numeric(None)));
        let modifier = ((3 << 16) | (-2 & 0x7ff)) + 4;
        assert_eq!(PgType::of_catalogue(1700, modifier), Some(PgType::Numeric(Some((3, -2)))));
        assert_eq!(PgType::of_catalogue(1114, 3), None);
    }
}
