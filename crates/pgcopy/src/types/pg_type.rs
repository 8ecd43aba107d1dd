//! The PostgreSQL type of a new column, and the existing columns that can store a field exactly.

use std::fmt;

use arrow_schema::{DataType, Field};

use crate::arrays::marks::{is_interval, is_uuid};

/// A column type of PostgreSQL.
///
/// | Arrow / Parquet | new column | also into an existing |
/// |---|---|---|
/// | bool | boolean | |
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

impl fmt::Display for PgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numeric(Some((precision, scale))) => return write!(f, "numeric({precision},{scale})"),
            Self::Varchar(Some(length)) => return write!(f, "character varying({length})"),
            Self::Char(length) => return write!(f, "character({length})"),
            Self::Bool => "boolean",
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
            Self::Numeric(None) => "numeric",
            Self::Text => "text",
            Self::Varchar(None) => "character varying",
            Self::Name => "name",
            Self::Enum => "an enumeration",
            Self::Bytea => "bytea",
            Self::Uuid => "uuid",
            Self::Date => "date",
            Self::Time => "time without time zone",
            Self::Timestamp => "timestamp without time zone",
            Self::TimestampTz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Oid => "oid",
            Self::TimeTz => "time with time zone",
        })
    }
}

impl PgType {
    /// Returns the type of a new column for this field. The error says why there is none.
    pub fn natural(field: &Field) -> Result<Self, String> {
        Ok(match field.data_type() {
            DataType::Boolean => Self::Bool,
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
        // OIDs of built-in types are fixed (src/include/catalog/pg_type.dat). The modifier of time types is
        // their number of digits; fewer than six would round.
        let unrounded = modifier < 0 || modifier == 6;
        Some(match oid {
            16 => Self::Bool,
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            700 => Self::Float4,
            701 => Self::Float8,
            1700 if modifier < 4 => Self::Numeric(None),
            1700 => {
                // numeric_in: ((precision << 16) | (scale & 0x7ff)) + VARHDRSZ, scale signed.
                let packed = modifier - 4;
                let scale = ((packed & 0x7ff) ^ 1024) - 1024;
                Self::Numeric(Some(((packed >> 16) as u16, i16::try_from(scale).ok()?)))
            }
            25 => Self::Text,
            // varchar and bpchar: the length and VARHDRSZ.
            1043 => Self::Varchar(u32::try_from(modifier - 4).ok()),
            1042 if modifier < 4 => Self::Text,
            1042 => Self::Char(u32::try_from(modifier - 4).ok()?),
            19 => Self::Name,
            17 => Self::Bytea,
            2950 => Self::Uuid,
            1082 => Self::Date,
            1083 if unrounded => Self::Time,
            1114 if unrounded => Self::Timestamp,
            1184 if unrounded => Self::TimestampTz,
            1186 if modifier < 0 => Self::Interval,
            114 => Self::Json,
            3802 => Self::Jsonb,
            869 => Self::Inet,
            650 => Self::Cidr,
            26 => Self::Oid,
            1266 if unrounded => Self::TimeTz,
            _ => return None,
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
