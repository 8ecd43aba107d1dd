//! Which partition a value belongs to, and the partition's bound in SQL.
//!
//! ```text
//! batch's column ─Rule─▶ Slot of each value (period, value, null) ─Book─▶ number of the partition
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, TimeUnit};
use sawmill_loader::literal;
use sawmill_pgcopy::{
    ByteStrings, Integers, Nul, PgType, ValueOptions, calendar, is_json, is_uuid, value_type,
};
use sawmill_source::{Bounds, Known, Nulls};

use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::hash;
use crate::partition::period::{YEARS, date, period, period_of};

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;

/// The common property of a partition's values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Slot {
    /// A period's number, a value, or the remainder of a hash.
    Number(i128),
    /// A value.
    Bytes(Vec<u8>),
    Null,
}

/// How a column's values are assigned to slots.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    scheme: Scheme,
    values: ValueKind,
    /// The values of the source are of another type than the table's: only NULL has a slot.
    pub only_nulls: bool,
}

/// How a column's values are read.
#[derive(Clone, Copy, Debug)]
enum ValueKind {
    /// Integers that count time, `a_day` of them per day. `time`: they are timestamps; `zone`: in UTC.
    Moments {
        a_day: i64,
        time: bool,
        zone: bool,
    },
    /// Timestamps as such.
    Instants {
        unit: TimeUnit,
    },
    Whole {
        unsigned: bool,
    },
    Truth,
    Days,
    Text {
        strip: bool,
    },
    Uuids,
}

/// Why a value has no partition.
pub(crate) enum Unplaced {
    /// The row, and the fault of its value.
    Value(usize, String),
    /// There are more partitions than the book may have.
    TooMany,
}

impl Rule {
    /// The rule for a column, or why it cannot be partitioned.
    pub(crate) fn new(by: &PartitionBy, field: &Field, options: &ValueOptions) -> Result<Self, String> {
        let values = match (by.scheme, value_type(field)) {
            (Scheme::Hour, DataType::Date32 | DataType::Date64) => {
                return Err("dates have no hours".to_owned());
            }
            (Scheme::Year | Scheme::Month | Scheme::Day | Scheme::Hour, data_type) => match data_type {
                DataType::Date32 => ValueKind::Moments { a_day: 1, time: false, zone: false },
                DataType::Date64 => ValueKind::Moments { a_day: 86_400_000, time: false, zone: false },
                DataType::Timestamp(unit, zone) => {
                    let a_day = 86_400 * calendar::per_second(*unit);
                    ValueKind::Moments { a_day, time: true, zone: zone.is_some() }
                }
                other => return Err(format!("it is {other}, neither a date nor a timestamp")),
            },
            (Scheme::Hash(_), DataType::Timestamp(unit, _)) => ValueKind::Instants { unit: *unit },
            (_, DataType::Boolean) => ValueKind::Truth,
            (_, DataType::Date32) => ValueKind::Days,
            (_, integer) if integer.is_integer() => {
                ValueKind::Whole { unsigned: *integer == DataType::UInt64 }
            }
            (_, text) if text.is_string() && !is_json(field) => {
                ValueKind::Text { strip: options.nul == Nul::Strip }
            }
            _ if is_uuid(field) => ValueKind::Uuids,
            (Scheme::List, other) => {
                return Err(format!("it is {other}; lists need integers, text, booleans, dates or UUIDs"));
            }
            (Scheme::Hash(_), other) => {
                return Err(format!("only the server can compute the hash of {other}"));
            }
        };
        Ok(Self { scheme: by.scheme, values, only_nulls: false })
    }

    /// The rule of a table's column whose values the source has in another type: files without a single value do not
    /// show the type. `None` for types without a rule.
    pub(crate) fn of_nulls(by: &PartitionBy, column: PgType, options: &ValueOptions) -> Option<Self> {
        let data_type = match column {
            PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Numeric(Some((_, 0))) => DataType::Int64,
            PgType::Bool => DataType::Boolean,
            PgType::Date => DataType::Date32,
            PgType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            PgType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            PgType::Text | PgType::Varchar(_) | PgType::Enum => DataType::Utf8,
            _ => return None,
        };
        let rule = Self::new(by, &Field::new(&by.column, data_type, true), options).ok()?;
        Some(Self { only_nulls: true, ..rule })
    }

    /// The slot of null.
    fn null(&self) -> Slot {
        match self.scheme {
            Scheme::Hash(modulus) => Slot::Number(hash::remainder(None, modulus).into()),
            _ => Slot::Null,
        }
    }

    /// The slot of text or bytes.
    fn slot_of_bytes(&self, bytes: &[u8]) -> Slot {
        match self.scheme {
            Scheme::Hash(modulus) => {
                let hash = hash::of_bytes(bytes);
                Slot::Number(hash::remainder(Some(hash), modulus).into())
            }
            _ => Slot::Bytes(bytes.to_vec()),
        }
    }

    /// The slot of an integer, and the range around the value that has the same slot.
    fn span(&self, value: i64) -> Result<(i128, i64, i64), String> {
        if let Scheme::Hash(modulus) = self.scheme {
            let hash = match self.values {
                // The server counts days and microseconds from 2000-01-01. A value outside of its range also
                // has a hash; the encoder refuses its row.
                ValueKind::Days => hash::of_number(value - EPOCH_DAYS),
                ValueKind::Instants { unit } => {
                    let micros = match (calendar::per_second(unit), 1_000_000) {
                        (finer, micros) if finer > micros => value.div_euclid(finer / micros),
                        (coarser, micros) => value.wrapping_mul(micros / coarser),
                    };
                    hash::of_number(micros.wrapping_sub(EPOCH_DAYS * 86_400_000_000))
                }
                ValueKind::Whole { unsigned: true } => hash::of_numeric(value as u64),
                _ => hash::of_number(value),
            };
            let remainder = hash::remainder(Some(hash), modulus);
            return Ok((remainder.into(), value, value.saturating_add(1)));
        }
        match self.values {
            ValueKind::Moments { a_day, .. } => {
                let hour = (i128::from(value) * 24).div_euclid(i128::from(a_day));
                let found = i64::try_from(hour).ok().and_then(|hour| period_of(self.scheme, hour));
                let found = found.ok_or_else(|| {
                    let (first, last) = (YEARS.start(), YEARS.end());
                    format!("{value} is outside of the years {first} to {last}")
                })?;
                let at = |hour: i64| i64::try_from(i128::from(hour) * i128::from(a_day) / 24);
                let (from, to) = (at(found.first_hour), at(found.end_hour));
                let (from, to) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
                Ok((found.number.into(), from, to))
            }
            ValueKind::Whole { unsigned: true } => {
                Ok(((value as u64).into(), value, value.saturating_add(1)))
            }
            _ => Ok((value.into(), value, value.saturating_add(1))),
        }
    }

    /// The slot of all values of a row group, if the file's statistics show that they have the same.
    pub(crate) fn slot_of(&self, known: &Known) -> Option<Slot> {
        match (known.nulls, &known.bounds) {
            (Nulls::All, _) => Some(self.null()),
            _ if self.only_nulls => None,
            // Between two values with the same hash there are values with others.
            (Nulls::None, Some(Bounds::Whole(low, high)))
                if low != high && matches!(self.scheme, Scheme::Hash(_)) =>
            {
                None
            }
            (Nulls::None, Some(Bounds::Whole(low, high))) => {
                let slot = |value: &i128| match (self.values, i64::try_from(*value)) {
                    (ValueKind::Whole { unsigned: true }, _) if !matches!(self.scheme, Scheme::Hash(_)) => {
                        Some(*value)
                    }
                    (ValueKind::Whole { unsigned: true }, _) => {
                        let value = u64::try_from(*value).ok()?;
                        self.span(value as i64).ok().map(|(slot, ..)| slot)
                    }
                    (_, Ok(value)) => self.span(value).ok().map(|(slot, ..)| slot),
                    (_, Err(_)) => None,
                };
                let (low, high) = (slot(low)?, slot(high)?);
                (low == high).then_some(Slot::Number(low))
            }
            // Equal bounds are the value itself, even if they were truncated.
            (Nulls::None, Some(Bounds::Bytes(low, high))) if low == high && !low.contains(&0) => {
                Some(self.slot_of_bytes(low))
            }
            _ => None,
        }
    }

    /// Whether a file's statistics show that all values of a row group lie in slots that are there.
    pub(crate) fn lies_in(&self, known: &Known, is_there: impl Fn(&Slot) -> bool) -> bool {
        const MAX_SLOTS: i128 = 1000;
        let number = |value: &i128| {
            let value = i64::try_from(*value).ok()?;
            self.span(value).ok().map(|(slot, ..)| slot)
        };
        match (self.values, known.nulls, &known.bounds) {
            (ValueKind::Moments { .. }, Nulls::None, Some(Bounds::Whole(low, high))) if !self.only_nulls => {
                let (Some(low), Some(high)) = (number(low), number(high)) else { return false };
                high - low < MAX_SLOTS && (low..=high).all(|number| is_there(&Slot::Number(number)))
            }
            _ => self.slot_of(known).is_some_and(|slot| is_there(&slot)),
        }
    }

    /// The book's number of each value's slot.
    pub(crate) fn numbers(
        &self,
        column: &dyn Array,
        book: &mut Book,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Unplaced> {
        numbers.clear();
        if self.only_nulls {
            if column.logical_null_count() < column.len() {
                return Err(other_type(column));
            }
            let number = book.number(&self.null())?;
            numbers.resize(column.len(), number);
            return Ok(());
        }
        numbers.reserve(column.len());
        if let Some(dictionary) = column.as_any_dictionary_opt() {
            let values = arrow_select::take::take(dictionary.values().as_ref(), dictionary.keys(), None);
            let values = values.map_err(|error| Unplaced::Value(0, error.to_string()))?;
            return self.numbers(values.as_ref(), book, numbers);
        }
        match self.values {
            ValueKind::Text { .. } | ValueKind::Uuids => self.numbers_of_bytes(column, book, numbers),
            _ => self.numbers_of_whole(column, book, numbers),
        }
    }

    fn numbers_of_whole(
        &self,
        column: &dyn Array,
        book: &mut Book,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Unplaced> {
        let values = whole(column).ok_or_else(|| other_type(column))?;
        let mut last: Option<(i64, i64, u32)> = None;
        for (row, value) in values.iter().enumerate() {
            let number = match last {
                _ if column.is_null(row) => book.number(&self.null())?,
                Some((from, to, number)) if (from..to).contains(value) => number,
                _ => {
                    let (slot, from, to) = self.span(*value).map_err(|what| Unplaced::Value(row, what))?;
                    let number = book.number(&Slot::Number(slot))?;
                    last = Some((from, to, number));
                    number
                }
            };
            numbers.push(number);
        }
        Ok(())
    }

    fn numbers_of_bytes(
        &self,
        column: &dyn Array,
        book: &mut Book,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Unplaced> {
        let values = ByteStrings::bind(column).ok_or_else(|| other_type(column))?;
        let mut last: Option<(&[u8], u32)> = None;
        for row in 0..column.len() {
            let bytes = values.value(row);
            let number = match last {
                _ if column.is_null(row) => book.number(&self.null())?,
                Some((same, number)) if same == bytes => number,
                _ => {
                    let strip = matches!(self.values, ValueKind::Text { strip: true });
                    let text = matches!(self.values, ValueKind::Text { .. });
                    let number = match text && bytes.contains(&0) {
                        true if strip => {
                            let stripped: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
                            book.number(&self.slot_of_bytes(&stripped))?
                        }
                        true => return Err(Unplaced::Value(row, "the text contains 0x00".to_owned())),
                        false if matches!(self.scheme, Scheme::Hash(_)) => {
                            book.number(&self.slot_of_bytes(bytes))?
                        }
                        false => book.number_of_bytes(bytes)?,
                    };
                    last = Some((bytes, number));
                    number
                }
            };
            numbers.push(number);
        }
        Ok(())
    }

    /// The suffix of a partition's name, if its value can be part of a name.
    pub(crate) fn suffix(&self, slot: &Slot) -> Option<String> {
        const MAX_LENGTH: usize = 30;
        let plain = |text: String| {
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            (plain && !text.is_empty() && text.len() <= MAX_LENGTH).then_some(text)
        };
        match (self.values, slot) {
            (_, Slot::Number(remainder)) if matches!(self.scheme, Scheme::Hash(_)) => {
                Some(remainder.to_string())
            }
            (ValueKind::Moments { .. }, Slot::Null) => Some("default".to_owned()),
            (_, Slot::Null) => Some("null".to_owned()),
            (ValueKind::Moments { .. }, Slot::Number(number)) => {
                let hour = period(self.scheme, i64::try_from(*number).ok()?)?.first_hour;
                let first = format!("{}-{:02}", date(hour.div_euclid(24)), hour.rem_euclid(24));
                let parts = match self.scheme {
                    Scheme::Hour => 4,
                    Scheme::Year => 1,
                    Scheme::Month => 2,
                    _ => 3,
                };
                Some(first.split('-').take(parts).collect::<Vec<_>>().join("_"))
            }
            (ValueKind::Days, Slot::Number(_)) => plain(self.value(slot).replace('-', "_")),
            _ => plain(self.value(slot)),
        }
    }

    /// A list's value in the server's notation.
    fn value(&self, slot: &Slot) -> String {
        match (self.values, slot) {
            (ValueKind::Truth, Slot::Number(value)) => (*value != 0).to_string(),
            (ValueKind::Days, Slot::Number(day)) => i64::try_from(*day).map(date).unwrap_or_default(),
            (_, Slot::Number(value)) => value.to_string(),
            (ValueKind::Uuids, Slot::Bytes(bytes)) => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            (_, Slot::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            (_, Slot::Null) => String::new(),
        }
    }

    /// Whether the server writes the bounds of a list over a column of this type as [`Self::bound`] does. Of
    /// `numeric(10,2)` it writes other digits, of `char(5)` blanks.
    pub(crate) fn is_written_alike(&self, of: Option<&PgType>) -> bool {
        matches!(
            (self.values, of),
            (ValueKind::Moments { .. }, _)
                | (ValueKind::Whole { .. }, Some(PgType::Int2 | PgType::Int4 | PgType::Int8))
                | (ValueKind::Whole { .. }, Some(PgType::Numeric(Some((_, 0)))))
                | (ValueKind::Truth, Some(PgType::Bool))
                | (ValueKind::Days, Some(PgType::Date))
                | (ValueKind::Text { .. }, Some(PgType::Text | PgType::Varchar(_) | PgType::Enum))
        )
    }

    /// Whether the server writes a value as [`Self::bound`] does: it escapes quotes and backslashes in its own way, may
    /// cut blanks off, and marks years before the first.
    pub(crate) fn is_plain(&self, slot: &Slot) -> bool {
        match (self.values, slot) {
            (ValueKind::Text { .. }, Slot::Bytes(text)) => {
                !text.iter().any(|byte| matches!(byte, b'\'' | b'\\')) && text.last() != Some(&b' ')
            }
            (ValueKind::Days, Slot::Number(_)) => self.value(slot).len() == "2024-01-31".len(),
            _ => true,
        }
    }

    /// The first value of a period and the first one after it, as literals that mean the same in every
    /// session.
    fn ends(&self, number: i128) -> (String, String) {
        let found = i64::try_from(number).ok().and_then(|number| period(self.scheme, number));
        let literal = |hour: i64| {
            let (day, hour) = (date(hour.div_euclid(24)), hour.rem_euclid(24));
            match self.values {
                ValueKind::Moments { time: true, zone: true, .. } => format!("'{day} {hour:02}:00:00+00'"),
                ValueKind::Moments { time: true, .. } => format!("'{day} {hour:02}:00:00'"),
                _ => format!("'{day}'"),
            }
        };
        found.map_or_else(Default::default, |found| (literal(found.first_hour), literal(found.end_hour)))
    }

    /// `FOR VALUES ...` or `DEFAULT`: the bound of a slot's partition.
    pub(crate) fn bound(&self, slot: &Slot) -> String {
        if let (Scheme::Hash(modulus), Slot::Number(remainder)) = (self.scheme, slot) {
            return format!("FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})");
        }
        match (self.values, slot) {
            (ValueKind::Moments { .. }, Slot::Number(number)) => {
                let (from, to) = self.ends(*number);
                format!("FOR VALUES FROM ({from}) TO ({to})")
            }
            (ValueKind::Moments { .. }, _) => "DEFAULT".to_owned(),
            (_, Slot::Null) => "FOR VALUES IN (NULL)".to_owned(),
            _ => format!("FOR VALUES IN ({})", literal(&self.value(slot))),
        }
    }

    /// The condition that rows of a slot satisfy, which proves the bound to the server. `parent` is the OID
    /// of the partitioned table.
    pub(crate) fn check(&self, slot: &Slot, column: &str, parent: u32) -> String {
        if let (Scheme::Hash(modulus), Slot::Number(remainder)) = (self.scheme, slot) {
            return format!("satisfies_hash_partition({parent}::oid, {modulus}, {remainder}, {column})");
        }
        match (self.values, slot) {
            (_, Slot::Null) => format!("{column} IS NULL"),
            (ValueKind::Moments { .. }, Slot::Number(number)) => {
                let (from, to) = self.ends(*number);
                format!("{column} IS NOT NULL AND {column} >= {from} AND {column} < {to}")
            }
            _ => format!("{column} IS NOT NULL AND {column} = {}", literal(&self.value(slot))),
        }
    }
}

fn other_type(column: &dyn Array) -> Unplaced {
    Unplaced::Value(0, format!("the column is {}, but had another type before", column.data_type()))
}

/// A column's values as integers; unsigned 64-bit ones are reinterpreted.
fn whole(column: &dyn Array) -> Option<Arc<[i64]>> {
    if let Some(truth) = column.as_boolean_opt() {
        return Some(truth.values().iter().map(i64::from).collect());
    }
    let integers = Integers::bind(column)?;
    Some((0..column.len()).map(|row| integers.get(row)).collect())
}

/// Slots and their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    numbers: HashMap<Slot, u32>,
    bytes: HashMap<Vec<u8>, u32>,
    /// In the order of their numbers.
    pub slots: Vec<Slot>,
    most: usize,
}

impl Book {
    /// An empty book for at most `most` slots.
    pub(crate) fn of_at_most(most: usize) -> Self {
        Self { numbers: HashMap::new(), bytes: HashMap::new(), slots: Vec::new(), most }
    }

    /// A book with these slots, numbered in this order, for at most `most` slots.
    pub(crate) fn beginning_with(slots: impl IntoIterator<Item = Slot>, most: usize) -> Self {
        let mut book = Self::of_at_most(usize::MAX);
        for slot in slots {
            // It has no limit yet.
            let _ = book.number(&slot);
        }
        book.most = most;
        book
    }

    pub(crate) fn number(&mut self, slot: &Slot) -> Result<u32, Unplaced> {
        if let Slot::Bytes(bytes) = slot {
            return self.number_of_bytes(bytes);
        }
        match self.numbers.get(slot) {
            Some(number) => Ok(*number),
            None => {
                let number = self.add(slot.clone())?;
                self.numbers.insert(slot.clone(), number);
                Ok(number)
            }
        }
    }

    fn number_of_bytes(&mut self, bytes: &[u8]) -> Result<u32, Unplaced> {
        match self.bytes.get(bytes) {
            Some(number) => Ok(*number),
            None => {
                let number = self.add(Slot::Bytes(bytes.to_vec()))?;
                self.bytes.insert(bytes.to_vec(), number);
                Ok(number)
            }
        }
    }

    fn add(&mut self, slot: Slot) -> Result<u32, Unplaced> {
        if self.slots.len() >= self.most {
            return Err(Unplaced::TooMany);
        }
        let number = u32::try_from(self.slots.len()).map_err(|_| Unplaced::TooMany)?;
        self.slots.push(slot);
        Ok(number)
    }
}
