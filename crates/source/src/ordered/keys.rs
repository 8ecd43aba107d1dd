//! The time and the partition of each row of a batch.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow_array::{Array, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::Order;
use super::partition::{PartitionedBy, Slot};
use sawmill_profile::{Error, Kind, Result, known_columns};

use crate::condition::pruning::{Bounds, Known, Nulls};

/// The most partitions: a larger number is probably a mistake.
const MAX: usize = 10_000;

/// Which columns decide the order, and how.
#[derive(Clone, Debug)]
pub(super) struct Keying {
    /// The columns to read, as positions in the schema.
    pub columns: Vec<usize>,
    /// The position of the time among them.
    time: Option<usize>,
    by: Option<Partitioning>,
}

#[derive(Clone, Debug)]
struct Partitioning {
    by: PartitionedBy,
    /// The column's position among those that are read.
    column: usize,
    /// How its times count, if it has times.
    a_day: i64,
}

impl Keying {
    /// # Errors
    /// A column that does not exist, or whose type does not fit.
    pub(super) fn new(schema: &Schema, order: &Order) -> Result<Self> {
        let mut keying = Self { columns: Vec::new(), time: None, by: None };
        if let Some(name) = &order.sort_by {
            let place = find(schema, name, &format!("--sort-by {name}"))?;
            let data_type = schema.field(place).data_type();
            if a_day(data_type).is_none() {
                return Err(not_a_time(name, data_type, format!("--sort-by {name}")));
            }
            keying.time = Some(keying.reads(place));
        }
        if let Some(by) = &order.partition_by {
            let option = format!("--partition-by {by}");
            let place = find(schema, by.column(), &option)?;
            let data_type = schema.field(place).data_type();
            let a_day = match by {
                PartitionedBy::Period(_, name) => {
                    a_day(data_type).ok_or_else(|| not_a_time(name, data_type, option))?
                }
                PartitionedBy::List(name) if !has_values(data_type) => {
                    let what = format!("column {name:?} is {data_type} and cannot be a list of partitions");
                    return Err(Error::new(Kind::Config, what)
                        .at(option)
                        .advise("lists need whole numbers, text, booleans, dates or UUIDs"));
                }
                PartitionedBy::List(_) => 1,
            };
            keying.by = Some(Partitioning { by: by.clone(), column: keying.reads(place), a_day });
        }
        Ok(keying)
    }

    fn reads(&mut self, column: usize) -> usize {
        match self.columns.iter().position(|read| *read == column) {
            Some(at) => at,
            None => {
                self.columns.push(column);
                self.columns.len() - 1
            }
        }
    }

    /// How the times of the partition column count.
    pub(super) fn a_day(&self) -> i64 {
        self.by.as_ref().map_or(1, |by| by.a_day)
    }

    /// The partition of all rows with these statistics, if it is one.
    pub(super) fn slot_of(&self, known: &Known) -> Option<Slot> {
        let Partitioning { by, a_day, .. } = self.by.as_ref()?;
        match (&known.nulls, &known.bounds, by) {
            (Nulls::All, ..) => Some(Slot::Null),
            (Nulls::None, Some(Bounds::Whole(low, high)), PartitionedBy::Period(period, _)) => {
                let number =
                    |time: &i128| i64::try_from(*time).ok().map(|time| period.containing(time, *a_day).0);
                number(low).filter(|low| number(high) == Some(*low)).map(|number| Slot::Number(number.into()))
            }
            (Nulls::None, Some(Bounds::Whole(low, high)), _) if low == high => Some(Slot::Number(*low)),
            (Nulls::None, Some(Bounds::Bytes(low, high)), _) if low == high => Some(Slot::Bytes(low.clone())),
            _ => None,
        }
    }

    /// Returns the time of each row; `None` without a column to sort by, so that the order does not change.
    pub(super) fn times(&self, batch: &RecordBatch) -> Option<Vec<Option<i64>>> {
        let column = batch.columns().get(self.time?)?;
        whole(column.as_ref())
    }

    /// Replaces `numbers` by the number of each row's partition.
    pub(super) fn partitions(
        &self,
        batch: &RecordBatch,
        book: &mut Pages<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        numbers.clear();
        let Some(Partitioning { by, column, a_day }) = &self.by else {
            let all = book.number(&Slot::All)?;
            numbers.resize(batch.num_rows(), all);
            return Ok(());
        };
        let Some(array) = batch.columns().get(*column) else { return Ok(()) };
        if let Some(values) = whole(array.as_ref()) {
            for value in values {
                numbers.push(match (value, by) {
                    (None, _) => book.number(&Slot::Null)?,
                    (Some(time), PartitionedBy::Period(period, _)) => {
                        book.number_of_span(time, || period.containing(time, *a_day))?
                    }
                    (Some(value), PartitionedBy::List(_)) => {
                        book.number_of_span(value, || (value, value, value.saturating_add(1)))?
                    }
                });
            }
            return Ok(());
        }
        let value = bytes_of(array.as_ref());
        for row in 0..array.len() {
            numbers.push(match array.is_null(row) {
                true => book.number(&Slot::Null)?,
                false => book.number_of_bytes(value.as_ref().map_or(&[][..], |value| value(row)))?,
            });
        }
        Ok(())
    }
}

fn find(schema: &Schema, name: &str, option: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        Error::new(Kind::Config, format!("column {name:?} is not among those that are read"))
            .at(option)
            .advise(known_columns(name, names))
    })
}

fn not_a_time(name: &str, data_type: &DataType, option: String) -> Error {
    let of_type = if data_type.is_string() { "text".to_owned() } else { data_type.to_string() };
    Error::new(Kind::Config, format!("column {name:?} is {of_type}, neither a date nor a timestamp"))
        .at(option)
        .advise("name another column; text files take other types with --types 'NAME=timestamp', and name the value that decided a type with --explain")
}

/// How many units of time a day has, for dates and timestamps, whose units are a thousand apart, the longest first.
fn a_day(data_type: &DataType) -> Option<i64> {
    Some(match data_type {
        DataType::Date32 => 1,
        DataType::Date64 => 86_400_000,
        DataType::Timestamp(unit, _) => 86_400 * 1_000_i64.pow(*unit as u32),
        _ => return None,
    })
}

/// Whether a list of partitions may have values of this type.
fn has_values(data_type: &DataType) -> bool {
    match data_type {
        // Each moment would be a partition.
        DataType::Date64 | DataType::Timestamp(..) => false,
        DataType::FixedSizeBinary(size) => *size == 16,
        _ => {
            let none = new_empty_array(data_type);
            whole(&none).is_some() || bytes_of(&none).is_some()
        }
    }
}

/// The values of whole numbers, times and booleans.
pub(super) fn whole(array: &dyn Array) -> Option<Vec<Option<i64>>> {
    macro_rules! of {
        ($type:ty) => {
            array.as_primitive_opt::<$type>()?.iter().map(|value| value.map(i64::from)).collect()
        };
    }
    Some(match array.data_type() {
        DataType::Boolean => array.as_boolean_opt()?.iter().map(|value| value.map(i64::from)).collect(),
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::Date32 => of!(Date32Type),
        DataType::Date64 => of!(Date64Type),
        DataType::Timestamp(TimeUnit::Second, _) => of!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => of!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(TimestampNanosecondType),
        _ => return None,
    })
}

type BytesAt<'a> = Box<dyn Fn(usize) -> &'a [u8] + 'a>;

/// The bytes of text and UUIDs.
fn bytes_of(array: &dyn Array) -> Option<BytesAt<'_>> {
    macro_rules! of {
        ($array:expr) => {{
            let array = $array?;
            Box::new(move |row| array.value(row).as_ref())
        }};
    }
    Some(match array.data_type() {
        DataType::Utf8 => of!(array.as_string_opt::<i32>()),
        DataType::LargeUtf8 => of!(array.as_string_opt::<i64>()),
        DataType::Utf8View => of!(array.as_string_view_opt()),
        DataType::FixedSizeBinary(_) => of!(array.as_fixed_size_binary_opt()),
        _ => return None,
    })
}

/// The partitions that were found, numbered in the order in which they were.
#[derive(Default)]
pub(super) struct Book(Mutex<(HashMap<Slot, u32>, Vec<Slot>)>);

impl Book {
    /// A thread's view of the book.
    pub(super) fn pages(&self) -> Pages<'_> {
        Pages { book: self, span: None, numbers: HashMap::new(), bytes: HashMap::new(), null: None }
    }

    /// The partitions in the order of their numbers.
    pub(super) fn slots(&self) -> Vec<Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn number(&self, slot: &Slot) -> Result<u32> {
        let (numbers, slots) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(slot) {
            return Ok(*number);
        }
        if slots.len() >= MAX {
            return Err(Error::new(Kind::Config, format!("there would be more than {MAX} partitions"))
                .at("--partition-by")
                .advise("partition by longer periods, or by a column with fewer values"));
        }
        // At most `MAX`.
        let number = slots.len() as u32;
        slots.push(slot.clone());
        numbers.insert(slot.clone(), number);
        Ok(number)
    }
}

/// A thread's part of the book: numbers that it has looked up before.
pub(super) struct Pages<'a> {
    book: &'a Book,
    /// The span of values of the last number.
    span: Option<(i64, i64, u32)>,
    numbers: HashMap<i64, u32>,
    bytes: HashMap<Vec<u8>, u32>,
    null: Option<u32>,
}

impl Pages<'_> {
    fn number(&mut self, slot: &Slot) -> Result<u32> {
        match self.null {
            Some(number) if *slot == Slot::Null => Ok(number),
            _ => {
                let number = self.book.number(slot)?;
                self.null = (*slot == Slot::Null).then_some(number).or(self.null);
                Ok(number)
            }
        }
    }

    /// The number of a value, whose slot and the range of values around it with the same slot `find` returns.
    fn number_of_span(&mut self, value: i64, find: impl FnOnce() -> (i64, i64, i64)) -> Result<u32> {
        if let Some((from, to, number)) = self.span
            && (from..to).contains(&value)
        {
            return Ok(number);
        }
        let (slot, from, to) = find();
        let number = match self.numbers.get(&slot) {
            Some(number) => *number,
            None => {
                let number = self.book.number(&Slot::Number(slot.into()))?;
                self.numbers.insert(slot, number);
                number
            }
        };
        self.span = Some((from, to, number));
        Ok(number)
    }

    fn number_of_bytes(&mut self, bytes: &[u8]) -> Result<u32> {
        if let Some(number) = self.bytes.get(bytes) {
            return Ok(*number);
        }
        let number = self.book.number(&Slot::Bytes(bytes.to_vec()))?;
        self.bytes.insert(bytes.to_vec(), number);
        Ok(number)
    }
}
