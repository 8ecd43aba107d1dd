//! Appends the values of Arrow batches to the pages.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::DataType;

use crate::benchmark::columns::Column;
use crate::benchmark::rows::ChunkRows;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::shred::block::LeafBuffer;
use crate::shred::value_buffer::{ByteStrings, ValueBuffer};
use crate::tpcds::Batches;

pub(crate) struct Rows {
    batches: Batches,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
    appenders: Vec<Appender>,
}

impl Rows {
    pub(crate) fn new(batches: Batches, appenders: Vec<Appender>) -> Self {
        Rows { batches, batch: None, at: 0, appenders }
    }

    /// Passes over up to `most` rows of one batch; returns these.
    fn take(&mut self, most: usize) -> Range<usize> {
        if self.batch.as_ref().is_none_or(|batch| batch.num_rows() == self.at) {
            // Dropped first, because generators reuse the memory of a dropped batch.
            self.batch = None;
            // A batch is an error only if a column without nulls has one, which `tpcdsgen-arrow` tests.
            self.batch = self.batches.next().and_then(Result::ok);
            self.at = 0;
        }
        let start = self.at;
        self.at += self.batch.as_ref().map_or(0, |batch| (batch.num_rows() - start).min(most));
        start..self.at
    }
}

impl ChunkRows for Rows {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let rows = self.take(most);
        let columns = self.batch.as_ref().map_or(&[][..], RecordBatch::columns);
        for ((column, appender), leaf) in columns.iter().zip(&self.appenders).zip(leaves) {
            appender.append(column, rows.clone(), leaf);
        }
        rows.len()
    }

    fn skip(&mut self, rows: u64) {
        let mut left = rows as usize;
        while left > 0 {
            let passed = self.take(left).len();
            if passed == 0 {
                return;
            }
            left -= passed;
        }
    }
}

/// Appends the values of a column.
#[derive(Clone, Debug)]
pub(crate) struct Appender {
    optional: bool,
    /// The first value of its dictionary, and the last index.
    first: i64,
    last: u32,
}

impl Appender {
    pub(crate) fn new(column: &Column) -> Self {
        let entries = match &column.values {
            ValueSpec::Choice { dictionary, .. } => dictionary.entries.as_slice(),
            _ => &[],
        };
        // Dictionaries are ranges of numbers of up to eight bytes.
        let first = entries.first().map_or(0, |entry| {
            let bytes = entry.iter().rev();
            bytes.fold(0, |number, byte| (number << 8) | i64::from(*byte))
        });
        let last = entries.len().saturating_sub(1) as u32;
        Appender { optional: column.nulls != Nulls::Never, first, last }
    }

    fn append(&self, column: &dyn Array, rows: Range<usize>, leaf: &mut LeafBuffer) {
        let before = leaf.definition.len();
        if self.optional {
            match column.nulls() {
                Some(nulls) => {
                    let there = nulls.inner().slice(rows.start, rows.len());
                    leaf.definition.extend(there.iter().map(u8::from));
                }
                None => leaf.definition.resize(before + rows.len(), 1),
            }
        }
        let levels = &leaf.definition[before..];
        match column.data_type() {
            DataType::Int32 => self.numbers::<Int32Type>(column, rows, levels, &mut leaf.values, i64::from),
            DataType::Int64 => self.numbers::<Int64Type>(column, rows, levels, &mut leaf.values, |v| v),
            DataType::Date32 => self.numbers::<Date32Type>(column, rows, levels, &mut leaf.values, i64::from),
            DataType::Decimal128(..) => {
                self.numbers::<Decimal128Type>(column, rows, levels, &mut leaf.values, |v| v as i64);
            }
            _ => {
                if let ValueBuffer::Bytes(strings) = &mut leaf.values {
                    self.strings(column, rows, levels, strings);
                }
            }
        }
    }

    /// Appends the numbers whose level is 1. The buffer is the one that `ValueBuffer::new` makes for the column.
    fn numbers<T: ArrowPrimitiveType>(
        &self,
        column: &dyn Array,
        rows: Range<usize>,
        levels: &[u8],
        out: &mut ValueBuffer,
        number: impl Fn(T::Native) -> i64,
    ) {
        let values = &column.as_primitive::<T>().values()[rows];
        match out {
            ValueBuffer::Int32(out) => present(values, levels, out, |value| number(value) as i32),
            ValueBuffer::Int64(out) => present(values, levels, out, number),
            ValueBuffer::Indices(out) => {
                let index = |value| number(value) - self.first;
                let last = i64::from(self.last);
                debug_assert!(
                    (values.iter().enumerate())
                        .all(|(i, v)| levels.get(i) == Some(&0) || (0..=last).contains(&index(*v))),
                    "a value is not in the dictionary"
                );
                // Nulls have any number.
                present(values, levels, out, |value| index(value).clamp(0, last) as u32);
            }
            _ => {}
        }
    }

    fn strings(&self, column: &dyn Array, rows: Range<usize>, levels: &[u8], out: &mut ByteStrings) {
        let strings = column.as_string_view();
        for (place, row) in rows.enumerate() {
            if levels.get(place) != Some(&0) {
                out.data.extend_from_slice(strings.value(row).as_bytes());
                out.push_end();
            }
        }
    }
}

/// Appends the values whose level is 1, or all values of a column without levels.
fn present<V: Copy, T: Copy + Default>(
    values: &[V],
    levels: &[u8],
    out: &mut Vec<T>,
    convert: impl Fn(V) -> T,
) {
    if levels.is_empty() {
        out.extend(values.iter().map(|value| convert(*value)));
        return;
    }
    // A value after a null overwrites it.
    let mut at = out.len();
    out.resize(at + values.len(), T::default());
    for (value, level) in values.iter().zip(levels) {
        out[at] = convert(*value);
        at += usize::from(*level);
    }
    out.truncate(at);
}
