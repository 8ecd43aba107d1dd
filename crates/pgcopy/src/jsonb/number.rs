//! Writes floats as jsonb numbers.

use std::fmt::Display;
use std::io::Write;

use super::moment::put;

/// Appends the shortest digits that parse to the same value. Rust's `Display` for floats never uses an
/// exponent.
pub(super) fn write_float(value: impl Copy + Display + Into<f64>, out: &mut Vec<u8>) {
    match value.into() {
        double if double.is_nan() => out.extend_from_slice(b"\"NaN\""),
        f64::INFINITY => out.extend_from_slice(b"\"Infinity\""),
        f64::NEG_INFINITY => out.extend_from_slice(b"\"-Infinity\""),
        // PostgreSQL's numeric does not have a negative zero.
        0.0 => out.push(b'0'),
        _ => put!(out, "{value}"),
    }
}
