//! Values in the notation of specs.

use std::fmt::{Display, Write};

use arrow_schema::{DataType, TimeUnit};

use crate::types::civil::date_text;

/// The days of the years 1 and 9999, which TOML can write.
const WRITABLE_DAYS: std::ops::Range<i128> = -719_162..2_932_897;

/// A share or exponent with six digits.
pub(crate) fn rounded(value: f64) -> String {
    digits(value, 6)
}

/// A number with at most `n` digits after the point.
pub(crate) fn digits(value: f64, n: usize) -> String {
    let text = format!("{value:.n$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number in TOML notation, always with a point or an exponent.
pub(crate) fn number(value: f64) -> String {
    in_toml(format!("{value:?}"))
}

/// A single-precision number in TOML notation.
pub(crate) fn single(value: f64) -> String {
    in_toml(format!("{:?}", value as f32))
}

fn in_toml(text: String) -> String {
    // TOML requires digits on both sides of the point; Rust writes large numbers without a point.
    match text.contains('e') && !text.contains('.') {
        true => text.replacen('e', ".0e", 1),
        false => text.replace("NaN", "nan"),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(crate) fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[{}]", values.join(", "))
}

pub(crate) fn table(pairs: impl IntoIterator<Item = (impl Display, impl Display)>) -> String {
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// A stored whole number of type `kind` as a value.
pub(crate) fn literal(kind: &DataType, n: i128) -> String {
    match kind {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            quoted(&decimal_text(n, *scale as u32))
        }
        DataType::Date32 if WRITABLE_DAYS.contains(&n) => date_text(n as i64),
        DataType::Time32(_) | DataType::Time64(_) => time_text(n, per_second(kind)),
        DataType::Timestamp(_, zone) => {
            let (per_second, zone) = (per_second(kind), if zone.is_some() { "Z" } else { "" });
            let day = 86_400 * per_second;
            let (days, of_day) = (n.div_euclid(day), n.rem_euclid(day));
            match WRITABLE_DAYS.contains(&days) {
                true => format!("{}T{}{zone}", date_text(days as i64), time_text(of_day, per_second)),
                false => n.to_string(),
            }
        }
        _ => n.to_string(),
    }
}

/// A stored whole number of type `kind` as the key of a table.
pub(crate) fn key(kind: &DataType, n: i128) -> String {
    quoted(literal(kind, n).trim_matches('"'))
}

/// A difference of stored whole numbers of type `kind`.
pub(crate) fn difference(kind: &DataType, n: i128) -> String {
    if is_temporal(kind) { n.to_string() } else { literal(kind, n) }
}

/// A quantity in stored whole numbers of type `kind`, not necessarily whole.
pub(crate) fn quantity(kind: &DataType, value: f64) -> String {
    number(value / one(kind))
}

pub(crate) fn is_temporal(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..))
}

/// The stored whole number of 1.
pub(crate) fn one(kind: &DataType) -> f64 {
    match kind {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            (0..*scale).fold(1.0, |one, _| one * 10.0)
        }
        _ => 1.0,
    }
}

pub(crate) fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Nanosecond => "ns",
        TimeUnit::Microsecond => "us",
        _ => "ms",
    }
}

pub(crate) fn per_second(kind: &DataType) -> i128 {
    match kind {
        DataType::Time64(TimeUnit::Nanosecond) | DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            1_000_000_000
        }
        DataType::Time64(_) | DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        _ => 1_000,
    }
}

fn time_text(of_day: i128, per_second: i128) -> String {
    let (seconds, fraction) = (of_day / per_second, of_day % per_second);
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let digits = per_second.ilog10() as usize;
    if fraction == 0 { time } else { format!("{time}.{fraction:0digits$}") }
}

pub(crate) fn decimal_text(unscaled: i128, scale: u32) -> String {
    let one = 10u128.pow(scale.min(38));
    let (sign, n) = (if unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
    match scale {
        0 => unscaled.to_string(),
        _ => format!("{sign}{}.{:0width$}", n / one, n % one, width = scale as usize),
    }
}
