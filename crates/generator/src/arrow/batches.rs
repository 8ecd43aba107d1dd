//! Records as Arrow batches: the same rows as in the files, from the same levels and values.
//!
//! A slot of an array is a present entry of the enclosing list or record. The levels of the first leaf of a
//! field determine which entries are present, which are null, and how long a list is.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, MapArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Fields, Schema, SchemaRef, TimeUnit};
use half::f16;

use crate::arrow::schema::{arrow_field, data_type};
use crate::draw::nulls::Nulls;
use crate::error::Error;
use crate::shred::block::{BLOCK_ROWS, LeafBuffer, Shredded, Shredder};
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::value_buffer::PhysicalBuffer;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, ListStyle};

/// The rows of a dataset in batches.
#[derive(Debug)]
pub struct Batches<'a> {
    fields: Vec<&'a Field>,
    shredder: Shredder<'a>,
    schema: SchemaRef,
    rows: Range<u64>,
    batch_rows: u64,
    /// The most string bytes and list elements of one column in a batch, because arrays have 32-bit offsets.
    most: usize,
}

impl Dataset {
    /// The rows of a range as Arrow batches of at most `batch_rows` rows each. Multiples of
    /// 1,024 rows are the fastest. Batches are smaller where a column's strings would have more than 2 GiB.
    pub fn batches(&self, rows: Range<u64>, seed: u64, batch_rows: usize) -> Batches<'_> {
        let shredder = Shredder::new(self, seed);
        self.made_of(self.fields.iter().collect(), self.arrow_schema(), shredder, rows, batch_rows)
    }

    /// As [`batches`](Self::batches), with the fields at the places `fields` of the record alone, in this order.
    /// Other fields are drawn only if the expression of a field needs them.
    ///
    /// ```
    /// let contacts = sawmill_generator::Dataset::built_in("contacts").unwrap()?;
    /// let batch = contacts.batches_of(&[1], 0..1000, 42, 1000)?.next().unwrap()?;
    /// assert_eq!(batch.schema().field(0), contacts.arrow_schema().field(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The record has fewer fields than one of `fields`.
    pub fn batches_of(
        &self,
        fields: &[usize],
        rows: Range<u64>,
        seed: u64,
        batch_rows: usize,
    ) -> Result<Batches<'_>, Error> {
        let count = self.fields.len();
        if let Some(place) = fields.iter().find(|place| **place >= count) {
            let what = format!("there is no field {place}: the record has {count} fields, counted from 0");
            return Err(Error::spec(what, self.name.clone(), "choose fields by their place in the schema"));
        }
        let shredder = Shredder::of_fields(self, seed, ChosenFields::of(self, fields));
        let fields: Vec<&Field> = fields.iter().map(|place| &self.fields[*place]).collect();
        let schema = Arc::new(Schema::new(fields.iter().map(|field| arrow_field(field)).collect::<Fields>()));
        Ok(self.made_of(fields, schema, shredder, rows, batch_rows))
    }

    fn made_of<'a>(
        &'a self,
        fields: Vec<&'a Field>,
        schema: SchemaRef,
        shredder: Shredder<'a>,
        rows: Range<u64>,
        batch_rows: usize,
    ) -> Batches<'a> {
        let batch_rows = (batch_rows as u64).max(1);
        Batches { fields, shredder, schema, rows, batch_rows, most: i32::MAX as usize }
    }
}

impl Batches<'_> {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.start >= self.rows.end {
            return None;
        }
        loop {
            // End at the end of a block, if more than one block fits.
            let mut end = self.rows.start.saturating_add(self.batch_rows).min(self.rows.end);
            let aligned = end - end % BLOCK_ROWS;
            if end < self.rows.end && aligned > self.rows.start {
                end = aligned;
            }
            let rows = self.rows.start..end;
            let n = rows.end - rows.start;
            let shredded = match self.shredder.rows(rows.clone()) {
                Ok(shredded) => shredded,
                Err(error) => {
                    self.rows.start = end;
                    return Some(Err(error));
                }
            };
            let made = batch(&self.fields, shredded, &self.schema, n as usize, self.most);
            if matches!(made, Err(ArrowError::OffsetOverflowError(_))) && n > 1 {
                self.batch_rows = n.div_ceil(2);
                continue;
            }
            self.rows.start = end;
            return Some(made.map_err(|error| {
                let place = format!("rows {} to {}", rows.start, rows.end);
                match error {
                    ArrowError::OffsetOverflowError(length) => Error::spec(
                        format!("a field has {length} bytes or elements in one row, more than the {} of an Arrow batch", self.most),
                        place,
                        "shorten its values",
                    ),
                    _ => Error::spec(format!("cannot make an Arrow batch: {error}"), place, "report this with the dataset spec"),
                }
            }));
        }
    }
}

fn batch(
    fields: &[&Field],
    shredded: &Shredded,
    schema: &SchemaRef,
    rows: usize,
    most: usize,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        columns.push(array(field, shredded, Scope { repetition: 0, definition: 0 }, most)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// The list or record whose entries are the slots of an array.
#[derive(Clone, Copy)]
struct Scope {
    /// Entries begin at repetition levels of at most this.
    repetition: u8,
    /// The smallest definition level of a present entry.
    definition: u8,
}

/// The levels of a leaf.
struct LeafLevels<'a> {
    definition: &'a [u8],
    repetition: &'a [u8],
    entries: usize,
}

impl LeafLevels<'_> {
    fn definition(&self, i: usize) -> u8 {
        self.definition.get(i).copied().unwrap_or(0)
    }

    fn repetition(&self, i: usize) -> u8 {
        self.repetition.get(i).copied().unwrap_or(0)
    }

    /// The entries that are slots in `scope`.
    fn slots(&self, scope: Scope) -> impl Iterator<Item = usize> {
        (0..self.entries).filter(move |i| {
            self.repetition(*i) <= scope.repetition && self.definition(*i) >= scope.definition
        })
    }
}

/// The first leaf of a field.
fn first_leaf(field: &Field) -> &Leaf {
    match &field.kind {
        Kind::Leaf(leaf) => leaf,
        // Groups always have fields: the reader refuses specs without.
        Kind::Struct { fields: children, .. } | Kind::List { children, .. } => first_leaf(&children[0]),
    }
}

fn levels<'a>(leaf: &Leaf, shredded: &'a Shredded) -> LeafLevels<'a> {
    let LeafBuffer { definition, values, list } = &shredded.leaves[leaf.index];
    let repetition = list.map_or(&[][..], |list| &shredded.lists[list]);
    let entries = if definition.is_empty() { values.len() } else { definition.len() };
    LeafLevels { definition, repetition, entries: entries.max(repetition.len()) }
}

fn array(field: &Field, shredded: &Shredded, scope: Scope, most: usize) -> Result<ArrayRef, ArrowError> {
    let leaf = first_leaf(field);
    let levels = levels(leaf, shredded);
    // The level at which the field itself is present: for lists, one less than that of an element.
    let there = match field.kind {
        Kind::List { .. } => field.levels.definition - 1,
        _ => field.levels.definition,
    };
    let nulls = || -> Option<NullBuffer> {
        let valid = levels.slots(scope).map(|i| levels.definition(i) >= there);
        (field.nulls != Nulls::Never).then(|| NullBuffer::from(valid.collect::<Vec<bool>>()))
    };
    match &field.kind {
        Kind::Leaf(leaf) => leaf_array(field, leaf, shredded, &levels, scope, most),
        Kind::Struct { fields, .. } => {
            let children = fields
                .iter()
                .map(|field| array(field, shredded, scope, most))
                .collect::<Result<Vec<_>, _>>()?;
            let arrow = fields.iter().map(arrow_field).collect();
            let slots = levels.slots(scope).count();
            Ok(Arc::new(StructArray::try_new_with_length(arrow, children, nulls(), slots)?))
        }
        Kind::List { style, children, .. } => {
            let inner = Scope { repetition: field.levels.repetition, definition: field.levels.definition };
            if levels.entries > most {
                return Err(ArrowError::OffsetOverflowError(levels.entries));
            }
            let mut offsets: Vec<i32> = vec![0];
            let mut elements = 0;
            let mut open = false;
            for i in 0..levels.entries {
                let (definition, repetition) = (levels.definition(i), levels.repetition(i));
                if repetition <= scope.repetition {
                    if open {
                        offsets.push(elements);
                    }
                    open = definition >= scope.definition;
                }
                elements += i32::from(repetition <= inner.repetition && definition >= inner.definition);
            }
            if open {
                offsets.push(elements);
            }
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let parts = children
                .iter()
                .map(|child| array(child, shredded, inner, most))
                .collect::<Result<Vec<_>, _>>()?;
            if *style == ListStyle::Map {
                let arrow: arrow_schema::Fields = children.iter().map(arrow_field).collect();
                let entries = StructArray::try_new(arrow.clone(), parts, None)?;
                let field = ArrowField::new("key_value", DataType::Struct(arrow), false);
                return Ok(Arc::new(MapArray::try_new(Arc::new(field), offsets, entries, nulls(), false)?));
            }
            let element = Arc::new(arrow_field(&children[0]));
            let values = parts
                .into_iter()
                .next()
                .ok_or_else(|| ArrowError::InvalidArgumentError("a list without an element".to_owned()))?;
            Ok(Arc::new(ListArray::try_new(element, offsets, values, nulls())?))
        }
    }
}

/// The index of the value of each slot; `None` for nulls.
struct Slots {
    values: Vec<Option<usize>>,
    optional: bool,
}

impl Slots {
    /// The slots of a leaf in `scope`.
    fn of(field: &Field, levels: &LeafLevels<'_>, scope: Scope) -> Self {
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

fn leaf_array(
    field: &Field,
    leaf: &Leaf,
    shredded: &Shredded,
    levels: &LeafLevels<'_>,
    scope: Scope,
    most: usize,
) -> Result<ArrayRef, ArrowError> {
    let buffer = &shredded.leaves[leaf.index].values;
    let slots = Slots::of(field, levels, scope);
    // INT96 timestamps stay nanoseconds.
    if let (
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        crate::shred::value_buffer::ValueBuffer::Int64(v),
    ) = (data_type(field), buffer)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_fewer_rows_and_the_same_values_if_its_strings_are_too_long() {
        let dataset = Dataset::built_in("contacts").unwrap().unwrap();
        let whole = dataset.batches(0..500, 7, 500).next().unwrap().unwrap();
        let mut batches = Batches { most: 2_000, ..dataset.batches(0..500, 7, 500) };
        let (mut rows, mut number) = (0, 0);
        for batch in batches.by_ref() {
            let batch = batch.unwrap();
            assert_eq!(batch, whole.slice(rows, batch.num_rows()));
            (rows, number) = (rows + batch.num_rows(), number + 1);
        }
        assert!(rows == 500 && number > 3, "{rows} rows in {number} batches");
    }

    #[test]
    fn a_single_row_that_is_too_long_is_an_error_with_its_number() {
        let dataset = Dataset::built_in("contacts").unwrap().unwrap();
        let batches = Batches { most: 1, ..dataset.batches(3..500, 7, 100) };
        let mut row = 3;
        for batch in batches {
            match batch {
                // Rows without a name and with at most one phone are short enough.
                Ok(batch) => row += batch.num_rows(),
                Err(error) => {
                    let (error, place) = (error.to_string(), format!("rows {row} to {}", row + 1));
                    assert!(error.contains(&place) && error.contains("in one row"), "{error}");
                    return;
                }
            }
        }
        panic!("every row was short enough");
    }
}
