//! The values of a leaf as an Arrow array.

use std::sync::Arc;

use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, TimestampNanosecondType, UInt8Type, UInt16Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano, NullBuffer, OffsetBuffer, i256};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use half::f16;

use crate::arrow::batches::{LeafLevels, Scope};
use crate::arrow::schema::data_type;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::intervals;
use crate::shred::block::Shredded;
use crate::shred::value_buffer::{ByteStrings, ValueBuffer};
use crate::spec::dataset::{Field, Leaf};
use crate::types::int256::Int256;

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

    /// The same as the type `kind`, which stores its values as `T` does.
    fn stored<T: ArrowPrimitiveType>(
        &self,
        values: &[T::Native],
        kind: &DataType,
    ) -> Result<ArrayRef, ArrowError> {
        let data = self.primitive::<T>(|i| values[i]).into_data().into_builder();
        Ok(make_array(data.data_type(kind.clone()).build()?))
    }

    /// The offsets and bytes of the slots' strings.
    fn strings(&self, strings: &ByteStrings) -> (OffsetBuffer<i32>, Buffer) {
        let all: Vec<&[u8]> = strings.iter().collect();
        let mut data: Vec<u8> = Vec::new();
        let mut offsets: Vec<i32> = vec![0];
        for slot in &self.values {
            if let Some(i) = slot {
                data.extend_from_slice(all[*i]);
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
    let kind = data_type(field);
    // INT96 timestamps stay nanoseconds.
    if let (DataType::Timestamp(TimeUnit::Nanosecond, None), ValueBuffer::Int64(v)) = (&kind, buffer) {
        return slots.stored::<Int64Type>(v, &kind);
    }
    let plain = buffer.plain(leaf);
    if let ValueBuffer::Bytes(strings) = &*plain
        && strings.data.len() > most
    {
        return Err(ArrowError::OffsetOverflowError(strings.data.len()));
    }
    match &*plain {
        ValueBuffer::Int32(v) => of_int32(&kind, v, &slots),
        ValueBuffer::Int64(v) => match &kind {
            DataType::Decimal128(precision, scale) => {
                decimal(slots.primitive(|i| v[i].into()), *precision, *scale)
            }
            // Dates, times and unsigned numbers, too.
            kind => slots.stored::<Int64Type>(v, kind),
        },
        ValueBuffer::Float(v) => Ok(Arc::new(slots.primitive::<Float32Type>(|i| v[i]))),
        ValueBuffer::Double(v) => Ok(Arc::new(slots.primitive::<Float64Type>(|i| v[i]))),
        ValueBuffer::Fixed { width, data } => {
            of_fixed(&kind, |i| &data[i * width..(i + 1) * width], *width, &slots)
        }
        ValueBuffer::Bytes(strings) => {
            let (offsets, data) = slots.strings(strings);
            Ok(match kind {
                DataType::Utf8 => Arc::new(StringArray::try_new(offsets, data, slots.nulls())?),
                _ => Arc::new(BinaryArray::try_new(offsets, data, slots.nulls())?),
            })
        }
        ValueBuffer::Booleans(v) => {
            let bits: BooleanBuffer = slots.values.iter().map(|i| i.is_some_and(|i| v[i] == 1)).collect();
            Ok(Arc::new(BooleanArray::new(bits, slots.nulls())))
        }
        codes => Err(ArrowError::InvalidArgumentError(format!("{} has {codes:?} values", field.path))),
    }
}

/// Numbers, dates and times that Parquet stores in 32 bits.
fn of_int32(kind: &DataType, v: &[i32], slots: &Slots) -> Result<ArrayRef, ArrowError> {
    Ok(match kind {
        DataType::Int8 => Arc::new(slots.primitive::<Int8Type>(|i| v[i] as i8)),
        DataType::Int16 => Arc::new(slots.primitive::<Int16Type>(|i| v[i] as i16)),
        DataType::UInt8 => Arc::new(slots.primitive::<UInt8Type>(|i| v[i] as u8)),
        DataType::UInt16 => Arc::new(slots.primitive::<UInt16Type>(|i| v[i] as u16)),
        DataType::Decimal128(precision, scale) => {
            return decimal(slots.primitive(|i| v[i].into()), *precision, *scale);
        }
        kind => return slots.stored::<Int32Type>(v, kind),
    })
}

/// Values that Parquet stores in `width` bytes each.
fn of_fixed<'a>(
    kind: &DataType,
    value: impl Fn(usize) -> &'a [u8],
    width: usize,
    slots: &Slots,
) -> Result<ArrayRef, ArrowError> {
    Ok(match kind {
        DataType::Decimal128(precision, scale) => {
            return decimal(slots.primitive(|i| wide(value(i))), *precision, *scale);
        }
        DataType::Decimal256(precision, scale) => {
            let array = slots
                .primitive::<Decimal256Type>(|i| i256::from_be_bytes(Int256::from_bytes(value(i)).bytes()));
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Float16 => {
            let number = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]);
            Arc::new(slots.primitive::<Float16Type>(|i| number(value(i))))
        }
        // The values of an INT96 dictionary are bytes.
        DataType::Timestamp(..) => {
            Arc::new(slots.primitive::<TimestampNanosecondType>(|i| nanoseconds(value(i))))
        }
        DataType::Interval(_) => Arc::new(slots.primitive::<IntervalMonthDayNanoType>(|i| {
            let [months, days, milliseconds] = intervals::parts(value(i));
            // The reader of specs refuses more months and days than Arrow counts.
            IntervalMonthDayNano::new(months as i32, days as i32, i64::from(milliseconds) * 1_000_000)
        })),
        _ => {
            let mut out: Vec<u8> = Vec::with_capacity(slots.values.len() * width);
            for slot in &slots.values {
                match slot {
                    Some(i) => out.extend_from_slice(value(*i)),
                    None => out.resize(out.len() + width, 0),
                }
            }
            Arc::new(FixedSizeBinaryArray::try_new(width as i32, out.into(), slots.nulls())?)
        }
    })
}

fn decimal(
    unscaled: PrimitiveArray<Decimal128Type>,
    precision: u8,
    scale: i8,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(unscaled.with_precision_and_scale(precision, scale)?))
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
