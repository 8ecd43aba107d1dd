//! Formats counts for people, `4.40 M`, `1,234,567`, `4.40 M rows/s`, and parses them: `10M`, `1.5B`,
//! `10_000`.

use crate::error::{Error, Result};
use crate::text::number_text::{number_and_unit, scaled, whole};

const ADVICE: &str = "write a whole number, or one with k, M, B or T: 10_000, 10M, 1.5B";

const UNITS: [(&str, f64); 4] = [("k", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12)];

/// Formats a count with three significant digits.
///
/// ```
/// assert_eq!(sawmill_profile::format_count(4_400_000), "4.40 M");
/// assert_eq!(sawmill_profile::format_count(950), "950");
/// ```
pub fn format_count(count: u64) -> String {
    if count < 1000 { count.to_string() } else { short(count as f64) }
}

/// Formats a count in full, with digits in groups of three.
///
/// ```
/// assert_eq!(sawmill_profile::format_grouped(1_234_567), "1,234,567");
/// ```
pub fn format_grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number of things, in full: `1 row`, `19,997 rows`.
///
/// ```
/// assert_eq!(sawmill_profile::format_counted(19_997, "row"), "19,997 rows");
/// ```
pub fn format_counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", format_grouped(count), if count == 1 { "" } else { "s" })
}

/// Formats a rate of things per second.
///
/// ```
/// assert_eq!(sawmill_profile::format_rate(4.4e6, "rows"), "4.40 M rows/s");
/// ```
pub fn format_rate(per_second: f64, things: &str) -> String {
    format!("{} {things}/s", short(per_second))
}

fn short(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    if value < 999.5 {
        return crate::text::number_text::three_digits(value);
    }
    let (number, unit) = scaled(value, &UNITS);
    format!("{number} {unit}")
}

/// Parses a count: a whole number, or a number with k (thousand), M (million), B or G (billion) or T
/// (trillion). Case does not matter, and `_` or `,` may group digits.
///
/// ```
/// assert_eq!(sawmill_profile::parse_count("1.5B"), Ok(1_500_000_000));
/// ```
///
/// # Errors
/// The text has another form, is negative or not whole, or has an unknown unit.
pub fn parse_count(text: &str) -> Result<u64> {
    let ungrouped = text.replace(',', "");
    // Parse whole numbers exactly: a float would lose digits above 2^53.
    let digits = ungrouped.trim().replace('_', "");
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits
            .parse()
            .map_err(|_| Error::failed(format!("{text:?} is too large for a count"), "", ADVICE));
    }
    let (value, unit) = number_and_unit(&ungrouped, "count", ADVICE)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "b" | "g" => 1e9,
        "t" => 1e12,
        _ => return Err(Error::failed(format!("{unit:?} is not a unit of a count"), text, ADVICE)),
    };
    whole(value * factor, text, "count", ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_short_and_in_full() {
        assert_eq!(format_count(0), "0");
        assert_eq!(format_count(999_700), "1.00 M");
        assert_eq!(format_count(12_345_678_901), "12.3 B");
        assert_eq!(format_grouped(0), "0");
        assert_eq!(format_grouped(999), "999");
        assert_eq!(format_grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(format_rate(12.0, "runs"), "12.0 runs/s");
    }

    #[test]
    fn counts_are_read_exactly() {
        for (text, count) in [
            ("0", 0),
            ("10M", 10_000_000),
            ("1.5B", 1_500_000_000),
            ("2.4k", 2400),
            ("1_000_000", 1_000_000),
            ("1,000,000", 1_000_000),
            ("1e6", 1_000_000),
            ("18446744073709551615", u64::MAX),
            ("0.3 M", 300_000),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_count_is_rejected_with_an_example() {
        for text in ["", "M", "-1", "1.5", "1.0001k", "10 rows", "99999999999999999999", "1e30"] {
            let error = parse_count(text).unwrap_err();
            assert!(error.advice().contains("10M"), "{text}: {error}");
        }
    }
}
