//! Columns whose values all take the same number of bytes on the wire.
//!
//! One loop without branches, which the compiler vectorises, converts a block of values into 64-bit words;
//! the row writer then stores the low bytes of each word in network order. Checks are folded into one flag
//! per block. Only a block that fails is checked value by value, because slots under NULLs may contain
//! anything.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer};
use arrow_schema::{DataType, TimeUnit};
use half::f16;

use crate::arrays::fault::Fault;
use crate::arrays::integers::Integers;
use crate::rows::valid::Valid;
use crate::types::pg_type::PgType;
use crate::with_integers;

/// Rows that are laid out and written together. They, their positions and the words of a few columns fit into
/// the first-level cache.
pub(crate) const BLOCK: usize = 128;

/// Days from 1970-01-01 to PostgreSQL's epoch, 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in seconds.
const EPOCH_SECONDS: i64 = EPOCH_DAYS as i64 * 86_400;
/// First day of PostgreSQL, 4714-11-24 BC, and the day after its last one, in days since 1970
/// (`MIN_TIMESTAMP`, `DATE_END_JULIAN` and the like in src/include/datatype/timestamp.h).
pub(crate) const DATES: std::ops::Range<i32> = -2_440_588..2_145_042_906;
/// The same for timestamps, whose last year is 294276, in seconds since 1970.
pub(crate) const STAMPS: std::ops::Range<i64> = -210_866_803_200..9_224_318_016_000;

/// The encoding of a fixed-width column, chosen once from Arrow type and target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedWidth {
    /// Bytes on the wire: 1, 2, 4 or 8.
    pub width: u32,
    /// Whether to send single precision as double.
    widen_float: bool,
}

impl FixedWidth {
    /// Returns the encoding for types of fixed width on the wire, and `None` for all others.
    pub(crate) fn choose(arrow: &DataType, target: PgType) -> Option<Self> {
        if arrow.is_decimal() {
            return None;
        }
        let width = match target {
            PgType::Bool => 1,
            PgType::Int2 => 2,
            PgType::Int4 | PgType::Float4 | PgType::Date => 4,
            PgType::Int8 | PgType::Float8 | PgType::Time | PgType::Timestamp | PgType::TimestampTz => 8,
            _ => return None,
        };
        let widen_float = target == PgType::Float8 && matches!(arrow, DataType::Float16 | DataType::Float32);
        Some(Self { width, widen_float })
    }
}

/// The values of one array of a fixed-width column.
pub(crate) enum Words<'a> {
    Bool(&'a BooleanBuffer),
    /// 64-bit integers, and the bits of doubles, which are used unchanged.
    Bits64(&'a [u64]),
    /// Narrower integers.
    Integers(Integers<'a>),
    Float16(&'a [f16]),
    Float32(&'a [f32]),
    Float16As64(&'a [f16]),
    Float32As64(&'a [f32]),
    Date32(&'a [i32]),
    Date64(&'a [i64]),
    Time32(&'a [i32], TimeUnit),
    Time64(&'a [i64], TimeUnit),
    Stamp(&'a [i64], TimeUnit),
}

impl<'a> Words<'a> {
    /// Returns the values of `array`, or `None` if it does not have the planned type.
    pub(crate) fn bind(array: &'a ArrayRef, planned: FixedWidth) -> Option<Self> {
        macro_rules! values {
            ($t:ty) => {
                array.as_primitive_opt::<$t>()?.values()
            };
        }
        Some(match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean_opt()?.values()),
            DataType::Int64 => Self::Bits64(values!(Int64Type).inner().typed_data()),
            arrow if arrow.is_integer() => Self::Integers(Integers::bind(array)?),
            DataType::Float16 if planned.widen_float => Self::Float16As64(values!(Float16Type)),
            DataType::Float16 => Self::Float16(values!(Float16Type)),
            DataType::Float32 if planned.widen_float => Self::Float32As64(values!(Float32Type)),
            DataType::Float32 => Self::Float32(values!(Float32Type)),
            DataType::Float64 => Self::Bits64(values!(Float64Type).inner().typed_data()),
            DataType::Date32 => Self::Date32(values!(Date32Type)),
            DataType::Date64 => Self::Date64(values!(Date64Type)),
            DataType::Time32(unit) | DataType::Time64(unit) => match Integers::bind(array)? {
                Integers::Int32(values) => Self::Time32(values, *unit),
                Integers::Int64(values) => Self::Time64(values, *unit),
                _ => return None,
            },
            DataType::Timestamp(unit, _) => match Integers::bind(array)? {
                Integers::Int64(values) => Self::Stamp(values, *unit),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns the words of rows `first..first + room.len()`: in place, or converted into `room`. Those under
    /// NULLs may be anything.
    pub(crate) fn of_rows<'r>(
        &'r self,
        first: usize,
        valid: &Valid,
        room: &'r mut [u64],
    ) -> Result<&'r [u64], Fault> {
        match self {
            Self::Bits64(values) => Ok(&values[first..first + room.len()]),
            _ => self.fill(first, valid, room).map(|()| &*room),
        }
    }

    /// Converts rows `first..first + out.len()`. Words under NULLs may be anything afterwards.
    pub(crate) fn fill(&self, first: usize, valid: &Valid, out: &mut [u64]) -> Result<(), Fault> {
        let rows = first..first + out.len();
        macro_rules! each {
            ($values:expr, |$v:ident| $word:expr) => {{
                for (word, $v) in out.iter_mut().zip(&$values[rows]) {
                    *word = $word;
                }
                Ok(())
            }};
        }
        match self {
            Self::Bool(values) => {
                for (i, word) in out.iter_mut().enumerate() {
                    *word = u64::from(values.value(first + i));
                }
                Ok(())
            }
            Self::Bits64(values) => each!(values, |v| *v),
            Self::Integers(values) => {
                with_integers!(values, values => each!(values, |v| v.as_usize() as u64))
            }
            Self::Float16(values) => each!(values, |v| u64::from(v.to_f32().to_bits())),
            Self::Float32(values) => each!(values, |v| u64::from(v.to_bits())),
            Self::Float16As64(values) => each!(values, |v| v.to_f64().to_bits()),
            Self::Float32As64(values) => each!(values, |v| f64::from(*v).to_bits()),
            Self::Date32(values) => checked(&values[rows], valid, out, |v| date(*v)),
            Self::Date64(values) => checked(&values[rows], valid, out, |v| date64(*v)),
            Self::Time32(values, unit) => checked(&values[rows], valid, out, |v| time(i64::from(*v), *unit)),
            Self::Time64(values, unit) => checked(&values[rows], valid, out, |v| time(*v, *unit)),
            Self::Stamp(values, unit) => {
                let values = &values[rows];
                match unit {
                    TimeUnit::Second => checked(values, valid, out, |v| stamp(*v, TimeUnit::Second)),
                    TimeUnit::Millisecond => {
                        checked(values, valid, out, |v| stamp(*v, TimeUnit::Millisecond))
                    }
                    TimeUnit::Microsecond => {
                        checked(values, valid, out, |v| stamp(*v, TimeUnit::Microsecond))
                    }
                    TimeUnit::Nanosecond => checked(values, valid, out, |v| stamp(*v, TimeUnit::Nanosecond)),
                }
            }
        }
    }
}

/// A word, and whether PostgreSQL can store the value.
type Checked = (u64, bool);

fn checked<T: Copy + std::fmt::Display>(
    values: &[T],
    valid: &Valid,
    out: &mut [u64],
    convert: impl Fn(&T) -> Checked,
) -> Result<(), Fault> {
    let mut all_fit = true;
    for (word, value) in out.iter_mut().zip(values) {
        let (converted, fits) = convert(value);
        *word = converted;
        all_fit &= fits;
    }
    if all_fit {
        return Ok(());
    }
    match values.iter().enumerate().find(|(i, value)| valid.is_valid(*i) && !convert(value).1) {
        None => Ok(()),
        Some((row, value)) => Err(Fault::new(row, format!("the value {value}"))),
    }
}

#[inline]
fn date(days: i32) -> Checked {
    (days.wrapping_sub(EPOCH_DAYS) as u64, DATES.contains(&days))
}

#[inline]
fn date64(millis: i64) -> Checked {
    let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (word, fits) = date(days.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
    (word, fits && rest == 0 && i32::try_from(days).is_ok())
}

#[inline]
fn time(value: i64, unit: TimeUnit) -> Checked {
    let (micros, whole) = micros(value, unit);
    (micros as u64, whole && (0..=86_400_000_000).contains(&micros))
}

/// Shifts to PostgreSQL's epoch before scaling: its last years, in microseconds since 1970, exceed 64 bits.
#[inline]
fn stamp(value: i64, unit: TimeUnit) -> Checked {
    let within = |per_second: i64| {
        // If the end of the range exceeds 64 bits in this unit, all values are before it.
        let end = STAMPS.end.checked_mul(per_second).unwrap_or(i64::MAX);
        (STAMPS.start * per_second..=end - 1).contains(&value) || (end == i64::MAX && value == end)
    };
    let scaled = |per_second: i64, factor: i64| {
        (value.wrapping_sub(EPOCH_SECONDS * per_second).wrapping_mul(factor) as u64, within(per_second))
    };
    match unit {
        TimeUnit::Second => scaled(1, 1_000_000),
        TimeUnit::Millisecond => scaled(1000, 1000),
        TimeUnit::Microsecond => scaled(1_000_000, 1),
        TimeUnit::Nanosecond => {
            let (micros, whole) = micros(value, unit);
            (micros.wrapping_sub(EPOCH_SECONDS * 1_000_000) as u64, whole)
        }
    }
}

/// Returns microseconds, and whether the conversion is exact.
#[inline]
pub(crate) fn micros(value: i64, unit: TimeUnit) -> (i64, bool) {
    let scaled = |factor: i64| {
        let most = i64::MAX / factor;
        (value.wrapping_mul(factor), (-most..=most).contains(&value))
    };
    match unit {
        TimeUnit::Second => scaled(1_000_000),
        TimeUnit::Millisecond => scaled(1000),
        TimeUnit::Microsecond => (value, true),
        TimeUnit::Nanosecond => (value.div_euclid(1000), value.rem_euclid(1000) == 0),
    }
}

/// Returns the limits of this type for the error message.
pub(crate) fn limits(arrow: &DataType) -> &'static str {
    match arrow {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time64(TimeUnit::Nanosecond) => {
            "PostgreSQL stores whole microseconds: these nanoseconds would be lost (--timestamps truncate drops them)"
        }
        DataType::Timestamp(..) => "PostgreSQL's timestamps range from 4714-11-24 BC to 294276-12-31",
        DataType::Date64 => "PostgreSQL's dates are whole days from 4714-11-24 BC to 5874897-12-31",
        DataType::Date32 => "PostgreSQL's dates range from 4714-11-24 BC to 5874897-12-31",
        _ => "PostgreSQL's time of day ranges from 00:00:00 to 24:00:00",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_last_timestamps_of_postgresql_fit_and_their_neighbours_do_not() {
        assert!(date(-2_440_588).1 && !date(-2_440_589).1);
        assert!(date(2_145_042_905).1 && !date(2_145_042_906).1);
        let micros = STAMPS.start * 1_000_000;
        assert!(stamp(micros, TimeUnit::Microsecond).1 && !stamp(micros - 1, TimeUnit::Microsecond).1);
        assert!(stamp(i64::MAX, TimeUnit::Microsecond).1);
        assert!(stamp(STAMPS.end - 1, TimeUnit::Second).1 && !stamp(STAMPS.end, TimeUnit::Second).1);
        assert_eq!(stamp(STAMPS.end - 1, TimeUnit::Second).0, 9_223_371_331_199_000_000);
        assert!(!stamp(i64::MAX, TimeUnit::Second).1);
    }

    #[test]
    fn only_whole_microseconds_are_exact() {
        assert_eq!(micros(-1000, TimeUnit::Nanosecond), (-1, true));
        assert!(!micros(-1001, TimeUnit::Nanosecond).1);
        assert!(time(86_400_000_000, TimeUnit::Microsecond).1);
        assert!(!time(-1, TimeUnit::Microsecond).1);
    }
}
