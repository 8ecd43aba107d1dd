//! Writes floats as jsonb numbers.

use std::io::Write;

use super::moment::put;

/// Appends the shortest digits that parse to the same value. Rust's `Display` for floats never uses an
/// exponent.
pub(super) fn write_float<F: Float>(value: F, out: &mut Vec<u8>) {
    match value.class() {
        Class::NaN => out.extend_from_slice(b"\"NaN\""),
        Class::Infinity => out.extend_from_slice(b"\"Infinity\""),
        Class::NegativeInfinity => out.extend_from_slice(b"\"-Infinity\""),
        // PostgreSQL's numeric does not have a negative zero.
        Class::Zero => out.push(b'0'),
        Class::Other => put!(out, "{value}"),
    }
}

/// The classes of floats that jsonb writes differently.
pub(super) enum Class {
    NaN,
    Infinity,
    NegativeInfinity,
    Zero,
    Other,
}

/// The operations that `write_float` needs of both float types.
pub(super) trait Float: std::fmt::Display {
    fn class(&self) -> Class;
}

macro_rules! float {
    ($t:ty) => {
        impl Float for $t {
            fn class(&self) -> Class {
                match *self {
                    value if value.is_nan() => Class::NaN,
                    <$t>::INFINITY => Class::Infinity,
                    <$t>::NEG_INFINITY => Class::NegativeInfinity,
                    value if value == 0.0 => Class::Zero,
                    _ => Class::Other,
                }
            }
        }
    };
}
float!(f32);
float!(f64);
