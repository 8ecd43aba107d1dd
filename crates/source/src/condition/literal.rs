//! Literals of conditions, and their meaning as values of a column's type.
//!
//! All types except text and bytes are compared as integers: decimals by their unscaled value, dates and
//! times in the column's unit, floats by an integer of the same order.

use std::fmt;

use arrow_schema::DataType;
use half::f16;

use crate::condition::moment;

/// A value in a condition, as written. The column that it is compared with determines its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    /// Digits as written.
    Number(String),
    /// Text, or a date or time.
    Text(String),
    Boolean(bool),
    Bytes(Vec<u8>),
}

/// The position of a literal among the integers of a column: at one, or between it and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub at: i128,
    /// Whether it is a value of the column; otherwise it is between `at` and `at + 1`.
    pub exact: bool,
}

impl Point {
    pub(super) fn exact(at: i128) -> Self {
        Self { at, exact: true }
    }
}

/// How values of a type are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Whole,
    Bytes,
}

/// Returns how values of a type are compared, or `None` if a condition cannot compare them.
pub(super) fn domain(data_type: &DataType) -> Option<Domain> {
    match data_type {
        DataType::Dictionary(_, values) => domain(values),
        DataType::Interval(_) | DataType::Duration(_) => None,
        whole if whole.is_primitive() || *whole == DataType::Boolean => Some(Domain::Whole),
        bytes if bytes.is_string() || bytes.is_binary() => Some(Domain::Bytes),
        _ => None,
    }
}

/// Returns the type of a column's values, dictionary or not.
pub(super) fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        plain => plain,
    }
}

impl Literal {
    /// Returns the literal for unquoted text that starts like a number: a number, or else a date or time.
    pub(super) fn unquoted(text: &str) -> Self {
        match decimal(text, 0) {
            Some(_) => Self::Number(text.to_owned()),
            None => Self::Text(text.to_owned()),
        }
    }

    /// Returns the literal for bytes in hexadecimal digits.
    pub(super) fn of_hexadecimal(digits: &str) -> Option<Self> {
        hexadecimal(digits).map(Self::Bytes)
    }

    /// Returns the digits or the text; both can be a number, a date or a time.
    fn digits(&self) -> Option<&str> {
        match self {
            Self::Number(text) | Self::Text(text) => Some(text.trim()),
            Self::Boolean(_) | Self::Bytes(_) => None,
        }
    }

    /// Returns its position among the values of a type whose domain is [`Domain::Whole`]. The error says what
    /// was expected.
    pub(super) fn point(&self, data_type: &DataType) -> Result<Point, String> {
        use DataType::{
            Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64,
            Time32, Time64, Timestamp,
        };
        const DAY: i128 = 86_400_000_000_000;
        let digits = self.digits();
        let expected = |what: &str| format!("expected {what}, found {self}");
        match data_type {
            Boolean => match (self, digits) {
                (Self::Boolean(value), _) => Ok(Point::exact(i128::from(*value))),
                (_, Some("true")) => Ok(Point::exact(1)),
                (_, Some("false")) => Ok(Point::exact(0)),
                _ => Err(expected("true or false")),
            },
            Float16 | Float32 | Float64 => {
                let value = digits.and_then(|text| text.parse::<f64>().ok());
                let value = value.ok_or_else(|| expected("a number"))?;
                Ok(Point::exact(match data_type {
                    Float16 => order_of_f32(f16::from_f64(value).to_f32()).into(),
                    // Parses the text directly: rounding twice can have another result.
                    Float32 => {
                        let single = digits.and_then(|text| text.parse().ok()).unwrap_or(value as f32);
                        order_of_f32(single).into()
                    }
                    _ => order_of_f64(value).into(),
                }))
            }
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => digits
                .and_then(|text| decimal(text, i32::from(*scale)))
                .ok_or_else(|| expected("a number of at most 38 digits")),
            Date32 | Date64 => {
                let moment = digits.and_then(moment::timestamp).filter(|moment| moment.offset.is_none());
                let moment = moment.ok_or_else(|| expected("a date such as 2024-01-31"))?;
                let unit = if *data_type == Date32 { DAY } else { 1_000_000 };
                Ok(in_units(moment.nanoseconds, unit))
            }
            Timestamp(unit, zone) => {
                let moment = digits.and_then(moment::timestamp);
                let moment = moment
                    .ok_or_else(|| expected("a timestamp such as 2024-01-31 or 2024-01-31T12:00:00"))?;
                let nanoseconds = match (moment.offset, zone) {
                    (Some(offset), Some(_)) => moment.nanoseconds - offset,
                    // A timestamp without an offset is in UTC.
                    (None, _) => moment.nanoseconds,
                    (Some(_), None) => {
                        return Err(expected(
                            "a timestamp without an offset, because the column has no time zone",
                        ));
                    }
                };
                Ok(in_units(nanoseconds, moment::unit(*unit)))
            }
            Time32(unit) | Time64(unit) => {
                let time =
                    digits.and_then(moment::time).ok_or_else(|| expected("a time such as 12:30:00"))?;
                Ok(in_units(time, moment::unit(*unit)))
            }
            _ => digits.and_then(|text| decimal(text, 0)).ok_or_else(|| expected("a number")),
        }
    }

    /// Returns its bytes as a value of a type whose domain is [`Domain::Bytes`]. The error names the expected
    /// form.
    pub(super) fn bytes(&self, data_type: &DataType) -> Result<Vec<u8>, String> {
        use DataType::{LargeUtf8, Utf8, Utf8View};
        match (self, data_type) {
            (Self::Text(text), Utf8 | LargeUtf8 | Utf8View) => Ok(text.clone().into_bytes()),
            (_, Utf8 | LargeUtf8 | Utf8View) => Err(format!("expected text in single quotes, found {self}")),
            (Self::Text(text), DataType::FixedSizeBinary(16)) => uuid(text)
                .ok_or_else(|| format!("expected a UUID, or 16 bytes written as x'00ff...', found {self}")),
            (Self::Bytes(bytes), DataType::FixedSizeBinary(length))
                if bytes.len() as i64 != i64::from(*length) =>
            {
                Err(format!("expected {length} bytes, found {}", bytes.len()))
            }
            (Self::Bytes(bytes), _) => Ok(bytes.clone()),
            _ => Err(format!("expected bytes written as x'00ff...', found {self}")),
        }
    }
}

/// Returns an integer that orders floats: -0 equals 0, and NaN is the greatest.
pub(super) fn order_of_f64(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // Adding zero turns -0 into 0. The bits of positive floats increase with the float, the bits of negative
    // floats decrease.
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The same for 32-bit floats.
pub(super) fn order_of_f32(value: f32) -> i32 {
    if value.is_nan() {
        return i32::MAX;
    }
    let bits = (value + 0.0).to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

fn in_units(nanoseconds: i128, unit: i128) -> Point {
    Point { at: nanoseconds.div_euclid(unit), exact: nanoseconds.rem_euclid(unit) == 0 }
}

/// Parses a number and multiplies it by ten to the power of `scale`.
fn decimal(text: &str, scale: i32) -> Option<Point> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 || fraction.len() > 1000 {
        return None;
    }
    let mut value: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if negative {
        value = -value;
    }
    let shift = exponent.checked_add(scale)?.checked_sub(fraction.len() as i32)?;
    if value == 0 {
        return Some(Point::exact(0));
    }
    match (u32::try_from(shift), 10i128.checked_pow(shift.unsigned_abs())) {
        (Ok(_), power) => Some(Point::exact(value.checked_mul(power?)?)),
        (Err(_), Some(power)) => Some(in_units(value, power)),
        // The number is between zero and its neighbour.
        (Err(_), None) => Some(Point { at: if negative { -1 } else { 0 }, exact: false }),
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || digits.len() % 2 == 1 {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    // `from_str_radix` also accepts a sign.
    let all_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all_digits.then(|| (0..digits.len()).step_by(2).map(pair).collect())?
}

/// The bytes of a UUID, with hyphens or without.
fn uuid(text: &str) -> Option<Vec<u8>> {
    hexadecimal(&text.replace('-', "")).filter(|bytes| bytes.len() == 16)
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(digits) => f.write_str(digits),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn numbers_are_at_or_between_the_values_of_a_column() {
        let at = |text: &str, data_type: DataType| Literal::unquoted(text).point(&data_type);
        assert_eq!(at("2", DataType::Int8), Ok(Point::exact(2)));
        assert_eq!(at("2.5", DataType::Int32), Ok(Point { at: 2, exact: false }));
        assert_eq!(at("-2.5", DataType::Int32), Ok(Point { at: -3, exact: false }));
        assert_eq!(at("1e3", DataType::Int32), Ok(Point::exact(1000)));
        assert_eq!(at("-1e-99", DataType::Int32), Ok(Point { at: -1, exact: false }));
        assert_eq!(at("1.005", DataType::Decimal128(9, 2)), Ok(Point { at: 100, exact: false }));
        assert_eq!(at("1.5", DataType::Decimal128(9, 2)), Ok(Point::exact(150)));
        assert!(at("1e99", DataType::Int64).is_err());
        assert!(at("2024-01-01", DataType::Int64).is_err());
        assert_eq!(at("1970-01-02", DataType::Date32), Ok(Point::exact(1)));
        assert_eq!(
            at("1970-01-01T00:00:00.0005", DataType::Timestamp(TimeUnit::Millisecond, None)),
            Ok(Point { at: 0, exact: false })
        );
        let zoned = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        assert_eq!(at("1970-01-01T02:00:00+02:00", zoned), Ok(Point::exact(0)));
        let plain = DataType::Timestamp(TimeUnit::Second, None);
        assert!(at("1970-01-01T02:00:00+02:00", plain).is_err());
    }

    #[test]
    fn floats_have_a_total_order() {
        let ordered = [f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        assert!(ordered.windows(2).all(|pair| order_of_f64(pair[0]) < order_of_f64(pair[1])));
        assert!(ordered[1..].windows(2).all(|p| order_of_f32(p[0] as f32) <= order_of_f32(p[1] as f32)));
        assert_eq!(order_of_f64(-0.0), order_of_f64(0.0));
        assert_eq!(order_of_f32(-0.0), order_of_f32(0.0));
        assert_eq!(order_of_f64(-f64::NAN), order_of_f64(f64::NAN));
    }
}
