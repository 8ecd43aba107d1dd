//! Parses integers, decimals and floats. Most have at most eight characters, which are parsed together.

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
        None => text.text().parse().ok(),
    }
}

const POWERS: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// A whole number, without a plus sign.
#[inline(always)]
pub(super) fn whole<T: TryFrom<i32> + std::str::FromStr>(text: Part<'_>) -> Option<T> {
    let (negative, digits) = sign(text.bytes());
    if let Some(Short { digits: value, fraction: 0 }) = short(digits)
        && digits.last() != Some(&b'.')
    {
        let value = value as i32;
        return T::try_from(if negative { -value } else { value }).ok();
    }
    if text.bytes().starts_with(b"+") { None } else { text.text().parse().ok() }
}

/// A decimal number; digits beyond the scale must be zeros.
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
    let text = text.text();
    long_decimal(negative, text.strip_prefix('-').unwrap_or(text), precision, scale)
}

fn long_decimal(negative: bool, digits: &str, precision: u8, scale: usize) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (kept, beyond) = fraction.split_at_checked(scale).unwrap_or((fraction, ""));
    let mut value: i128 = 0;
    let zeros = std::iter::repeat_n(b'0', scale - kept.len());
    for byte in whole.bytes().chain(kept.bytes()).chain(zeros) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    if beyond.bytes().any(|byte| byte != b'0') || value >= 10_i128.checked_pow(u32::from(precision))? {
        return None;
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]
        #[test]
        fn numbers_are_those_of_the_standard_library(text in "-?[0-9]{0,9}[.x+-]?[0-9]{0,9}") {
            let expected = text.parse::<f64>().ok();
            prop_assert_eq!(float(Part::new(&text)).map(f64::to_bits), expected.map(f64::to_bits));
            let no_plus = !text.starts_with('+');
            prop_assert_eq!(whole::<i64>(Part::new(&text)), text.parse().ok().filter(|_| no_plus));
            prop_assert_eq!(whole::<i16>(Part::new(&text)), text.parse().ok().filter(|_| no_plus));
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
        for wrong in ["", "-", ".", "1.234", "100000000", "1e3", "+1", "1,5", "--1"] {
            assert_eq!(decimal(wrong, 10, 2), None, "{wrong}");
        }
    }
}
