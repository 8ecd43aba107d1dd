//! Intervals and durations: microseconds, days and months, in 16 bytes on the wire (`interval_send`).

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::fixed_width::micros;
use crate::arrays::fault::Fault;
use crate::arrays::integers::Integers;
use crate::arrays::marks::INTERVAL_BYTES;
use crate::arrays::parquet_interval::ParquetInterval;

/// An interval in PostgreSQL's three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub micros: i64,
    pub days: i32,
    pub months: i32,
}

impl Interval {
    /// Returns the interval in a row of an interval or duration array, or of the bytes of Parquet's INTERVAL.
    pub(crate) fn read(array: &ArrayRef, row: usize) -> Result<Self, Fault> {
        let refused = |value: String, why: &str| Err(Fault::new(row, format!("the interval {value}: {why}")));
        let wrong_type = || Fault::new(row, format!("{} is not an interval", array.data_type()));
        macro_rules! value {
            ($t:ty) => {
                array.as_primitive_opt::<$t>().ok_or_else(wrong_type)?.value(row)
            };
        }
        match array.data_type() {
            DataType::Interval(IntervalUnit::YearMonth) => {
                Ok(Self { micros: 0, days: 0, months: value!(IntervalYearMonthType) })
            }
            DataType::Interval(IntervalUnit::DayTime) => {
                let value = value!(IntervalDayTimeType);
                Ok(Self { micros: i64::from(value.milliseconds) * 1000, days: value.days, months: 0 })
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let value = value!(IntervalMonthDayNanoType);
                match micros(value.nanoseconds, TimeUnit::Nanosecond) {
                    (micros, true) => Ok(Self { micros, days: value.days, months: value.months }),
                    _ => refused(format!("{value:?}"), "PostgreSQL stores whole microseconds"),
                }
            }
            DataType::Duration(unit) => {
                let value = Integers::bind(array).ok_or_else(wrong_type)?.get(row);
                match micros(value, *unit) {
                    (micros, true) => Ok(Self { micros, days: 0, months: 0 }),
                    _ => refused(
                        format!("{value} {unit:?}"),
                        "PostgreSQL stores whole microseconds in 64 bits",
                    ),
                }
            }
            bytes if *bytes == INTERVAL_BYTES => {
                let value = ParquetInterval::read(array, row).ok_or_else(wrong_type)?;
                match value.signed() {
                    Some((months, days)) => Ok(Self { micros: i64::from(value.millis) * 1000, days, months }),
                    None => {
                        refused(value.to_string(), "PostgreSQL stores at most 2147483647 months and days")
                    }
                }
            }
            _ => Err(wrong_type()),
        }
    }

    pub(crate) fn to_wire(self) -> [u8; 16] {
        let mut wire = [0; 16];
        wire[..8].copy_from_slice(&self.micros.to_be_bytes());
        wire[8..12].copy_from_slice(&self.days.to_be_bytes());
        wire[12..].copy_from_slice(&self.months.to_be_bytes());
        wire
    }
}
