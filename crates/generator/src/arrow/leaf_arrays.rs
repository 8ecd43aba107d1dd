//! The values of a leaf as an Arrow array.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano, NullBuffer, OffsetBuffer, i256};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use half::f16;

use crate::arrow::batches::{LeafLevels, Scope};
use crate::arrow::schema::data_type;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::intervals;
use crate::shred::block::Shredded;
use crate::shred::value_buffer::{PhysicalBuffer, ValueBuffer};
use crate::spec::dataset::{Field, Leaf};

/// The index of the value of each slot; `None` for nulls.
struct Slots {
    values: Vec<Option<usize>>,
    optional: bool,
}

impl Slots {
    /// The slots of a leaf in `scope`.
    fn new(field: &Field, levels: &LeafLevels<'_>, scope: Scope) -> Self {
        let mut next = 0;
        let mut values = Vec::new();
        for i in 0..levels.entries {
            let definition = levels.definition(i);
            let there = definition == field.levels.definition;
            if definition >= scope.definition {
                values.push(there.then_some(next));
            }
            next += usize::from(there);
        }
        Self { values, optional: field.nulls != Nulls::Never }
    }

    fn nulls(&self) -> Option<NullBuffer> {
        self.optional.then(|| NullBuffer::from(self.values.iter().map(Option::is_some).collect::<Vec<_>>()))
    }

    /// An array with the `value` of each slot. A slot without a value has the default; it is null if the
    /// field is optional. Otherwise, the enclosing struct is null.
    fn primitive<T: ArrowPrimitiveType>(&self, value: impl Fn(usize) -> T::Native) -> PrimitiveArray<T> {
        let values: Vec<T::Native> =
            self.values.iter().map(|v| v.map_or_else(T::Native::default, &value)).collect();
        PrimitiveArray::new(values.into(), self.nulls())
    }

    /// The offsets and bytes of the strings returned by `value`.
    fn strings<'a>(&self, value: impl Fn(usize) -> &'a [u8]) -> (OffsetBuffer<i32>, Buffer) {
        let mut data: Vec<u8> = Vec::new();
        let mut offsets: Vec<i32> = vec![0];
        for slot in &self.values {
            if let Some(i) = slot {
                data.extend_from_slice(value(*i));
            }
            // Each string is in at most one slot, and their total length was checked.
            offsets.push(data.len() as i32);
        }
        (OffsetBuffer::new(offsets.into()), data.into())
    }
}

/// The values of `leaf` in the slots of `scope`.
pub(super) fn leaf_array(
    field: &Field,
    leaf: &Leaf,
    shredded: &Shredded,
    levels: &LeafLevels<'_>,
    scope: Scope,
    most: usize,
) -> Result<ArrayRef, ArrowError> {
    let buffer = &shredded.leaves[leaf.index].values;
    let slots = Slots::new(field, levels, scope);
    // INT96 timestamps stay nanoseconds.
    if let (DataType::Timestamp(TimeUnit::Nanosecond, None), ValueBuffer::Int64(v)) =
        (data_type(field), buffer)
    {
        return Ok(Arc::new(slots.primitive::<TimestampNanosecondType>(|i| v[i])));
    }
    let kind = data_type(field);
    let physical = buffer.materialise(leaf);
    if let PhysicalBuffer::Bytes(strings) = &physical
        && strings.data.len() > most
    {
        return Err(ArrowError::OffsetOverflowError(strings.data.len()));
    }
    let array = match &kind {
        DataType::Decimal128(..) | DataType::Decimal256(..) => decimals(&kind, &physical, &slots)?,
        DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(_) => bytes(&kind, &physical, &slots)?,
        DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..) => {
            moments(&kind, &physical, &slots)
        }
        DataType::Duration(_) | DataType::Interval(_) => spans(&kind, &physical, &slots),
        _ => numbers(&kind, &physical, &slots),
    };
    array.ok_or_else(|| {
        let what = format!("{} has {physical:?} values instead of {kind}", field.path);
        ArrowError::InvalidArgumentError(what)
    })
}

/// Booleans, integers and floating-point numbers; `None` if the buffer stores something else.
fn numbers(kind: &DataType, physical: &PhysicalBuffer, slots: &Slots) -> Option<ArrayRef> {
    let array: ArrayRef = match (kind, physical) {
        (DataType::Boolean, PhysicalBuffer::Booleans(v)) => {
            let bits: BooleanBuffer = slots.values.iter().map(|i| i.is_some_and(|i| v[i] == 1)).collect();
            Arc::new(BooleanArray::new(bits, slots.nulls()))
        }
        (DataType::Int8, PhysicalBuffer::Int32(v)) => Arc::new(slots.primitive::<Int8Type>(|i| v[i] as i8)),
        (DataType::Int16, PhysicalBuffer::Int32(v)) => {
            Arc::new(slots.primitive::<Int16Type>(|i| v[i] as i16))
        }
        (DataType::Int32, PhysicalBuffer::Int32(v)) => Arc::new(slots.primitive::<Int32Type>(|i| v[i])),
        (DataType::Int64, PhysicalBuffer::Int64(v)) => Arc::new(slots.primitive::<Int64Type>(|i| v[i])),
        (DataType::UInt8, PhysicalBuffer::Int32(v)) => Arc::new(slots.primitive::<UInt8Type>(|i| v[i] as u8)),
        (DataType::UInt16, PhysicalBuffer::Int32(v)) => {
            Arc::new(slots.primitive::<UInt16Type>(|i| v[i] as u16))
        }
        (DataType::UInt32, PhysicalBuffer::Int32(v)) => {
            Arc::new(slots.primitive::<UInt32Type>(|i| v[i] as u32))
        }
        (DataType::UInt64, PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<UInt64Type>(|i| v[i] as u64))
        }
        (DataType::Float16, PhysicalBuffer::Fixed { data, .. }) => {
            Arc::new(slots.primitive::<Float16Type>(|i| f16::from_le_bytes([data[2 * i], data[2 * i + 1]])))
        }
        (DataType::Float32, PhysicalBuffer::Float(v)) => Arc::new(slots.primitive::<Float32Type>(|i| v[i])),
        (DataType::Float64, PhysicalBuffer::Double(v)) => Arc::new(slots.primitive::<Float64Type>(|i| v[i])),
        _ => return None,
    };
    Some(array)
}

/// Dates, times and timestamps; `None` if the buffer stores something else.
fn moments(kind: &DataType, physical: &PhysicalBuffer, slots: &Slots) -> Option<ArrayRef> {
    let array: ArrayRef = match (kind, physical) {
        (DataType::Date32, PhysicalBuffer::Int32(v)) => Arc::new(slots.primitive::<Date32Type>(|i| v[i])),
        (DataType::Time32(_), PhysicalBuffer::Int32(v)) => {
            Arc::new(slots.primitive::<Time32MillisecondType>(|i| v[i]))
        }
        (DataType::Time64(TimeUnit::Microsecond), PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<Time64MicrosecondType>(|i| v[i]))
        }
        (DataType::Time64(_), PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<Time64NanosecondType>(|i| v[i]))
        }
        (DataType::Timestamp(unit, zone), PhysicalBuffer::Int64(v)) => match unit {
            TimeUnit::Millisecond => Arc::new(
                slots.primitive::<TimestampMillisecondType>(|i| v[i]).with_timezone_opt(zone.clone()),
            ),
            TimeUnit::Microsecond => Arc::new(
                slots.primitive::<TimestampMicrosecondType>(|i| v[i]).with_timezone_opt(zone.clone()),
            ),
            _ => {
                Arc::new(slots.primitive::<TimestampNanosecondType>(|i| v[i]).with_timezone_opt(zone.clone()))
            }
        },
        // The values of an INT96 dictionary are bytes.
        (DataType::Timestamp(..), PhysicalBuffer::Fixed { data, .. }) => {
            Arc::new(slots.primitive::<TimestampNanosecondType>(|i| nanoseconds(&data[12 * i..12 * i + 12])))
        }
        _ => return None,
    };
    Some(array)
}

/// Durations and intervals; `None` if the buffer stores something else.
fn spans(kind: &DataType, physical: &PhysicalBuffer, slots: &Slots) -> Option<ArrayRef> {
    let array: ArrayRef = match (kind, physical) {
        (DataType::Duration(TimeUnit::Millisecond), PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<DurationMillisecondType>(|i| v[i]))
        }
        (DataType::Duration(TimeUnit::Microsecond), PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<DurationMicrosecondType>(|i| v[i]))
        }
        (DataType::Duration(_), PhysicalBuffer::Int64(v)) => {
            Arc::new(slots.primitive::<DurationNanosecondType>(|i| v[i]))
        }
        (DataType::Interval(_), PhysicalBuffer::Fixed { width, data }) => {
            Arc::new(slots.primitive::<IntervalMonthDayNanoType>(|i| {
                let [months, days, milliseconds] = intervals::parts(&data[i * width..(i + 1) * width]);
                // The reader of specs refuses more months and days than Arrow counts.
                let nanoseconds = i64::from(milliseconds) * 1_000_000;
                IntervalMonthDayNano::new(months as i32, days as i32, nanoseconds)
            }))
        }
        _ => return None,
    };
    Some(array)
}

/// Decimals; `None` if the buffer stores something else.
fn decimals(
    kind: &DataType,
    physical: &PhysicalBuffer,
    slots: &Slots,
) -> Result<Option<ArrayRef>, ArrowError> {
    let array: ArrayRef = match (kind, physical) {
        (DataType::Decimal128(precision, scale), physical) => {
            let unscaled = |i: usize| match physical {
                PhysicalBuffer::Int32(v) => i128::from(v[i]),
                PhysicalBuffer::Int64(v) => i128::from(v[i]),
                PhysicalBuffer::Fixed { width, data } => wide(&data[i * width..(i + 1) * width]),
                _ => 0,
            };
            let array = slots.primitive::<Decimal128Type>(unscaled);
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        (DataType::Decimal256(precision, scale), PhysicalBuffer::Fixed { width, data }) => {
            let unscaled = |i: usize| i256::from_i128(wide(&data[i * width..(i + 1) * width]));
            let array = slots.primitive::<Decimal256Type>(unscaled);
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(array))
}

/// Strings and bytes; `None` if the buffer stores something else.
fn bytes(kind: &DataType, physical: &PhysicalBuffer, slots: &Slots) -> Result<Option<ArrayRef>, ArrowError> {
    let array: ArrayRef = match (kind, physical) {
        (DataType::Utf8, PhysicalBuffer::Bytes(strings)) => {
            let all: Vec<&[u8]> = strings.iter().collect();
            let (offsets, data) = slots.strings(|i| all[i]);
            Arc::new(StringArray::try_new(offsets, data, slots.nulls())?)
        }
        (DataType::Binary, PhysicalBuffer::Bytes(strings)) => {
            let all: Vec<&[u8]> = strings.iter().collect();
            let (offsets, data) = slots.strings(|i| all[i]);
            Arc::new(BinaryArray::try_new(offsets, data, slots.nulls())?)
        }
        (DataType::FixedSizeBinary(size), PhysicalBuffer::Fixed { width, data }) => {
            let mut out: Vec<u8> = Vec::with_capacity(slots.values.len() * width);
            for slot in &slots.values {
                match slot {
                    Some(i) => out.extend_from_slice(&data[i * width..(i + 1) * width]),
                    None => out.resize(out.len() + width, 0),
                }
            }
            Arc::new(FixedSizeBinaryArray::try_new(*size, out.into(), slots.nulls())?)
        }
        _ => return Ok(None),
    };
    Ok(Some(array))
}

/// A big-endian two's complement number whose value fits into the lowest 16 bytes.
fn wide(bytes: &[u8]) -> i128 {
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let mut wide = [if negative { 0xFF } else { 0 }; 16];
    let n = bytes.len().min(16);
    wide[16 - n..].copy_from_slice(&bytes[bytes.len() - n..]);
    i128::from_be_bytes(wide)
}

/// An INT96 timestamp in nanoseconds since 1970-01-01.
fn nanoseconds(bytes: &[u8]) -> i64 {
    let (of_day, day) = bytes.split_at(8);
    let of_day = i64::from_le_bytes(of_day.try_into().unwrap_or_default());
    let day = u32::from_le_bytes(day.try_into().unwrap_or_default());
    (i64::from(day) - 2_440_588).wrapping_mul(86_400_000_000_000).wrapping_add(of_day)
}
