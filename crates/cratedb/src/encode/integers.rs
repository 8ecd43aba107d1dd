//! Integers behind numbers, decimals and moments, of any width, and what makes milliseconds of them.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use sawmill_pgcopy::Fault;

use crate::encode::json;

/// How a moment becomes milliseconds.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    Times(i64),
    Exactly(i64),
    Floor(i64),
}

/// Integers of any width.
pub(crate) enum Ints<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I128(&'a [i128]),
    I256(&'a [i256]),
}

impl<'a> Ints<'a> {
    /// The integers behind numbers, decimals, dates, times, timestamps and durations.
    pub(crate) fn bind(array: &'a ArrayRef) -> Option<Self> {
        macro_rules! values {
            ($t:ty) => {
                array.as_primitive_opt::<$t>()?.values()
            };
        }
        Some(match array.data_type() {
            DataType::Int8 => Self::I8(values!(Int8Type)),
            DataType::Int16 => Self::I16(values!(Int16Type)),
            DataType::Int32 => Self::I32(values!(Int32Type)),
            DataType::Int64 => Self::I64(values!(Int64Type)),
            DataType::UInt8 => Self::U8(values!(UInt8Type)),
            DataType::UInt16 => Self::U16(values!(UInt16Type)),
            DataType::UInt32 => Self::U32(values!(UInt32Type)),
            DataType::UInt64 => Self::U64(values!(UInt64Type)),
            DataType::Decimal32(..) => Self::I32(values!(Decimal32Type)),
            DataType::Decimal64(..) => Self::I64(values!(Decimal64Type)),
            DataType::Decimal128(..) => Self::I128(values!(Decimal128Type)),
            DataType::Decimal256(..) => Self::I256(values!(Decimal256Type)),
            DataType::Date32 => Self::I32(values!(Date32Type)),
            DataType::Date64 => Self::I64(values!(Date64Type)),
            DataType::Time32(TimeUnit::Second) => Self::I32(values!(Time32SecondType)),
            DataType::Time32(_) => Self::I32(values!(Time32MillisecondType)),
            DataType::Time64(TimeUnit::Microsecond) => Self::I64(values!(Time64MicrosecondType)),
            DataType::Time64(_) => Self::I64(values!(Time64NanosecondType)),
            DataType::Timestamp(TimeUnit::Second, _) => Self::I64(values!(TimestampSecondType)),
            DataType::Timestamp(TimeUnit::Millisecond, _) => Self::I64(values!(TimestampMillisecondType)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::I64(values!(TimestampMicrosecondType)),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::I64(values!(TimestampNanosecondType)),
            DataType::Duration(TimeUnit::Second) => Self::I64(values!(DurationSecondType)),
            DataType::Duration(TimeUnit::Millisecond) => Self::I64(values!(DurationMillisecondType)),
            DataType::Duration(TimeUnit::Microsecond) => Self::I64(values!(DurationMicrosecondType)),
            DataType::Duration(TimeUnit::Nanosecond) => Self::I64(values!(DurationNanosecondType)),
            _ => return None,
        })
    }

    /// The value, if it fits 64 bits. Wider ones are decimals; callers use `wide` for these.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> i64 {
        match self {
            Self::I8(values) => values[row].into(),
            Self::I16(values) => values[row].into(),
            Self::I32(values) => values[row].into(),
            Self::I64(values) => values[row],
            Self::U8(values) => values[row].into(),
            Self::U16(values) => values[row].into(),
            Self::U32(values) => values[row].into(),
            Self::U64(values) => values[row] as i64,
            Self::I128(values) => values[row] as i64,
            Self::I256(values) => values[row].as_i128() as i64,
        }
    }

    #[inline]
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::I8(values) => json::write_int(values[row], out),
            Self::I16(values) => json::write_int(values[row], out),
            Self::I32(values) => json::write_int(values[row], out),
            Self::I64(values) => json::write_int(values[row], out),
            Self::U8(values) => json::write_int(values[row], out),
            Self::U16(values) => json::write_int(values[row], out),
            Self::U32(values) => json::write_int(values[row], out),
            Self::U64(values) => json::write_int(values[row], out),
            Self::I128(values) => json::write_int(values[row], out),
            Self::I256(values) => out.extend_from_slice(values[row].to_string().as_bytes()),
        }
    }

    /// The digits of a value.
    pub(crate) fn decimal(&self, row: usize, from: u8, to: u8, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        match self {
            Self::U64(values) => json::write_decimal(digits.format(values[row]), from, to, out),
            Self::I128(values) => json::write_decimal(digits.format(values[row]), from, to, out),
            Self::I256(values) => json::write_decimal(&values[row].to_string(), from, to, out),
            other => json::write_decimal(digits.format(other.get(row)), from, to, out),
        }
    }

    /// A value of up to 128 bits, or the digits of a wider one.
    pub(crate) fn wide(&self, row: usize) -> Result<i128, i256> {
        match self {
            Self::U64(values) => Ok(values[row].into()),
            Self::I128(values) => Ok(values[row]),
            Self::I256(values) => values[row].to_i128().ok_or(values[row]),
            other => Ok(other.get(row).into()),
        }
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
