//! The values of a leaf as an Arrow array.

use std::sync::Arc;

use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, TimestampNanosecondType, UInt8Type, UInt16Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray, UInt64Array, make_array,
};
use arrow_buffer::{BooleanBuffer, IntervalMonthDayNano, OffsetBuffer, i256};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::take::take;
use half::f16;

use crate::arrow::batches::{LeafLevels, Scope};
use crate::arrow::schema::data_type;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::intervals;
use crate::shred::block::Shredded;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Field, Leaf};
use crate::types::int256::Int256;

/// The array of a leaf's slots in `scope`. Fails with [`ArrowError::OffsetOverflowError`] if its strings take more
/// than `most` bytes, as an Arrow array has offsets of 32 bits.
pub(super) fn leaf_array(
    field: &Field,
    leaf: &Leaf,
    shredded: &Shredded,
    levels: &LeafLevels<'_>,
    scope: Scope,
    most: usize,
) -> Result<ArrayRef, ArrowError> {
    let buffer = &shredded.leaves[leaf.index].values;
    let kind = data_type(field);
    let plain = match (&kind, buffer) {
        // INT96 is drawn as nanoseconds.
        (DataType::Timestamp(TimeUnit::Nanosecond, None), ValueBuffer::Int64(_)) => buffer.clone(),
        _ => buffer.plain(leaf).into_owned(),
    };
    match plain {
        ValueBuffer::Bytes(strings) if strings.data.len() > most => {
            Err(ArrowError::OffsetOverflowError(strings.data.len()))
        }
        plain => in_slots(values(plain, &kind)?, field, levels, scope),
    }
}

/// The slots of `values`. One without a value is null if the field is optional. Otherwise the enclosing struct is
/// null there, and the slot holds any value.
fn in_slots(
    values: ArrayRef,
    field: &Field,
    levels: &LeafLevels<'_>,
    scope: Scope,
) -> Result<ArrayRef, ArrowError> {
    let (mut next, mut slots) = (0, Vec::with_capacity(levels.entries));
    for definition in (0..levels.entries).map(|i| levels.definition(i)) {
        let there = definition == field.levels.definition;
        if definition >= scope.definition {
            slots.push(there.then_some(next));
        }
        next += u64::from(there);
    }
    if slots.iter().all(Option::is_some) {
        return Ok(values);
    }
    let taken = take(&values, &UInt64Array::from(slots), None)?;
    match field.nulls {
        Nulls::Never => Ok(make_array(taken.to_data().into_builder().nulls(None).build()?)),
        _ => Ok(taken),
    }
}

fn values(plain: ValueBuffer, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match (plain, kind) {
        (ValueBuffer::Int32(v), DataType::Int8) => each::<Int8Type>(v.iter().map(|n| *n as i8)),
        (ValueBuffer::Int32(v), DataType::Int16) => each::<Int16Type>(v.iter().map(|n| *n as i16)),
        (ValueBuffer::Int32(v), DataType::UInt8) => each::<UInt8Type>(v.iter().map(|n| *n as u8)),
        (ValueBuffer::Int32(v), DataType::UInt16) => each::<UInt16Type>(v.iter().map(|n| *n as u16)),
        (ValueBuffer::Int32(v), DataType::Decimal128(..)) => {
            stored::<Decimal128Type>(v.into_iter().map(i128::from).collect(), kind)?
        }
        (ValueBuffer::Int64(v), DataType::Decimal128(..)) => {
            stored::<Decimal128Type>(v.into_iter().map(i128::from).collect(), kind)?
        }
        (ValueBuffer::Int32(v), kind) => stored::<Int32Type>(v, kind)?,
        (ValueBuffer::Int64(v), kind) => stored::<Int64Type>(v, kind)?,
        (ValueBuffer::Float(v), kind) => stored::<Float32Type>(v, kind)?,
        (ValueBuffer::Double(v), kind) => stored::<Float64Type>(v, kind)?,
        (ValueBuffer::Booleans(v), _) => {
            let bits: BooleanBuffer = v.iter().map(|bit| *bit == 1).collect();
            Arc::new(BooleanArray::new(bits, None))
        }
        (ValueBuffer::Bytes(strings), kind) => {
            let offsets: Vec<i32> =
                std::iter::once(0).chain(strings.ends.iter().map(|end| *end as i32)).collect();
            let (offsets, data) = (OffsetBuffer::new(offsets.into()), strings.data.into());
            match kind {
                DataType::Utf8 => Arc::new(StringArray::try_new(offsets, data, None)?),
                _ => Arc::new(BinaryArray::try_new(offsets, data, None)?),
            }
        }
        (ValueBuffer::Fixed { width, data }, kind) => of_fixed(width, data, kind)?,
        (codes, kind) => {
            return Err(ArrowError::InvalidArgumentError(format!("{codes:?} as values of type {kind}")));
        }
    })
}

fn of_fixed(width: usize, data: Vec<u8>, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let each_of = data.chunks_exact(width);
    Ok(match kind {
        DataType::Decimal128(..) => stored::<Decimal128Type>(each_of.map(wide).collect(), kind)?,
        DataType::Decimal256(..) => {
            let number = |bytes: &[u8]| i256::from_be_bytes(Int256::from_bytes(bytes).bytes());
            stored::<Decimal256Type>(each_of.map(number).collect(), kind)?
        }
        DataType::Float16 => {
            each::<Float16Type>(each_of.map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]])))
        }
        DataType::Timestamp(..) => each::<TimestampNanosecondType>(each_of.map(nanoseconds)),
        DataType::Interval(_) => each::<IntervalMonthDayNanoType>(each_of.map(|bytes| {
            let [months, days, milliseconds] = intervals::parts(bytes);
            IntervalMonthDayNano::new(months as i32, days as i32, i64::from(milliseconds) * 1_000_000)
        })),
        _ => Arc::new(FixedSizeBinaryArray::try_new(width as i32, data.into(), None)?),
    })
}

fn each<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

/// An array of the type `kind`, which stores its values as `T` does.
fn stored<T: ArrowPrimitiveType>(values: Vec<T::Native>, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let data = PrimitiveArray::<T>::new(values.into(), None).into_data().into_builder();
    Ok(make_array(data.data_type(kind.clone()).build()?))
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
