//! Parses decimal numbers into PostgreSQL's `numeric`.

use super::trimmed;
use crate::values::numeric::{NAN, write_digits};

/// Most digits before and after the decimal point (`NUMERIC_WEIGHT_MAX`, `NUMERIC_DSCALE_MAX`).
const MAX_BEFORE: i64 = 131_072;
const MAX_BEHIND: i64 = 16_383;

/// The parts of a decimal number.
pub(super) struct Decimal {
    pub negative: bool,
    /// Digits 0 to 9, without leading zeros; empty for zero.
    pub digits: Vec<u8>,
    /// Number of digits before the decimal point; negative if zeros follow the point first.
    pub before: i64,
    /// Number of digits after the decimal point, including trailing zeros.
    pub scale: i64,
}

impl Decimal {
    /// Parses `[sign]digits[.digits][e[sign]digits]`, with digits on at least one side of the point, as
    /// `numeric_in` does.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let (negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            None => (rest, 0),
            Some(at) => (&rest[..at], read_exponent(&rest[at + 1..])?),
        };
        let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
        let behind = mantissa.get(point + 1..).unwrap_or_default();
        let digits: Vec<u8> = mantissa[..point].iter().chain(behind).copied().collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let leading = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
        Some(Self {
            negative: negative && leading < digits.len(),
            digits: digits[leading..].iter().map(|digit| digit - b'0').collect(),
            before: point as i64 - leading as i64 + exponent,
            scale: (behind.len() as i64 - exponent).max(0),
        })
    }

    /// Rejects a number, not zero, that a column of this precision and scale does not store. The scale may be
    /// greater than the precision, or negative.
    fn check(&self, precision: i64, scale: i64) -> Result<(), String> {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        let needed = self.digits.len() as i64 - zeros as i64 - self.before;
        let most = precision - scale;
        Err(match self.before {
            _ if needed > scale && scale < 0 => {
                format!("it is not a multiple of 10^{}, as the column stores", -scale)
            }
            _ if needed > scale => {
                format!("it has {needed} digits after the decimal point; the column stores {scale}")
            }
            before if before > most && most < 0 => {
                format!("the column stores magnitudes below 10^{most}")
            }
            before if before > most => {
                format!("it has {before} digits before the decimal point, more than the column stores")
            }
            _ => return Ok(()),
        })
    }

    /// Whether `numeric` can represent it.
    pub(super) fn fits(&self) -> bool {
        self.scale <= MAX_BEHIND && (self.digits.is_empty() || self.before <= MAX_BEFORE)
    }
}

/// Parses an exponent. One that is far out of range becomes a number that is still out of range.
fn read_exponent(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let beyond = if text.starts_with('-') { -1_000_000_000 } else { 1_000_000_000 };
    Some(text.parse::<i64>().unwrap_or(beyond).clamp(-1_000_000_000, 1_000_000_000))
}

/// Parses `text` and appends it as a numeric of the bounds `(precision, scale)`. Rejects values that the
/// scale would round.
pub(crate) fn write(text: &[u8], bounds: Option<(u16, i16)>, out: &mut Vec<u8>) -> Result<(), String> {
    let text = trimmed(text);
    if let Some(special) = special(text) {
        // A numeric with bounds can be NaN but not infinite. The display scale of infinities is what
        // `NUMERIC_DSCALE` reads from the bits of the short header.
        let infinite = special != NAN;
        if infinite && bounds.is_some() {
            return Err("a numeric with a precision cannot store infinity".to_owned());
        }
        for word in [0, 0, special, if infinite { 32 } else { 0 }] {
            out.extend_from_slice(&u16::to_be_bytes(word));
        }
        return Ok(());
    }
    let mut decimal = Decimal::read(text).ok_or("expected a decimal number")?;
    if !decimal.fits() {
        return Err("it is out of range".to_owned());
    }
    if let Some((precision, scale)) = bounds {
        if !decimal.digits.is_empty() {
            decimal.check(i64::from(precision), i64::from(scale))?;
        }
        decimal.scale = i64::from(scale.max(0));
    }
    let Decimal { negative, digits, before, scale } = decimal;
    write_digits(negative, &digits, before, scale as u16, out)
}

/// Returns the sign word of `NaN` and of the infinities.
fn special(text: &[u8]) -> Option<u16> {
    let (sign, word) = match text.split_first()? {
        (b'-', rest) => (Some(b'-'), rest),
        (b'+', rest) => (Some(b'+'), rest),
        _ => (None, text),
    };
    if word.eq_ignore_ascii_case(b"nan") && sign.is_none() {
        return Some(NAN);
    }
    let infinite = word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity");
    infinite.then_some(if sign == Some(b'-') { 0xf000 } else { 0xd000 })
}
