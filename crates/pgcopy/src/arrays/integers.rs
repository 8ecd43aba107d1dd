//! One view of every array that stores integers: numbers, decimals, dates, times, timestamps, durations.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, downcast_integer, downcast_temporal};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

/// Returns the digits after the point of a type of numbers.
pub(crate) fn scale(arrow: &DataType) -> i8 {
    match arrow {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

/// The integers of an array, whatever their width and whatever they count.
#[derive(Clone, Copy)]
pub enum Integers<'a> {
    /// Signed, 8 bits.
    Int8(&'a [i8]),
    /// Signed, 16 bits.
    Int16(&'a [i16]),
    /// Signed, 32 bits.
    Int32(&'a [i32]),
    /// Signed, 64 bits.
    Int64(&'a [i64]),
    /// Unsigned, 8 bits.
    UInt8(&'a [u8]),
    /// Unsigned, 16 bits.
    UInt16(&'a [u16]),
    /// Unsigned, 32 bits.
    UInt32(&'a [u32]),
    /// Unsigned, 64 bits.
    UInt64(&'a [u64]),
    /// Signed, 128 bits.
    Int128(&'a [i128]),
    /// Signed, 256 bits.
    Int256(&'a [i256]),
}

/// Evaluates an expression for the slice of an [`Integers`], once for each width. All widths have the methods
/// of [`ArrowNativeType`](arrow_buffer::ArrowNativeType), such as `to_i64`.
#[macro_export]
macro_rules! with_integers {
    ($integers:expr, $values:ident => $body:expr) => {
        match $integers {
            $crate::Integers::Int8($values) => $body,
            $crate::Integers::Int16($values) => $body,
            $crate::Integers::Int32($values) => $body,
            $crate::Integers::Int64($values) => $body,
            $crate::Integers::UInt8($values) => $body,
            $crate::Integers::UInt16($values) => $body,
            $crate::Integers::UInt32($values) => $body,
            $crate::Integers::UInt64($values) => $body,
            $crate::Integers::Int128($values) => $body,
            $crate::Integers::Int256($values) => $body,
        }
    };
}

macro_rules! from_slices {
    ($($native:ty => $width:ident),*) => {
        $(impl<'a> From<&'a [$native]> for Integers<'a> {
            fn from(values: &'a [$native]) -> Self {
                Self::$width(values)
            }
        })*
    };
}
from_slices!(i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, u8 => UInt8, u16 => UInt16, u32 => UInt32);
from_slices!(u64 => UInt64, i128 => Int128, i256 => Int256);

impl<'a> Integers<'a> {
    /// Returns the integers behind numbers, decimals, dates, times, timestamps and durations, or `None` if
    /// `array` has another type.
    pub fn bind(array: &'a dyn Array) -> Option<Self> {
        macro_rules! view {
            ($t:ty) => {
                Self::from(&array.as_primitive_opt::<$t>()?.values()[..])
            };
        }
        Some(downcast_integer! {
            array.data_type() => (view),
            DataType::Decimal32(..) => view!(Decimal32Type),
            DataType::Decimal64(..) => view!(Decimal64Type),
            DataType::Decimal128(..) => view!(Decimal128Type),
            DataType::Decimal256(..) => view!(Decimal256Type),
            DataType::Duration(TimeUnit::Second) => view!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => view!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => view!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => view!(DurationNanosecondType),
            other => downcast_temporal! {
                other => (view),
                _ => return None,
            },
        })
    }

    /// Returns the low 64 bits of a value: all of it, except in columns of wider decimals and of unsigned
    /// 64-bit integers.
    #[inline]
    pub fn get(&self, row: usize) -> i64 {
        match self {
            Self::Int8(values) => values[row].into(),
            Self::Int16(values) => values[row].into(),
            Self::Int32(values) => values[row].into(),
            Self::Int64(values) => values[row],
            Self::UInt8(values) => values[row].into(),
            Self::UInt16(values) => values[row].into(),
            Self::UInt32(values) => values[row].into(),
            Self::UInt64(values) => values[row] as i64,
            Self::Int128(values) => values[row] as i64,
            Self::Int256(values) => values[row].as_i128() as i64,
        }
    }

    /// Returns a value of up to 128 bits, or, as an error, a wider one.
    #[inline]
    pub fn wide(&self, row: usize) -> Result<i128, i256> {
        match self {
            Self::UInt64(values) => Ok(values[row].into()),
            Self::Int128(values) => Ok(values[row]),
            Self::Int256(values) => values[row].to_i128().ok_or(values[row]),
            narrow => Ok(narrow.get(row).into()),
        }
    }

    /// Returns the decimal digits of a value, with its sign.
    #[inline]
    pub(crate) fn digits(&self, row: usize) -> String {
        with_integers!(self, values => values[row].to_string())
    }

    /// Appends the decimal digits of a value, with its sign.
    #[inline]
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        let written = with_integers!(self, values => write!(out, "{}", values[row]));
        debug_assert!(written.is_ok(), "writing to a Vec cannot fail");
    }
}
