//! Timestamps: truncates nanoseconds to microseconds, converts dates to the timestamp at their start.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

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

/// Returns the array in whole microseconds, truncated towards the past.
pub(super) fn cut(array: &ArrayRef) -> Option<ArrayRef> {
    macro_rules! cut {
        ($from:ty, $to:ty) => {{
            let micros: PrimitiveArray<$to> =
                array.as_primitive_opt::<$from>()?.unary(|nanos: i64| nanos.div_euclid(1000));
            Arc::new(micros.with_data_type(cut_type(array.data_type())))
        }};
    }
    Some(match array.data_type() {
        DataType::Timestamp(..) => cut!(TimestampNanosecondType, TimestampMicrosecondType),
        DataType::Time64(_) => cut!(Time64NanosecondType, Time64MicrosecondType),
        DataType::Duration(_) => cut!(DurationNanosecondType, DurationMicrosecondType),
        DataType::Interval(_) => {
            let whole: PrimitiveArray<IntervalMonthDayNanoType> =
                array.as_primitive_opt::<IntervalMonthDayNanoType>()?.unary(|mut value| {
                    value.nanoseconds -= value.nanoseconds.rem_euclid(1000);
                    value
                });
            Arc::new(whole)
        }
        _ => return None,
    })
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
