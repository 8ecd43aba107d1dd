//! Typed values from the bytes of bounds and a schema element.

use std::fmt;

use sawmill_footer::{ConvertedType, Element, LogicalType, PhysicalType, TimeUnit};
use serde::{Serialize, Serializer};

use crate::text::dates;
use crate::text::escape::{clipped, quoted};

/// Most characters of a value in a table.
pub(crate) const CLIP: usize = 32;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// From two or four bytes.
    Float(f32),
    Double(f64),
    Text(&'a str),
    /// Values with a usual text form: decimals, dates, times, instants, UUIDs, intervals.
    Formatted(String),
    Binary(&'a [u8]),
}

/// What the values of a column mean, by its logical type or else by its converted type.
pub(crate) fn meaning(element: Element<'_>) -> Option<LogicalType> {
    if let Some(logical) = element.logical_type() {
        return Some(logical.clone());
    }
    let integer = |bit_width, is_signed| LogicalType::Integer { bit_width, is_signed };
    let time = |unit| LogicalType::Time { is_adjusted_to_utc: true, unit };
    let timestamp = |unit| LogicalType::Timestamp { is_adjusted_to_utc: true, unit };
    Some(match element.converted_type()? {
        ConvertedType::Utf8 => LogicalType::String,
        ConvertedType::Map | ConvertedType::MapKeyValue => LogicalType::Map,
        ConvertedType::List => LogicalType::List,
        ConvertedType::Enum => LogicalType::Enum,
        ConvertedType::Decimal => LogicalType::Decimal {
            scale: element.scale().unwrap_or(0),
            precision: element.precision().unwrap_or(0),
        },
        ConvertedType::Date => LogicalType::Date,
        ConvertedType::TimeMillis => time(TimeUnit::Millis),
        ConvertedType::TimeMicros => time(TimeUnit::Micros),
        ConvertedType::TimestampMillis => timestamp(TimeUnit::Millis),
        ConvertedType::TimestampMicros => timestamp(TimeUnit::Micros),
        ConvertedType::UInt8 => integer(8, false),
        ConvertedType::UInt16 => integer(16, false),
        ConvertedType::UInt32 => integer(32, false),
        ConvertedType::UInt64 => integer(64, false),
        ConvertedType::Int8 => integer(8, true),
        ConvertedType::Int16 => integer(16, true),
        ConvertedType::Int32 => integer(32, true),
        ConvertedType::Int64 => integer(64, true),
        ConvertedType::Json => LogicalType::Json,
        ConvertedType::Bson => LogicalType::Bson,
        ConvertedType::Interval | ConvertedType::Unknown(_) => return None,
    })
}

/// Reads a column's values; made once for each column.
pub(crate) struct Reader {
    physical: PhysicalType,
    meaning: Option<LogicalType>,
    interval: bool,
}

impl Reader {
    pub(crate) fn new(element: Element<'_>, physical: PhysicalType) -> Self {
        let interval = element.converted_type() == Some(ConvertedType::Interval);
        Reader { physical, meaning: meaning(element), interval }
    }

    /// The value of PLAIN-encoded bytes (byte arrays without a length). Bytes that are not a value of the
    /// column's type stay bytes.
    pub(crate) fn value<'a>(&self, bytes: &'a [u8]) -> Value<'a> {
        self.typed(bytes).unwrap_or(Value::Binary(bytes))
    }

    fn typed<'a>(&self, bytes: &'a [u8]) -> Option<Value<'a>> {
        match self.physical {
            PhysicalType::Boolean => match bytes {
                [0] => Some(Value::Bool(false)),
                [1] => Some(Value::Bool(true)),
                _ => None,
            },
            PhysicalType::Int32 => {
                let value = i32::from_le_bytes(bytes.try_into().ok()?);
                Some(self.integer(value.into(), (value as u32).into()))
            }
            PhysicalType::Int64 => {
                let value = i64::from_le_bytes(bytes.try_into().ok()?);
                Some(self.integer(value, value as u64))
            }
            PhysicalType::Int96 => {
                let (nanos, day) = bytes.split_first_chunk::<8>()?;
                let day = i64::from(u32::from_le_bytes(day.try_into().ok()?));
                let nanos = i128::from(i64::from_le_bytes(*nanos))
                    + i128::from(day - dates::JULIAN_DAY_OF_EPOCH) * 86_400_000_000_000;
                Some(Value::Formatted(dates::timestamp(nanos, 9)))
            }
            PhysicalType::Float => Some(Value::Float(f32::from_le_bytes(bytes.try_into().ok()?))),
            PhysicalType::Double => Some(Value::Double(f64::from_le_bytes(bytes.try_into().ok()?))),
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray => self.bytes(bytes),
            PhysicalType::Unknown(_) => None,
        }
    }

    fn integer(&self, value: i64, unsigned: u64) -> Value<'static> {
        let formatted = match &self.meaning {
            Some(LogicalType::Integer { is_signed: false, .. }) => return Value::UInt(unsigned),
            Some(LogicalType::Decimal { scale, .. }) => {
                decimal(value.unsigned_abs().to_string(), value < 0, *scale)
            }
            Some(LogicalType::Date) => Some(dates::date(value)),
            Some(LogicalType::Time { unit, .. }) => {
                in_nanos(value, *unit).and_then(|(nanos, digits)| dates::time(nanos, digits))
            }
            Some(LogicalType::Timestamp { unit, is_adjusted_to_utc }) => {
                let zone = if *is_adjusted_to_utc { "Z" } else { "" };
                in_nanos(value, *unit).map(|(nanos, digits)| dates::timestamp(nanos, digits) + zone)
            }
            _ => None,
        };
        formatted.map_or(Value::Int(value), Value::Formatted)
    }

    fn bytes<'a>(&self, bytes: &'a [u8]) -> Option<Value<'a>> {
        match &self.meaning {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => {
                Some(Value::Text(std::str::from_utf8(bytes).ok()?))
            }
            Some(LogicalType::Decimal { scale, .. }) => {
                let (digits, negative) = big_integer(bytes)?;
                Some(Value::Formatted(decimal(digits, negative, *scale)?))
            }
            Some(LogicalType::Uuid) => {
                let number = u128::from_be_bytes(bytes.try_into().ok()?);
                let all = format!("{number:032x}");
                let parts = [&all[..8], &all[8..12], &all[12..16], &all[16..20], &all[20..]];
                Some(Value::Formatted(parts.join("-")))
            }
            Some(LogicalType::Float16) => {
                Some(Value::Float(half(u16::from_le_bytes(bytes.try_into().ok()?))))
            }
            _ if self.interval => {
                let part = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
                let (months, days, millis) = (part(0)?, part(4)?, part(8)?);
                Some(Value::Formatted(format!("{months} months {days} days {millis} ms")))
            }
            _ => None,
        }
    }
}

fn in_nanos(value: i64, unit: TimeUnit) -> Option<(i128, usize)> {
    let (scale, digits) = match unit {
        TimeUnit::Millis => (1_000_000, 3),
        TimeUnit::Micros => (1000, 6),
        TimeUnit::Nanos => (1, 9),
        TimeUnit::Unknown(_) => return None,
    };
    Some((i128::from(value) * scale, digits))
}

/// Digits with a decimal point `scale` places from their end. `None` for scales that no type can have (the
/// precision bounds them, and the bytes bound the precision), so that the text stays short.
fn decimal(digits: String, negative: bool, scale: i32) -> Option<String> {
    let scale = usize::try_from(scale).ok().filter(|&scale| scale <= 1000)?;
    let mut text = format!("{digits:0>width$}", width = scale + 1);
    if scale > 0 {
        text.insert(text.len() - scale, '.');
    }
    if negative {
        text.insert(0, '-');
    }
    Some(text)
}

/// The digits and the sign of a big-endian integer in two's complement; `None` beyond 64 bytes (154 digits),
/// twice the size of the widest decimals of any engine.
fn big_integer(bytes: &[u8]) -> Option<(String, bool)> {
    if bytes.is_empty() || bytes.len() > 64 {
        return None;
    }
    let negative = bytes[0] & 0x80 != 0;
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    // Long division by ten produces the digits from the last to the first.
    let mut digits = Vec::new();
    while magnitude.iter().any(|&byte| byte != 0) {
        let mut rest = 0u16;
        for byte in &mut magnitude {
            let here = rest << 8 | u16::from(*byte);
            *byte = (here / 10) as u8;
            rest = here % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    digits.reverse();
    let digits = if digits.is_empty() { "0".to_owned() } else { String::from_utf8(digits).ok()? };
    Some((digits, negative))
}

/// An IEEE 754 number of two bytes: one sign bit, five exponent bits, ten fraction bits.
pub(crate) fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2 + 2);
    text.push_str("0x");
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Value<'_> {
    /// The value in a table: at most `limit` characters or half as many bytes, followed by the length if that
    /// is more.
    pub(crate) fn shown(&self, limit: usize) -> String {
        match self {
            Value::Text(text) => match clipped(text, limit) {
                (text, false) => quoted(text),
                (start, true) => format!("{}… ({} bytes)", quoted(start), text.len()),
            },
            Value::Binary(bytes) => match bytes.get(..limit / 2) {
                Some(start) if bytes.len() > start.len() => {
                    format!("{}… ({} bytes)", hex(start), bytes.len())
                }
                _ => hex(bytes),
            },
            other => other.to_string(),
        }
    }
}

/// The whole value; text without quotes.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::UInt(value) => write!(f, "{value}"),
            // The shortest digits that read back as the same number, such as 1e300.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::Text(text) => f.write_str(text),
            Value::Formatted(text) => f.write_str(text),
            Value::Binary(bytes) => f.write_str(&hex(bytes)),
        }
    }
}

/// Numbers that JSON can represent as numbers; everything else as text.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::UInt(value) => serializer.serialize_u64(*value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f32(*value),
            Value::Double(value) if value.is_finite() => serializer.serialize_f64(*value),
            other => serializer.collect_str(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(physical: PhysicalType, meaning: Option<LogicalType>) -> Reader {
        Reader { physical, meaning, interval: false }
    }

    fn shown(physical: PhysicalType, meaning: LogicalType, bytes: &[u8]) -> String {
        reader(physical, Some(meaning)).value(bytes).shown(CLIP)
    }

    #[test]
    fn halves_are_read_as_numbers() {
        for (bits, value) in [
            (0, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (1, 2f32.powi(-24)),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn numbers_are_read_by_their_type() {
        let plain = |physical, bytes: &[u8]| reader(physical, None).value(bytes).shown(CLIP);
        assert_eq!(plain(PhysicalType::Int32, &(-5i32).to_le_bytes()), "-5");
        assert_eq!(plain(PhysicalType::Double, &1e300f64.to_le_bytes()), "1e300");
        assert_eq!(plain(PhysicalType::Float, &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(plain(PhysicalType::Double, &f64::NAN.to_le_bytes()), "NaN");
        assert_eq!(plain(PhysicalType::Boolean, &[1]), "true");
        let unsigned = LogicalType::Integer { bit_width: 64, is_signed: false };
        assert_eq!(shown(PhysicalType::Int64, unsigned, &[0xff; 8]), "18446744073709551615");
        let small = LogicalType::Integer { bit_width: 32, is_signed: false };
        assert_eq!(shown(PhysicalType::Int32, small, &[0xff; 4]), "4294967295");
    }

    #[test]
    fn decimals_have_their_point() {
        let of = |scale| LogicalType::Decimal { scale, precision: 38 };
        assert_eq!(shown(PhysicalType::Int32, of(2), &(-5i32).to_le_bytes()), "-0.05");
        assert_eq!(shown(PhysicalType::Int64, of(0), &i64::MIN.to_le_bytes()), "-9223372036854775808");
        let bytes = 123_456_789_012_345_678_901_234_567_890i128.to_be_bytes();
        assert_eq!(shown(PhysicalType::FixedLenByteArray, of(4), &bytes), "12345678901234567890123456.7890");
        assert_eq!(shown(PhysicalType::ByteArray, of(1), &[0xff]), "-0.1");
        assert_eq!(shown(PhysicalType::ByteArray, of(1), &[0x80]), "-12.8");
        assert_eq!(shown(PhysicalType::ByteArray, of(3), &[0]), "0.000");
        // Not a decimal: stays bytes.
        assert_eq!(shown(PhysicalType::ByteArray, of(3), &[]), "0x");
        assert_eq!(shown(PhysicalType::ByteArray, of(i32::MAX), &[1]), "0x01");
        assert_eq!(shown(PhysicalType::Int32, of(-1), &[1, 0, 0, 0]), "1");
    }

    #[test]
    fn dates_times_and_instants_are_read_in_their_units() {
        let utc = LogicalType::Timestamp { is_adjusted_to_utc: true, unit: TimeUnit::Micros };
        assert_eq!(shown(PhysicalType::Int64, utc, &(-1i64).to_le_bytes()), "1969-12-31T23:59:59.999999Z");
        let local = LogicalType::Timestamp { is_adjusted_to_utc: false, unit: TimeUnit::Millis };
        assert_eq!(shown(PhysicalType::Int64, local, &0i64.to_le_bytes()), "1970-01-01T00:00:00");
        assert_eq!(shown(PhysicalType::Int32, LogicalType::Date, &19_782i32.to_le_bytes()), "2024-02-29");
        let time = LogicalType::Time { is_adjusted_to_utc: false, unit: TimeUnit::Millis };
        assert_eq!(shown(PhysicalType::Int32, time.clone(), &1500i32.to_le_bytes()), "00:00:01.500");
        // Not a time of day.
        assert_eq!(shown(PhysicalType::Int32, time, &(-1i32).to_le_bytes()), "-1");
        let mut int96 = 1_000_000_000i64.to_le_bytes().to_vec();
        int96.extend((2_440_588u32 + 1).to_le_bytes());
        assert_eq!(reader(PhysicalType::Int96, None).value(&int96).shown(CLIP), "1970-01-02T00:00:01");
    }

    #[test]
    fn bytes_are_shown_as_text_as_hexadecimal_digits_or_by_their_meaning() {
        let text = |bytes: &[u8]| shown(PhysicalType::ByteArray, LogicalType::String, bytes);
        assert_eq!(text(b""), "\"\"");
        assert_eq!(text("\u{1b}[31mé".as_bytes()), "\"\\u{1b}[31mé\"");
        assert_eq!(text(&[b'x'; 40]), format!("\"{}\"… (40 bytes)", "x".repeat(32)));
        assert_eq!(text(&[0xff]), "0xff");
        let plain = reader(PhysicalType::ByteArray, None);
        assert_eq!(plain.value(b"\x01\xab").shown(CLIP), "0x01ab");
        assert_eq!(plain.value(&[7; 20]).shown(CLIP), format!("0x{}… (20 bytes)", "07".repeat(16)));
        let uuid = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdefu128.to_be_bytes();
        assert_eq!(
            shown(PhysicalType::FixedLenByteArray, LogicalType::Uuid, &uuid),
            "01234567-89ab-cdef-0123-456789abcdef"
        );
        let half =
            |bits: u16| shown(PhysicalType::FixedLenByteArray, LogicalType::Float16, &bits.to_le_bytes());
        assert_eq!(
            [0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00].map(half),
            ["1.0", "-2.0", "65504.0", "5.9604645e-8", "inf"]
        );
    }

    #[test]
    fn bytes_of_another_length_than_their_type_stay_bytes() {
        for physical in [PhysicalType::Boolean, PhysicalType::Int32, PhysicalType::Int64, PhysicalType::Int96]
        {
            assert_eq!(reader(physical, None).value(&[1, 2, 3]), Value::Binary(&[1, 2, 3]));
        }
        assert_eq!(reader(PhysicalType::Unknown(99), None).value(&[1]), Value::Binary(&[1]));
    }
}
