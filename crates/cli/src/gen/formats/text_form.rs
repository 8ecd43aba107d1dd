//! Converts batches to a form that JSON and CSV can write.
//!
//! UUIDs become 36 characters, intervals their parts with units. Times of day also become text, because `arrow` has
//! no 24:00:00 as PostgreSQL does. Instants are in UTC (names of time zones would need a database), map keys are
//! text, of a struct its JSON. A date or time beyond the range of `arrow`'s calendar is an error.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::as_datetime;
use arrow_array::types::{
    Date32Type, Date64Type, DurationMillisecondType, DurationSecondType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, ListArray, MapArray, RecordBatch, StringArray,
    StructArray, make_array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use super::map_keys::key_texts;

/// The extension type of 16 bytes that are a UUID.
const UUID: &str = "arrow.uuid";

/// The extension type of 12 bytes that are an interval, as Parquet stores it.
const INTERVAL: &str = "sawmill.interval";

/// Why a batch has no text form.
#[derive(Debug)]
pub(crate) enum NoText {
    /// A value that text cannot represent.
    Value {
        column: String,
        row: usize,
        what: String,
    },
    /// An option that the columns do not allow.
    Option(String),
    Arrow(ArrowError),
}

impl From<sawmill_generator::Error> for NoText {
    fn from(error: sawmill_generator::Error) -> Self {
        NoText::Option(format!("{}; {}", error.what(), error.advice()))
    }
}

impl From<ArrowError> for NoText {
    fn from(error: ArrowError) -> Self {
        NoText::Arrow(error)
    }
}

/// The schema of a batch's text form.
pub(super) fn text_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(text_field).collect::<Fields>()))
}

/// The text form of a batch.
pub(crate) fn text_batch(batch: &RecordBatch) -> Result<RecordBatch, NoText> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    let columns = columns.map(|(column, field)| {
        text_array(field, column).map_err(|error| within(error, field.name(), |row| row))
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(text_schema(batch.schema_ref()), columns)?)
}

/// How the bytes of a field are text, if they are.
pub(super) fn text_of_bytes(field: &Field) -> Option<fn(&[u8]) -> String> {
    match (field.data_type(), field.extension_type_name()) {
        (DataType::FixedSizeBinary(16), Some(UUID)) => Some(uuid),
        (DataType::FixedSizeBinary(12), Some(INTERVAL)) => Some(interval),
        _ => None,
    }
}

fn text_field(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        _ if text_of_bytes(field).is_some() => DataType::Utf8,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Utf8,
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        DataType::List(element) => DataType::List(text_field(element)),
        DataType::FixedSizeList(element, size) => DataType::FixedSizeList(text_field(element), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(text_field).collect()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let key = Arc::new(Field::new(fields[0].name(), DataType::Utf8, false));
                let entry = DataType::Struct(Fields::from(vec![key, text_field(&fields[1])]));
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(entry)), *sorted)
            }
            _ => return Arc::clone(field),
        },
        _ => return Arc::clone(field),
    };
    Arc::new(Field::new(field.name(), kind, field.is_nullable()))
}

/// The text form of an array. An error gives the slot as its row.
fn text_array(field: &FieldRef, array: &ArrayRef) -> Result<ArrayRef, NoText> {
    if let Some(text) = text_of_bytes(field) {
        let texts = array.as_fixed_size_binary().iter().map(|bytes| bytes.map(text));
        return Ok(Arc::new(texts.collect::<StringArray>()));
    }
    match field.data_type() {
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = fields.iter().zip(structs.columns()).map(|(field, column)| {
                text_array(field, column).map_err(|error| within(error, field.name(), |slot| slot))
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let fields = fields.iter().map(text_field).collect();
            let nulls = structs.nulls().cloned();
            Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, array.len())?))
        }
        DataType::List(element) => {
            let lists: &ListArray = array.as_list();
            let offsets = lists.offsets();
            let values = text_array(element, lists.values())
                .map_err(|error| within(error, element.name(), |slot| slot_around(offsets, slot)))?;
            let nulls = lists.nulls().cloned();
            Ok(Arc::new(ListArray::try_new(text_field(element), offsets.clone(), values, nulls)?))
        }
        DataType::FixedSizeList(element, size) => {
            let lists = array.as_fixed_size_list();
            let values = text_array(element, lists.values())
                .map_err(|error| within(error, element.name(), |slot| slot / (*size as usize).max(1)))?;
            let (nulls, length) = (lists.nulls().cloned(), lists.len());
            let element = text_field(element);
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(element, *size, values, nulls, length)?))
        }
        DataType::Map(_, sorted) => {
            let maps = array.as_map();
            let (offsets, fields) = (maps.offsets(), maps.entries().fields());
            let around = |error, name| within(error, name, |slot| slot_around(offsets, slot));
            let keys = text_array(&fields[0], maps.keys())
                .and_then(|keys| Ok(Arc::new(key_texts(&text_field(&fields[0]), &keys)?) as ArrayRef))
                .map_err(|error| around(error, "key"))?;
            let values = text_array(&fields[1], maps.values()).map_err(|error| around(error, "value"))?;
            let kind = text_field(field);
            let DataType::Map(entries, _) = kind.data_type() else { return Ok(Arc::clone(array)) };
            let DataType::Struct(fields) = entries.data_type() else { return Ok(Arc::clone(array)) };
            let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            let nulls = maps.nulls().cloned();
            Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets.clone(), pairs, nulls, *sorted)?))
        }
        _ => text_leaf(field, array),
    }
}

/// The text form of an array that is not nested.
fn text_leaf(field: &FieldRef, array: &ArrayRef) -> Result<ArrayRef, NoText> {
    match field.data_type() {
        DataType::Date32 => dates::<Date32Type>(array),
        DataType::Date64 => dates::<Date64Type>(array),
        DataType::Time32(TimeUnit::Second) => times::<Time32SecondType>(array, 86_400),
        DataType::Time32(_) => times::<Time32MillisecondType>(array, 86_400_000),
        DataType::Time64(TimeUnit::Microsecond) => times::<Time64MicrosecondType>(array, 86_400_000_000),
        DataType::Time64(_) => times::<Time64NanosecondType>(array, 86_400_000_000_000),
        DataType::Timestamp(unit, _) => {
            let shown = match unit {
                TimeUnit::Second => dates::<TimestampSecondType>(array),
                TimeUnit::Millisecond => dates::<TimestampMillisecondType>(array),
                TimeUnit::Microsecond => dates::<TimestampMicrosecondType>(array),
                TimeUnit::Nanosecond => dates::<TimestampNanosecondType>(array),
            }?;
            let kind = text_field(field).data_type().clone();
            if *shown.data_type() == kind {
                return Ok(shown);
            }
            Ok(make_array(shown.to_data().into_builder().data_type(kind).build()?))
        }
        // As milliseconds they have 64 bits.
        DataType::Duration(TimeUnit::Second) => {
            all_shown::<DurationSecondType>(array, |n| n.unsigned_abs() <= i64::MAX as u64 / 1000)
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            all_shown::<DurationMillisecondType>(array, |n| n != i64::MIN)
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// The error of an inner array or a column, with the slot of the outer array that `slot` computes.
fn within(error: NoText, name: &str, slot: impl Fn(usize) -> usize) -> NoText {
    match error {
        NoText::Value { column, row, what } => {
            let column = if column.is_empty() { name.to_owned() } else { format!("{name}.{column}") };
            NoText::Value { column, row: slot(row), what }
        }
        error => error,
    }
}

/// The list that contains the element `slot`.
fn slot_around(offsets: &[i32], slot: usize) -> usize {
    offsets.partition_point(|offset| *offset as usize <= slot).saturating_sub(1)
}

/// The array itself, if all of its dates or instants are in the range of `arrow`'s calendar; else an error.
fn dates<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<ArrayRef, NoText>
where
    T::Native: Ord + Copy + std::fmt::Display + Into<i64>,
{
    all_shown::<T>(array, |value| as_datetime::<T>(value.into()).is_some())
}

/// The array itself, if `is_shown` holds for every value; else an error.
fn all_shown<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    is_shown: impl Fn(T::Native) -> bool,
) -> Result<ArrayRef, NoText>
where
    T::Native: Ord + Copy + std::fmt::Display,
{
    let values = array.as_primitive::<T>();
    // The values that can be shown are a range without gaps, so checking the ends is enough.
    let ends = values.iter().flatten().fold(None, |ends: Option<(T::Native, T::Native)>, v| {
        Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
    });
    if ends.is_none_or(|(low, high)| is_shown(low) && is_shown(high)) {
        return Ok(Arc::clone(array));
    }
    let mut wrong = values.iter().enumerate().filter_map(|(row, v)| Some((row, v?)));
    let Some((row, value)) = wrong.find(|(_, value)| !is_shown(*value)) else { return Ok(Arc::clone(array)) };
    let what = match array.data_type() {
        DataType::Date32 => format!("the date {value} days from 1970-01-01 cannot be written as text"),
        DataType::Duration(_) => format!("the duration {value} cannot be written as text"),
        _ => format!("the time {value} units from 1970-01-01 cannot be written as text"),
    };
    Err(NoText::Value { column: String::new(), row, what })
}

/// Times of day, which count `a_day` per day. The end of the day is 24:00:00.
fn times<T: ArrowPrimitiveType>(array: &ArrayRef, a_day: i64) -> Result<ArrayRef, NoText>
where
    T::Native: Copy + Into<i64>,
{
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    let mut texts = StringBuilder::with_capacity(array.len(), array.len() * 15);
    for (row, value) in array.as_primitive::<T>().iter().enumerate() {
        match value.map(Into::<i64>::into) {
            None => texts.append_null(),
            Some(value) if value == a_day => texts.append_value("24:00:00"),
            Some(value) if (0..a_day).contains(&value) => {
                formatter.value(row).write(&mut texts)?;
                texts.append_value("");
            }
            Some(value) => {
                let what = format!("the time {value} units after midnight cannot be written as text");
                return Err(NoText::Value { column: String::new(), row, what });
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// An interval as Arrow writes one, which PostgreSQL and DuckDB read: `1 mons 2 days 3 hours 4 mins 5.006 secs`.
fn interval(bytes: &[u8]) -> String {
    let mut numbers =
        bytes.chunks_exact(4).map(|part| part.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte)));
    let [months, days, millis] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    let whole =
        [(months, "mons"), (days, "days"), (millis / 3_600_000, "hours"), (millis / 60_000 % 60, "mins")];
    let mut parts: Vec<String> =
        whole.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n} {unit}")).collect();
    let (seconds, millis) = (millis / 1000 % 60, millis % 1000);
    if millis > 0 {
        parts.push(format!("{seconds}.{millis:03} secs"));
    } else if seconds > 0 || parts.is_empty() {
        parts.push(format!("{seconds} secs"));
    }
    parts.join(" ")
}

/// A UUID in 8-4-4-4-12 digits.
fn uuid(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(36);
    sawmill_pgcopy::write_uuid(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}
