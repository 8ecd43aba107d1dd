//! Parses integers, decimals and floats. Most have at most eight characters, which are parsed together.

use std::str::FromStr;

use super::arrays::Part;

/// At most eight digits, with or without a point.
struct Short {
    digits: u32,
    /// How many of them are after the point.
    fraction: usize,
}

/// Returns a number without a sign; `None` if it has no digits, more than eight characters, or others.
#[inline(always)]
fn short(text: &[u8]) -> Option<Short> {
    const BYTES: u64 = u64::from_ne_bytes([1; 8]);
    const ZEROS: u64 = BYTES * b'0' as u64;
    let word = word(text)?;
    let point = zeros(word ^ (BYTES * u64::from(b'.')));
    let (digits, count, fraction) = match point.trailing_zeros() / 8 {
        8 => (word, text.len(), 0),
        at => {
            let before = word & ((1 << (8 * at)) - 1);
            let after = word >> (8 * at) >> 8 << (8 * at);
            (before | after, text.len() - 1, text.len() - 1 - at as usize)
        }
    };
    let missing = 8 * 8_usize.checked_sub(count).filter(|missing| *missing < 8)? as u32;
    // The digits as numbers; those that are missing become zeros before them.
    let digits = (digits ^ (ZEROS >> missing)) << missing;
    if (digits.wrapping_add(BYTES * 0x76) | digits) & (BYTES * 0x80) != 0 {
        return None;
    }
    // Pairs, and pairs of them, and of these: the upper ones count a hundred or ten thousand times as much.
    let pairs = digits * 10 + (digits >> 8);
    const HALF: u64 = 0x0000_00ff_0000_00ff;
    let upper = (pairs & HALF).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & HALF).wrapping_mul(1 + (10_000 << 32));
    Some(Short { digits: (upper.wrapping_add(lower) >> 32) as u32, fraction })
}

/// Up to eight characters, the first one in the lowest byte.
fn word(text: &[u8]) -> Option<u64> {
    let byte = |at: usize| text.get(at).map_or(0, |byte| u64::from(*byte));
    match (text.first_chunk(), text.last_chunk(), text.len()) {
        (Some(first), Some(last), length @ ..=8) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            Some(u64::from(first) | u64::from(last) << (8 * (length - 4)))
        }
        (_, _, 0..4) => Some(byte(0) | byte(1) << 8 | byte(2) << 16),
        _ => None,
    }
}

/// Whether a number has bytes other than digits, signs and points, such as an exponent.
#[inline(always)]
pub(super) fn has_letters(text: &[u8]) -> bool {
    // Letters have this bit, and digits have not.
    const LETTER: u8 = 0x40;
    match word(text) {
        Some(word) => word & u64::from_ne_bytes([LETTER; 8]) != 0,
        None => text.iter().fold(0, |all, byte| all | byte) & LETTER != 0,
    }
}

/// Sets the highest bit of every byte that is zero, and of no others.
fn zeros(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // A carry out of seven bits says that one of them is set; no carry crosses a byte.
    !(((word & LOW) + LOW) | word | LOW)
}

/// The number without its sign, and whether that is a minus.
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

/// Parses a float like the standard library. The digits of a short number and its power of ten are exact
/// floats, so that the quotient is rounded once, as required.
#[inline(always)]
pub(super) fn float(text: Part<'_>) -> Option<f64> {
    let (negative, digits) = sign(text.bytes());
    match short(digits).map(|Short { digits, fraction }| f64::from(digits) / POWERS[fraction]) {
        Some(value) => Some(if negative { -value } else { value }),
        None => in_range(text.text()),
    }
}

/// Parses a float of any width; `None` also if its digits are beyond the type, which would make it infinite or zero.
pub(super) fn in_range<T: FromStr + Into<f64> + Copy>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    let of_value: f64 = value.into();
    let is_lost = match of_value {
        0.0 => {
            let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
            mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
        }
        _ => of_value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()),
    };
    (!is_lost).then_some(value)
}

const POWERS: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// A whole number.
#[inline(always)]
pub(super) fn whole<T: TryFrom<i32> + FromStr>(text: Part<'_>) -> Option<T> {
    let (negative, digits) = sign(text.bytes());
    if let Some(Short { digits: value, fraction: 0 }) = short(digits)
        && digits.last() != Some(&b'.')
    {
        let value = value as i32;
        return T::try_from(if negative { -value } else { value }).ok();
    }
    text.text().parse().ok()
}

/// A decimal number, with or without an exponent; digits beyond the scale must be zeros.
#[inline(always)]
pub(super) fn decimal(text: Part<'_>, precision: u8, scale: i8) -> Option<i128> {
    let (negative, digits) = sign(text.bytes());
    let scale = usize::try_from(scale).ok()?;
    if let Some(Short { digits, fraction }) = short(digits)
        && let Some(zeros) = scale.checked_sub(fraction)
        && zeros + 8 <= usize::from(precision.min(18))
    {
        let value = i64::from(digits) * 10_i64.pow(zeros as u32);
        return Some(i128::from(if negative { -value } else { value }));
    }
    let value = long_decimal(digits, scale as i64)?;
    let is_within = value < 10_i128.checked_pow(u32::from(precision))?;
    is_within.then_some(if negative { -value } else { value })
}

fn long_decimal(text: &[u8], scale: i64) -> Option<i128> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    // How many digits are before the end of the scale: others are zeros, there or not.
    let kept = point as i64 + i64::from(exponent) + scale;
    let (mut value, mut count): (i128, i64) = (0, 0);
    for byte in mantissa[..point].iter().chain(fraction) {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 if count < kept => value = value.checked_mul(10)?.checked_add(i128::from(digit))?,
            0 => {}
            _ => return None,
        }
        count += 1;
    }
    match (count, value) {
        (0, _) => None,
        (_, 0) => Some(0),
        _ => value.checked_mul(10_i128.checked_pow(u32::try_from((kept - count).max(0)).ok()?)?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]
        #[test]
        fn numbers_are_those_of_the_standard_library(text in "[+-]?[0-9]{0,9}[.x+-]?[0-9]{0,9}") {
            let expected = text.parse::<f64>().ok();
            prop_assert_eq!(float(Part::new(&text)).map(f64::to_bits), expected.map(f64::to_bits));
            prop_assert_eq!(whole::<i64>(Part::new(&text)), text.parse().ok());
            prop_assert_eq!(whole::<i16>(Part::new(&text)), text.parse().ok());
        }

        #[test]
        fn decimals_are_all_digits(whole in "[0-9]{0,12}", fraction in "[0-9]{0,7}", zeros in 0_usize..4) {
            let scale = fraction.len() + zeros;
            let decimal = |text: &str| decimal(Part::new(text), 38, scale as i8);
            let expected = format!("{whole}{fraction}{}", "0".repeat(zeros)).parse().ok();
            let expected = expected.filter(|_| !(whole.is_empty() && fraction.is_empty()));
            prop_assert_eq!(decimal(&format!("{whole}.{fraction}")), expected);
            let negative = expected.map(|value: i128| -value);
            prop_assert_eq!(decimal(&format!("-{whole}.{fraction}")), negative);
            let moved = |by: usize| format!("+{whole}{fraction}{}e-{}", "0".repeat(by), fraction.len() + by);
            prop_assert_eq!(decimal(&moved(0)), expected);
            prop_assert_eq!(decimal(&moved(zeros)), expected.or((zeros > 0).then_some(0)));
        }
    }

    #[test]
    fn decimals_keep_every_digit_or_do_not_fit() {
        let decimal = |text, precision, scale| decimal(Part::new(text), precision, scale);
        assert_eq!(decimal("-12.5", 10, 2), Some(-1250));
        assert_eq!(decimal("0.100", 10, 2), Some(10));
        assert_eq!(decimal(".5", 10, 2), Some(50));
        assert_eq!(decimal("7.", 10, 2), Some(700));
        assert_eq!(decimal("99999999.99", 10, 2), Some(9_999_999_999));
        for (text, value) in [
            ("1e3", 100_000),
            ("+1", 100),
            ("-1.5E+3", -150_000),
            ("120e-1", 1200),
            ("0.0010e2", 10),
            ("0e999999999", 0),
            ("9999999999e-2", 9_999_999_999),
        ] {
            assert_eq!(decimal(text, 10, 2), Some(value), "{text}");
        }
        let wrong = [
            "",
            "-",
            ".",
            "1.234",
            "100000000",
            "1,5",
            "--1",
            "+-1",
            "1e",
            "e3",
            ".e3",
            "1e-3",
            "1e8",
            "1e1.5",
        ];
        for wrong in wrong.into_iter().chain(["1e999999999", "1e-999999999", "1e9999999999", "1e38", "0x1"]) {
            assert_eq!(decimal(wrong, 10, 2), None, "{wrong}");
        }
    }

    #[test]
    fn floats_beyond_their_type_are_none_of_it() {
        let double = |text| float(Part::new(text));
        let single = in_range::<f32>;
        for text in ["1e400", "-1e400", "1e-400", "-0.0001e-330", "123456789e999"] {
            assert_eq!((double(text), single(text)), (None, None), "{text}");
        }
        assert_eq!((single("1e39"), single("1e-50")), (None, None));
        assert_eq!(
            (double("1e39"), double("5e-324"), double("0e-999")),
            (Some(1e39), Some(5e-324), Some(0.0))
        );
        assert_eq!(
            (double("Infinity"), single("-inf"), single("1e-40")),
            (Some(f64::INFINITY), Some(f32::NEG_INFINITY), Some(1e-40))
        );
    }
}
