//! Logical types: the annotation that says what a column's or group's values mean.

use std::fmt;
use std::sync::Arc;

use crate::error::Fault;
use crate::schema::enums::EdgeInterpolationAlgorithm;
use crate::thrift::cursor::{BINARY, BYTE, Cursor, FALSE, I32, STRUCT, Step, TRUE, each_field};

/// What a schema element's values mean (the union `LogicalType`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogicalType {
    /// Text in UTF-8.
    String,
    /// A map.
    Map,
    /// A list.
    List,
    /// The text of an enumeration value.
    Enum,
    /// An unscaled decimal: its value times ten to the power of minus `scale`.
    Decimal {
        /// Digits after the decimal point.
        scale: i32,
        /// The total number of digits.
        precision: i32,
    },
    /// Days since the Unix epoch.
    Date,
    /// Units since midnight.
    Time {
        /// Whether the time is in UTC rather than without a time zone.
        is_adjusted_to_utc: bool,
        /// The unit.
        unit: TimeUnit,
    },
    /// Units since the Unix epoch.
    Timestamp {
        /// Whether the instant is in UTC rather than a local time without a time zone.
        is_adjusted_to_utc: bool,
        /// The unit.
        unit: TimeUnit,
    },
    /// An integer.
    Integer {
        /// 8, 16, 32 or 64.
        bit_width: i8,
        /// Whether it is signed.
        is_signed: bool,
    },
    /// Always null (`UNKNOWN` in the union, of type `NullType`).
    Null,
    /// A JSON document.
    Json,
    /// A BSON document.
    Bson,
    /// A UUID of 16 bytes.
    Uuid,
    /// A two-byte IEEE 754 number.
    Float16,
    /// A group of metadata and value that forms a variant.
    Variant {
        /// The version of the variant specification.
        specification_version: Option<i8>,
    },
    /// A planar geometry in well-known binary.
    Geometry {
        /// The coordinate reference system; `OGC:CRS84` if `None`.
        crs: Option<Arc<str>>,
    },
    /// A geography in well-known binary.
    Geography {
        /// The coordinate reference system; `OGC:CRS84` if `None`.
        crs: Option<Arc<str>>,
        /// How edges run; `SPHERICAL` if `None`.
        algorithm: Option<EdgeInterpolationAlgorithm>,
    },
    /// A reference to a file or a range of bytes.
    File,
    /// A union member unknown to this version: its field id, 0 for an empty union.
    Unknown {
        /// The field id.
        id: i16,
    },
}

/// The unit of a time or timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Thousandths of a second.
    Millis,
    /// Millionths of a second.
    Micros,
    /// Billionths of a second.
    Nanos,
    /// A unit unknown to this version: the union's field id, 0 for an empty union.
    Unknown(i16),
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Millis => f.write_str("MILLIS"),
            Self::Micros => f.write_str("MICROS"),
            Self::Nanos => f.write_str("NANOS"),
            Self::Unknown(id) => write!(f, "unknown ({id})"),
        }
    }
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("STRING"),
            Self::Map => f.write_str("MAP"),
            Self::List => f.write_str("LIST"),
            Self::Enum => f.write_str("ENUM"),
            Self::Decimal { scale, precision } => write!(f, "DECIMAL({precision},{scale})"),
            Self::Date => f.write_str("DATE"),
            Self::Time { is_adjusted_to_utc, unit } => write!(f, "TIME({unit},{is_adjusted_to_utc})"),
            Self::Timestamp { is_adjusted_to_utc, unit } => {
                write!(f, "TIMESTAMP({unit},{is_adjusted_to_utc})")
            }
            Self::Integer { bit_width, is_signed } => write!(f, "INTEGER({bit_width},{is_signed})"),
            Self::Null => f.write_str("UNKNOWN"),
            Self::Json => f.write_str("JSON"),
            Self::Bson => f.write_str("BSON"),
            Self::Uuid => f.write_str("UUID"),
            Self::Float16 => f.write_str("FLOAT16"),
            Self::Variant { specification_version: None } => f.write_str("VARIANT"),
            Self::Variant { specification_version: Some(version) } => write!(f, "VARIANT({version})"),
            Self::Geometry { crs: None } => f.write_str("GEOMETRY"),
            Self::Geometry { crs: Some(crs) } => write!(f, "GEOMETRY({crs})"),
            Self::Geography { crs, algorithm } => {
                f.write_str("GEOGRAPHY")?;
                match (crs, algorithm) {
                    (None, None) => Ok(()),
                    (Some(crs), None) => write!(f, "({crs})"),
                    (crs, Some(algorithm)) => {
                        write!(f, "({},{algorithm})", crs.as_deref().unwrap_or("OGC:CRS84"))
                    }
                }
            }
            Self::File => f.write_str("FILE"),
            Self::Unknown { id } => write!(f, "unknown ({id})"),
        }
    }
}

/// Decodes the union. An empty union and members of a later format become [`LogicalType::Unknown`].
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Step<LogicalType> {
    let mut logical = LogicalType::Unknown { id: 0 };
    let mut last = 0;
    while let Some(field) = cursor.next_field(&mut last)? {
        logical = if field.wire == STRUCT {
            member(cursor, field.id)?
        } else {
            cursor.skip(field.wire)?;
            LogicalType::Unknown { id: field.id }
        };
    }
    Ok(logical)
}

fn member(cursor: &mut Cursor<'_>, id: i16) -> Step<LogicalType> {
    let bare = match id {
        1 => LogicalType::String,
        2 => LogicalType::Map,
        3 => LogicalType::List,
        4 => LogicalType::Enum,
        5 => return decimal(cursor),
        6 => LogicalType::Date,
        7 => {
            let (is_adjusted_to_utc, unit) = time(cursor)?;
            return Ok(LogicalType::Time { is_adjusted_to_utc, unit });
        }
        8 => {
            let (is_adjusted_to_utc, unit) = time(cursor)?;
            return Ok(LogicalType::Timestamp { is_adjusted_to_utc, unit });
        }
        10 => return integer(cursor),
        11 => LogicalType::Null,
        12 => LogicalType::Json,
        13 => LogicalType::Bson,
        14 => LogicalType::Uuid,
        15 => LogicalType::Float16,
        16 => return variant(cursor),
        17 => return Ok(LogicalType::Geometry { crs: geo(cursor)?.0 }),
        18 => {
            let (crs, algorithm) = geo(cursor)?;
            return Ok(LogicalType::Geography { crs, algorithm });
        }
        19 => LogicalType::File,
        id => LogicalType::Unknown { id },
    };
    cursor.skip(STRUCT)?;
    Ok(bare)
}

fn decimal(cursor: &mut Cursor<'_>) -> Step<LogicalType> {
    let start = cursor.at;
    let (mut scale, mut precision) = (None, None);
    each_field!(cursor, {
        (1, I32) => scale = Some(cursor.i32()?),
        (2, I32) => precision = Some(cursor.i32()?),
    });
    Ok(LogicalType::Decimal {
        scale: scale.ok_or(Fault::missing(start, "scale"))?,
        precision: precision.ok_or(Fault::missing(start, "precision"))?,
    })
}

fn time(cursor: &mut Cursor<'_>) -> Step<(bool, TimeUnit)> {
    let start = cursor.at;
    let (mut adjusted, mut unit) = (None, None);
    each_field!(cursor, {
        (1, TRUE) => adjusted = Some(true),
        (1, FALSE) => adjusted = Some(false),
        (2, STRUCT) => unit = Some(time_unit(cursor)?),
    });
    Ok((
        adjusted.ok_or(Fault::missing(start, "isAdjustedToUTC"))?,
        unit.ok_or(Fault::missing(start, "unit"))?,
    ))
}

fn time_unit(cursor: &mut Cursor<'_>) -> Step<TimeUnit> {
    let (mut unit, mut last) = (TimeUnit::Unknown(0), 0);
    while let Some(field) = cursor.next_field(&mut last)? {
        cursor.skip(field.wire)?;
        unit = match field.id {
            1 => TimeUnit::Millis,
            2 => TimeUnit::Micros,
            3 => TimeUnit::Nanos,
            id => TimeUnit::Unknown(id),
        };
    }
    Ok(unit)
}

fn integer(cursor: &mut Cursor<'_>) -> Step<LogicalType> {
    let start = cursor.at;
    let (mut width, mut signed) = (None, None);
    each_field!(cursor, {
        (1, BYTE) => width = Some(cursor.byte()? as i8),
        (2, TRUE) => signed = Some(true),
        (2, FALSE) => signed = Some(false),
    });
    Ok(LogicalType::Integer {
        bit_width: width.ok_or(Fault::missing(start, "bitWidth"))?,
        is_signed: signed.ok_or(Fault::missing(start, "isSigned"))?,
    })
}

fn variant(cursor: &mut Cursor<'_>) -> Step<LogicalType> {
    let mut specification_version = None;
    each_field!(cursor, {
        (1, BYTE) => specification_version = Some(cursor.byte()? as i8),
    });
    Ok(LogicalType::Variant { specification_version })
}

fn geo(cursor: &mut Cursor<'_>) -> Step<(Option<Arc<str>>, Option<EdgeInterpolationAlgorithm>)> {
    let (mut crs, mut algorithm) = (None, None);
    each_field!(cursor, {
        (1, BINARY) => crs = Some(Arc::from(cursor.text()?)),
        (2, I32) => algorithm = Some(EdgeInterpolationAlgorithm::from_number(cursor.i32()?)),
    });
    Ok((crs, algorithm))
}
