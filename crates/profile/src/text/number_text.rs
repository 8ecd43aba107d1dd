//! What the human-readable formats share: splitting a number from its unit, and formatting with three digits.

use crate::error::{Error, Result};

/// Splits `12.5 MiB` into number and unit; `_` may group digits.
pub(crate) fn number_and_unit<'a>(text: &'a str, what: &str, advice: &str) -> Result<(f64, &'a str)> {
    let trimmed = text.trim();
    let is_exponent = |at: usize| {
        // An `e` as in 1e6, but not the `e` of a unit.
        let rest = trimmed.get(at + 1..).unwrap_or_default();
        matches!(trimmed.as_bytes().get(at), Some(b'e' | b'E'))
            && at > 0
            && rest.strip_prefix(['+', '-']).unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
    };
    let ends = |(at, char): &(usize, char)| {
        let before = trimmed.get(..*at).unwrap_or_default();
        let sign = matches!(char, '+' | '-') && (before.is_empty() || before.ends_with(['e', 'E']));
        !(char.is_ascii_digit() || matches!(char, '.' | '_') || sign || is_exponent(*at))
    };
    let end = trimmed.char_indices().find(ends).map_or(trimmed.len(), |(at, _)| at);
    let (number, unit) = trimmed.split_at(end);
    let refused = |why: &str| Error::failed(format!("{text:?} is not a {what}{why}"), "", advice);
    let value: f64 = number.replace('_', "").parse().map_err(|_| refused(""))?;
    if !value.is_finite() || value < 0.0 || number.starts_with(['-', '+']) {
        return Err(refused(": it must not be negative"));
    }
    Ok((value, unit.trim_start()))
}

/// A whole number of units; a fractional part is an error.
pub(crate) fn whole(value: f64, text: &str, what: &str, advice: &str) -> Result<u64> {
    // 2^64 as a float. Above 2^53 the product is a whole number anyway, to float precision.
    if value >= 18_446_744_073_709_551_616.0 {
        return Err(Error::failed(format!("{text:?} is too large for a {what}"), "", advice));
    }
    let rounded = value.round();
    if (value - rounded).abs() > 1e-6 {
        return Err(Error::failed(format!("{text:?} is not a whole {what}"), "", advice));
    }
    Ok(rounded as u64)
}

/// Three significant digits, and never fewer before the point: 1.23, 12.3, 123, 1234.
pub(crate) fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The largest unit that leaves at least 1 before the point after rounding.
pub(crate) fn scaled<'a>(value: f64, units: &[(&'a str, f64)]) -> (String, &'a str) {
    let mut chosen = units.first().copied().unwrap_or(("", 1.0));
    for unit in units {
        // 999.7 would round to 1000, so it gets the next unit.
        if value.abs() >= unit.1 * 0.9995 {
            chosen = *unit;
        }
    }
    (three_digits(value / chosen.1), chosen.0)
}
