//! Timestamps: truncates nanoseconds to microseconds, converts dates to the timestamp at their start, and local times to
//! moments and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::arrays::integers::Integers;
use crate::types::zone::Zone;
use crate::values::calendar::per_second;
use crate::values::fixed_width::STAMPS;

/// Whether values of this type may have digits beyond the microsecond.
pub(super) fn has_nanoseconds(arrow: &DataType) -> bool {
    matches!(
        arrow,
        DataType::Timestamp(TimeUnit::Nanosecond, _)
            | DataType::Time64(TimeUnit::Nanosecond)
            | DataType::Duration(TimeUnit::Nanosecond)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    )
}

/// Returns the type that [`cut`] returns for arrays of this type.
pub(super) fn cut_type(arrow: &DataType) -> DataType {
    match arrow {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        other => other.clone(),
    }
}

/// Returns 64-bit integers as an array of another type of that width.
fn of_type(values: impl Iterator<Item = i64>, nulls: Option<&NullBuffer>, to: DataType) -> Option<ArrayRef> {
    let integers = Int64Array::new(values.collect(), nulls.cloned()).into_data();
    Some(make_array(integers.into_builder().data_type(to).build().ok()?))
}

/// Returns an array that has nanoseconds in whole microseconds, truncated towards the past.
pub(super) fn cut(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(intervals) = array.as_primitive_opt::<IntervalMonthDayNanoType>() {
        let whole: PrimitiveArray<IntervalMonthDayNanoType> = intervals.unary(|mut value| {
            value.nanoseconds -= value.nanoseconds.rem_euclid(1000);
            value
        });
        return Some(Arc::new(whole));
    }
    let Integers::Int64(nanos) = Integers::bind(array)? else { return None };
    of_type(nanos.iter().map(|nanos| nanos.div_euclid(1000)), array.nulls(), cut_type(array.data_type()))
}

/// Returns dates as timestamps without time zone, in seconds. The encoder checks the range.
pub(super) fn midnight(array: &ArrayRef) -> Option<ArrayRef> {
    let seconds: PrimitiveArray<TimestampSecondType> = match array.data_type() {
        DataType::Date32 => array.as_primitive_opt::<Date32Type>()?.unary(|days| i64::from(days) * 86_400),
        DataType::Date64 => {
            array.as_primitive_opt::<Date64Type>()?.unary(|millis: i64| millis.div_euclid(1000))
        }
        _ => return None,
    };
    Some(Arc::new(seconds))
}

/// Returns the type that [`zoned`] returns for arrays of this type.
pub(super) fn zoned_type(arrow: &DataType, cut: bool) -> DataType {
    match if cut { cut_type(arrow) } else { arrow.clone() } {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(unit, None),
        DataType::Timestamp(unit, None) => DataType::Timestamp(unit, Some("UTC".into())),
        _ => DataType::Timestamp(TimeUnit::Second, Some("UTC".into())),
    }
}

/// Returns moments as local times of a zone, and timestamps without a zone and dates as the moments that are these
/// local times. The encoder checks the range.
pub(super) fn zoned(array: &ArrayRef, zone: Zone, cut: bool) -> Option<ArrayRef> {
    let whole = midnight(array).or_else(|| if cut { self::cut(array) } else { None });
    let array = whole.as_ref().unwrap_or(array);
    let DataType::Timestamp(unit, from) = array.data_type() else { return None };
    let (per_second, is_moment) = (per_second(*unit), from.is_some());
    let Integers::Int64(values) = Integers::bind(array)? else { return None };
    let shifted = values.iter().map(|value| {
        let seconds = value.div_euclid(per_second);
        let to = match (STAMPS.contains(&seconds), is_moment) {
            // Slots under NULLs may contain anything.
            (false, _) => seconds,
            (true, true) => zone.local(seconds),
            (true, false) => zone.utc(seconds),
        };
        value.saturating_add((to - seconds) * per_second)
    });
    of_type(shifted, array.nulls(), zoned_type(array.data_type(), false))
}
