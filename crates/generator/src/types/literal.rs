//! Values written in a spec, as the leaf's type stores them.
//!
//! A [`Literal`] is a value in the file, or a key of a table of weights. [`whole`], [`real`] and [`entry`]
//! convert it to what a type stores, or return `None` if it is not a value of that type.

use std::borrow::Cow;

use toml::value::Datetime;

use crate::draw::distribution::duration_ticks;
use crate::draw::value_spec::{geometry, intervals};
use crate::spec_file::toml_reader::SpecNode;
use crate::types::civil;
use crate::types::int256::Int256;
use crate::types::logical_type::{LogicalType, Physical};

/// A value as written in the spec.
#[derive(Clone, Debug)]
pub(crate) enum Literal<'a> {
    Text(&'a str),
    Whole(i128),
    /// A number with a point or exponent: its digits.
    Real(&'a str),
    Boolean(bool),
    Datetime(Datetime),
}

impl<'a> Literal<'a> {
    /// The value of `node`; `None` for arrays and tables.
    pub(crate) fn new(node: SpecNode<'a>) -> Option<Self> {
        if let Some(text) = node.string() {
            return Some(Literal::Text(text));
        }
        if let Some(whole) = node.integer() {
            return Some(Literal::Whole(whole));
        }
        if let Some(digits) = node.float_text() {
            return Some(Literal::Real(digits));
        }
        if let Some(boolean) = node.boolean() {
            return Some(Literal::Boolean(boolean));
        }
        node.datetime().map(Literal::Datetime)
    }

    /// The value that the key of a table is for a leaf of type `kind`.
    pub(crate) fn of_key(kind: &LogicalType, key: &'a str) -> Self {
        let text = Literal::Text(key);
        if kind.is_temporal() {
            // Times may also be written as the stored numbers.
            let whole = || key.parse().map_or(text, Literal::Whole);
            return key.parse().map_or_else(|_| whole(), Literal::Datetime);
        }
        match kind {
            LogicalType::Boolean => key.parse().map_or(text, Literal::Boolean),
            _ if kind.is_whole() || kind.is_real() => match key.parse() {
                // Real numbers have a zero below 0.
                Ok(0) if kind.is_real() => Literal::Real(key),
                Ok(whole) => Literal::Whole(whole),
                Err(_) => Literal::Real(key),
            },
            _ => text,
        }
    }
}

/// `literal` as a whole number of the type `kind`; `None` if it is outside of the type's range.
pub(crate) fn whole(kind: &LogicalType, literal: &Literal<'_>) -> Option<i128> {
    let whole = match (kind, literal) {
        (LogicalType::Decimal { .. }, literal) => wide(kind, literal)?.narrow()?,
        (LogicalType::Integer { .. }, Literal::Whole(n)) => *n,
        (LogicalType::Date, Literal::Datetime(d)) if d.time.is_none() => civil::days(d)?.into(),
        (LogicalType::Time { unit, .. }, Literal::Datetime(d)) if d.date.is_none() => {
            let nanos = civil::nanoseconds_of_day(&d.time?);
            let per_tick = 1_000_000_000 / unit.per_second();
            (nanos % per_tick == 0).then_some(nanos / per_tick)?
        }
        (LogicalType::Timestamp { unit, zone }, Literal::Datetime(d)) => {
            let nanos = civil::nanoseconds(d, zone.is_some())?;
            let per_tick = 1_000_000_000 / unit.per_second();
            (nanos % per_tick == 0).then_some(nanos / per_tick)?
        }
        (LogicalType::Duration { unit }, Literal::Text(text)) => {
            let ticks = duration_ticks(text, 86_400 * unit.per_second())?;
            // Beyond 2^53 a double may only approximate the text: write the number then.
            let whole = ticks.trunc() == ticks && ticks.abs() <= (1u64 << 53) as f64;
            whole.then_some(ticks as i128)?
        }
        (LogicalType::Int96, Literal::Datetime(d)) => civil::nanoseconds(d, false)?,
        // Times may also be written as the stored numbers.
        (kind, Literal::Whole(n)) if kind.is_temporal() => *n,
        _ => return None,
    };
    let (low, high) = kind.range();
    (low..=high).contains(&whole).then_some(whole)
}

/// [`whole`], also of more than 128 bits.
pub(crate) fn wide(kind: &LogicalType, literal: &Literal<'_>) -> Option<Int256> {
    let LogicalType::Decimal { precision, scale, .. } = kind else {
        return whole(kind, literal).map(Int256::from);
    };
    let number = match literal {
        Literal::Whole(n) => Int256::from(*n).shifted((*scale).into())?,
        Literal::Real(digits) | Literal::Text(digits) => unscaled(digits, *scale)?,
        _ => return None,
    };
    let above = Int256::power_of_ten(*precision);
    (-above < number && number < above).then_some(number)
}

/// `"-12.50"` as the whole number that a decimal of `scale` stores; `None` if it would lose digits.
fn unscaled(text: &str, scale: u8) -> Option<Int256> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if before.is_empty() && behind.is_empty() {
        return None;
    }
    let mut digits: Vec<u8> = before.bytes().chain(behind.bytes()).collect();
    let shift = i32::from(scale).checked_add(exponent)?.checked_sub(i32::try_from(behind.len()).ok()?)?;
    // The digits that are lost.
    let lost = digits.split_off(digits.len().saturating_sub(shift.min(0).unsigned_abs() as usize));
    if !lost.into_iter().all(|digit| digit == b'0') {
        return None;
    }
    let mut value = Int256::from(0);
    for digit in digits {
        value = value.with_digit(digit.is_ascii_digit().then(|| digit - b'0')?)?;
    }
    // Zero may have any exponent.
    let value = value.shifted(shift.clamp(0, 100) as u32)?;
    Some(if negative { -value } else { value })
}

/// `literal` as a real number of the type `kind`; `None` if a number in digits exceeds the type's range.
pub(crate) fn real(kind: &LogicalType, literal: &Literal<'_>) -> Option<f64> {
    let value: f64 = match literal {
        Literal::Whole(n) => *n as f64,
        Literal::Real(digits) => digits.parse().ok()?,
        _ => return None,
    };
    let is_inf_or_nan =
        matches!(literal, Literal::Real(text) if !text.contains(|c: char| c.is_ascii_digit()));
    (is_inf_or_nan || value.abs() <= kind.most_real()).then_some(value)
}

/// `literal` PLAIN-encoded as the type `kind`, strings without their length.
pub(crate) fn entry(kind: &LogicalType, literal: &Literal<'_>) -> Option<Vec<u8>> {
    if kind.is_whole() {
        return Some(whole_entry(kind.physical(), wide(kind, literal)?));
    }
    match (kind, literal) {
        (LogicalType::Boolean, Literal::Boolean(b)) => Some(vec![u8::from(*b)]),
        (LogicalType::Float16, _) => Some(half::f16::from_f64(real(kind, literal)?).to_le_bytes().to_vec()),
        (LogicalType::Float, _) => Some((real(kind, literal)? as f32).to_le_bytes().to_vec()),
        (LogicalType::Double, _) => Some(real(kind, literal)?.to_le_bytes().to_vec()),
        (LogicalType::String | LogicalType::Enum, Literal::Text(text)) => Some(text.as_bytes().to_vec()),
        (LogicalType::Json, Literal::Text(text)) => {
            serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
            Some(text.as_bytes().to_vec())
        }
        (LogicalType::Binary, Literal::Text(text)) => bytes(text).map(Cow::into_owned),
        (LogicalType::FixedBinary(width), Literal::Text(text)) => {
            bytes(text).filter(|b| b.len() == *width as usize).map(Cow::into_owned)
        }
        (LogicalType::Interval, Literal::Text(text)) => intervals::parse(text).map(intervals::bytes),
        (LogicalType::Geometry { .. }, Literal::Text(text)) => {
            text.strip_prefix("0x").and_then(hexadecimal).filter(|bytes| geometry::is_wkb(bytes))
        }
        (LogicalType::Uuid, Literal::Text(text)) => uuid(text).map(Vec::from),
        _ => None,
    }
}

/// A PLAIN-encoded whole number; big-endian two's complement in fixed-length bytes.
fn whole_entry(physical: Physical, whole: Int256) -> Vec<u8> {
    let bytes = whole.bytes();
    let (_, last) = bytes.split_at(bytes.len() - physical.width().unwrap_or(8).min(bytes.len()));
    match physical {
        Physical::Fixed(_) => last.to_vec(),
        Physical::Int96 => int96(whole.narrow().unwrap_or(0) as i64).to_vec(),
        _ => last.iter().rev().copied().collect(),
    }
}

/// Fills `out` with `whole`, sign-extended.
#[inline]
pub(crate) fn big_endian(whole: i128, out: &mut [u8]) {
    let bytes = whole.to_be_bytes();
    let n = out.len();
    if n <= 16 {
        out.copy_from_slice(&bytes[16 - n..]);
    } else {
        out[..n - 16].fill(if whole < 0 { 0xFF } else { 0 });
        out[n - 16..].copy_from_slice(&bytes);
    }
}

/// Nanoseconds since 1970-01-01 as an INT96 timestamp: nanoseconds of the day, then the Julian day.
pub(crate) fn int96(nanos: i64) -> [u8; 12] {
    const DAY: i64 = 86_400_000_000_000;
    /// The Julian day of 1970-01-01.
    const EPOCH: i64 = 2_440_588;
    let mut out = [0; 12];
    out[..8].copy_from_slice(&nanos.rem_euclid(DAY).to_le_bytes());
    out[8..].copy_from_slice(&((nanos.div_euclid(DAY) + EPOCH) as u32).to_le_bytes());
    out
}

/// The bytes of a string: its text or, after `0x`, its hexadecimal digits.
fn bytes(text: &str) -> Option<Cow<'_, [u8]>> {
    match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits).map(Cow::Owned),
        None => Some(Cow::Borrowed(text.as_bytes())),
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let nibble = |b: u8| char::from(b).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some((nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?) as u8)).collect()
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    if let Some(digits) = text.strip_prefix("0x") {
        return hexadecimal(digits)?.try_into().ok();
    }
    let parts: Vec<&str> = text.split('-').collect();
    if parts.iter().map(|p| p.len()).collect::<Vec<_>>() != [8, 4, 4, 4, 12] {
        return None;
    }
    hexadecimal(&parts.concat())?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_keep_all_digits() {
        let narrow = |text: &str, scale| unscaled(text, scale).and_then(Int256::narrow);
        assert_eq!(narrow("-12.50", 2), Some(-1250));
        assert_eq!(narrow("1.5e3", 1), Some(15_000));
        assert_eq!(narrow("1.250", 2), Some(125));
        assert_eq!(narrow("0e-1000", 2), Some(0));
        assert_eq!(narrow("1.255", 2), None);
        assert_eq!(narrow("99999999999999999999999999999999999999", 0), Some(10i128.pow(38) - 1));
        assert_eq!(unscaled(&"9".repeat(76), 0), Some(Int256::power_of_ten(76) - Int256::from(1)));
        assert_eq!(unscaled(&"9".repeat(78), 0), None);
        for bad in ["", "-", ".", "1x", "0x1", "1e"] {
            assert_eq!(unscaled(bad, 2), None, "{bad}");
        }
    }

    #[test]
    fn whole_numbers_in_fixed_length_bytes_keep_their_sign() {
        assert_eq!(whole_entry(Physical::Fixed(2), Int256::from(-2)), [0xFF, 0xFE]);
        assert_eq!(whole_entry(Physical::Fixed(18), Int256::from(-2))[..3], [0xFF; 3]);
        assert_eq!(whole_entry(Physical::Fixed(18), Int256::from(1))[16..], [0, 1]);
        assert_eq!(whole_entry(Physical::Int32, Int256::from(-2)), [0xFE, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn the_epoch_is_julian_day_2440588() {
        assert_eq!(int96(0)[8..], 2_440_588u32.to_le_bytes());
        assert_eq!(int96(-1)[..8], 86_399_999_999_999u64.to_le_bytes());
    }

    #[test]
    fn uuids_and_hexadecimal_bytes_are_read() {
        assert_eq!(uuid("123e4567-e89b-12d3-a456-426614174000").unwrap()[..2], [0x12, 0x3e]);
        assert_eq!(uuid("123e4567e89b12d3a456426614174000"), None);
        assert_eq!(bytes("0x00fF").unwrap()[..], [0, 255]);
        assert_eq!(bytes("0x0"), None);
    }
}
