//! Human-readable sizes in bytes. Memory uses binary units (64.0 MiB), rates and files use decimal ones (512
//! MB/s), as is usual for each.

use crate::error::{Error, Result};
use crate::text::number_text::{number_and_unit, scaled, whole};

const ADVICE: &str = "write a number of bytes, or one with a unit: 64MiB, 1.5GiB (powers of two), 100MB \
                      (powers of ten); K, M, G and T alone are powers of two (64M is 64MiB)";

const BINARY: [(&str, f64); 5] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
];
const DECIMAL: [(&str, f64); 5] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)];

/// Formats a size in binary units, for memory and buffers.
///
/// ```
/// assert_eq!(sawmill_profile::format_bytes(64 << 20), "64.0 MiB");
/// ```
pub fn format_bytes(bytes: u64) -> String {
    shown(bytes as f64, &BINARY)
}

/// Formats a size in decimal units, for files and network traffic.
///
/// ```
/// assert_eq!(sawmill_profile::format_decimal_bytes(1_234_000_000), "1.23 GB");
/// ```
pub fn format_decimal_bytes(bytes: u64) -> String {
    shown(bytes as f64, &DECIMAL)
}

/// Formats bytes per second in decimal units.
///
/// ```
/// assert_eq!(sawmill_profile::format_byte_rate(512e6), "512 MB/s");
/// ```
pub fn format_byte_rate(bytes_per_second: f64) -> String {
    format!("{}/s", shown(bytes_per_second, &DECIMAL))
}

fn shown(bytes: f64, units: &[(&str, f64)]) -> String {
    if !bytes.is_finite() {
        return "?".to_owned();
    }
    if units.first().is_none_or(|(_, smallest)| bytes < smallest * 0.9995) {
        return format!("{bytes:.0} B");
    }
    let (number, unit) = scaled(bytes, units);
    format!("{number} {unit}")
}

/// Parses a size: a number of bytes, or a number with a unit. kB, MB, GB, TB and PB are powers of ten; KiB,
/// MiB, GiB, TiB and PiB are powers of two, and so are K, M, G, T and P alone, as in the options of most
/// tools. Case does not matter, and blanks may precede the unit.
///
/// ```
/// assert_eq!(sawmill_profile::parse_bytes("64MiB"), Ok(64 << 20));
/// assert_eq!(sawmill_profile::parse_bytes("100 MB"), Ok(100_000_000));
/// assert_eq!(sawmill_profile::parse_bytes("1.5M"), Ok(1_572_864));
/// ```
///
/// # Errors
/// The text is not a number, is negative, is not a whole number of bytes, is 2^64 or more, or has an unknown
/// unit.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let (value, unit) = number_and_unit(text, "size", ADVICE)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "pb" => 1_000_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "p" | "pib" => 1 << 50,
        _ => return Err(Error::failed(format!("unknown unit {unit:?} of a size"), text, ADVICE)),
    };
    // Parse whole numbers exactly: a float would lose digits above 2^53.
    let number = text.trim().strip_suffix(unit).unwrap_or(text).trim_end().replace('_', "");
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        return bytes.ok_or_else(|| Error::failed(format!("{text:?} is too large for a size"), "", ADVICE));
    }
    // Round fractions of a byte such as in 0.1 GiB; half a byte without a unit is a mistake.
    let bytes = if factor > 1 { (value * factor as f64).round() } else { value };
    whole(bytes, text, "number of bytes", ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(1023), "1023 B");
        assert_eq!(format_bytes(1000), "1000 B");
        assert_eq!(format_bytes(1536), "1.50 KiB");
        assert_eq!(format_bytes(123 << 30), "123 GiB");
        assert_eq!(format_decimal_bytes(999_600), "1.00 MB");
        assert_eq!(format_byte_rate(1.5e9), "1.50 GB/s");
        assert_eq!(format_byte_rate(f64::NAN), "?/s");
    }

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("0", 0),
            ("123", 123),
            ("1_000", 1000),
            ("8k", 8192),
            ("8kB", 8000),
            ("1.5 GiB", 1_610_612_736),
            ("0.1GiB", 107_374_182),
            ("2T", 2 << 40),
            ("1e6", 1_000_000),
            ("1MB", 1_000_000),
            ("1.5M", 1_572_864),
            ("1.5 MB", 1_500_000),
            (" 1 MB ", 1_000_000),
            ("1mib", 1 << 20),
            ("3P", 3 << 50),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", (1 << 53) + 1),
            ("17179869183GiB", 17_179_869_183 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_size_is_rejected_with_an_example() {
        let too_large = ["1e30", "18446744073709551616", "17179869184GiB", "99999999T", "1e5 P"];
        let others = [
            "",
            " ",
            "MiB",
            "-1",
            "-1MB",
            "+1",
            "0.5",
            "0.5 B",
            "1 elephant",
            "1..2",
            "inf",
            "nan",
            "1 M B",
            "1,000",
        ];
        for text in too_large.into_iter().chain(others) {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.advice().contains("64MiB"), "{text}: {error}");
        }
    }
}
