//! Numbers of Arrow arrays, as JSON has them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use half::f16;
use sawmill_pgcopy::{Fault, Integers};

use crate::encode::json;

/// How to convert a time value to milliseconds.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    Times(i64),
    Exactly(i64),
    Floor(i64),
}

/// Appends a value's digits.
#[inline]
pub(crate) fn write(integers: &Integers<'_>, row: usize, out: &mut Vec<u8>) {
    with_digits(integers, row, |digits| out.extend_from_slice(digits.as_bytes()));
}

/// Appends the digits of a value of `from` places after the point, with `to` of them.
pub(crate) fn write_decimal(integers: &Integers<'_>, row: usize, from: u8, to: u8, out: &mut Vec<u8>) {
    with_digits(integers, row, |digits| json::write_decimal(digits, from, to, out));
}

#[inline]
fn with_digits(integers: &Integers<'_>, row: usize, write: impl FnOnce(&str)) {
    let mut digits = itoa::Buffer::new();
    match integers {
        Integers::UInt64(values) => write(digits.format(values[row])),
        Integers::Int128(values) => write(digits.format(values[row])),
        Integers::Int256(values) => write(&values[row].to_string()),
        narrow => write(digits.format(narrow.get(row))),
    }
}

/// Milliseconds since 1970 of a moment, by the type of its array.
pub(crate) fn scale_of(data_type: &DataType, truncate: bool) -> Option<Scale> {
    let fine = |n| if truncate { Scale::Floor(n) } else { Scale::Exactly(n) };
    Some(match data_type {
        DataType::Date32 => Scale::Times(86_400_000),
        DataType::Date64 => Scale::Times(1),
        DataType::Timestamp(TimeUnit::Second, _) => Scale::Times(1000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Scale::Times(1),
        DataType::Timestamp(TimeUnit::Microsecond, _) => fine(1000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => fine(1_000_000),
        _ => return None,
    })
}

impl Scale {
    #[inline]
    pub(crate) fn millis(self, value: i64, data_type: &DataType) -> Result<i64, Fault> {
        match self {
            Self::Times(n) => value.checked_mul(n).ok_or_else(|| {
                let unit = match data_type {
                    DataType::Date32 => "days",
                    DataType::Timestamp(TimeUnit::Second, _) => "seconds",
                    _ => "units",
                };
                Fault::new(0, format!("{value} {unit} since 1970 are beyond 64 bits of milliseconds"))
            }),
            Self::Floor(n) => Ok(value.div_euclid(n)),
            Self::Exactly(n) if value % n == 0 => Ok(value / n),
            Self::Exactly(_) => {
                let mut text = Vec::new();
                if let DataType::Timestamp(unit, zone) = data_type {
                    json::write_stamp(value, *unit, zone.is_some(), &mut text);
                }
                Err(Fault::new(
                    0,
                    format!(
                        "the timestamp {} is finer than a millisecond, which CrateDB cannot store; choose \
                         --timestamps truncate, text or bigint",
                        String::from_utf8_lossy(&text)
                    ),
                ))
            }
        }
    }
}

/// The values of an array of floats.
pub(crate) enum Floats<'a> {
    Half(&'a [f16]),
    Single(&'a [f32]),
    Double(&'a [f64]),
}

impl<'a> Floats<'a> {
    /// Binds an array; `None` if its type is unexpected.
    pub(crate) fn bind(array: &'a ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Float16 => Self::Half(array.as_primitive_opt::<Float16Type>()?.values()),
            DataType::Float32 => Self::Single(array.as_primitive_opt::<Float32Type>()?.values()),
            _ => Self::Double(array.as_primitive_opt::<Float64Type>()?.values()),
        })
    }

    /// A value; what it is where the array has NULL does not matter.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> f64 {
        match self {
            Self::Half(values) => values[row].to_f64(),
            Self::Single(values) => values[row].into(),
            Self::Double(values) => values[row],
        }
    }
}
