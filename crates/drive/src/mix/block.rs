//! Rows of a table, made 1,024 at a time and encoded as PostgreSQL sends and takes them in binary: what COPY,
//! the parameters of a statement and the rows of an answer have in common.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use sawmill_generator::{Dataset, ROW_GROUP_ROWS};
use sawmill_pgcopy::{Buffers, Column, CopyEncoder, PgType, ValueOptions, natural_columns};
use sawmill_source::{Error, Kind, Result};

/// Rows that are made at once.
pub(crate) const BLOCK_ROWS: u64 = 1024;
/// The column with the number of a row.
pub(crate) const NUMBER: &str = "sawmill_row";
/// The column after the number: how many updates of the row have happened.
pub(crate) const VERSION: &str = "sawmill_version";
/// Columns before the dataset's columns.
pub(crate) const OWN_COLUMNS: usize = 2;
/// The most columns of a table, as PostgreSQL has them.
const MAX_COLUMNS: usize = 1600;
/// The most bytes of a block: several of them are in memory for each table.
const MAX_BYTES: usize = 256 << 20;
/// A block that may take more is made by one thread at a time.
const ALONE_BYTES: u64 = 16 << 20;
/// Position of the version in an encoded row: after the number of fields, the number with its length, and a length.
const VERSION_AT: Range<usize> = 18..26;

const _: () = assert!(ROW_GROUP_ROWS.is_multiple_of(BLOCK_ROWS));

/// How the rows of a table are made.
#[derive(Debug)]
pub(crate) struct RowMaker {
    dataset: Arc<Dataset>,
    schema: Arc<Schema>,
    /// The number and the version first, then the columns of the dataset.
    pub columns: Arc<Vec<Column>>,
    seed: u64,
    /// Held while a block of long values is made: together several threads would take too much memory.
    making: Mutex<()>,
}

impl RowMaker {
    pub(crate) fn new(dataset: Arc<Dataset>, seed: u64) -> Result<Self> {
        let inner = dataset.arrow_schema();
        if let Some(field) = inner.fields().get(MAX_COLUMNS - OWN_COLUMNS) {
            let what =
                format!("{} fields, more than a table of {MAX_COLUMNS} columns has", inner.fields().len());
            return Err(Error::new(Kind::Config, what)
                .at(format!("dataset {}, field {}", dataset.name(), field.name()))
                .advise("leave out this one and the next ones"));
        }
        let own = |name| Arc::new(Field::new(name, DataType::Int64, false));
        let mut fields = vec![own(NUMBER), own(VERSION)];
        fields.extend(inner.fields().iter().cloned());
        let schema = Arc::new(Schema::new(fields));
        let columns = natural_columns(&schema, &ValueOptions::default())
            .map_err(|what| Error::new(Kind::Config, what).at(format!("dataset {}", dataset.name())))?;
        Ok(Self { dataset, schema, columns, seed, making: Mutex::default() })
    }

    /// Name and type of each column, the number first.
    pub(crate) fn column_types(&self) -> impl Iterator<Item = (&str, PgType)> {
        self.columns.iter().map(|column| (column.name.as_str(), plain_type(column)))
    }

    /// The type of a column.
    pub(crate) fn type_of(&self, column: usize) -> PgType {
        self.columns.get(column).map_or(PgType::Text, plain_type)
    }

    /// Encodes block `block`: its rows of version 0, or with the `other` values that rows of odd versions have.
    pub(crate) fn block(&self, block: u64, other: bool) -> Result<Block> {
        let first = block * BLOCK_ROWS;
        let seed = self.seed.wrapping_add(u64::from(other).wrapping_mul(0x5851_F42D_4C95_7F2D));
        let place = |what: String| {
            Error::new(Kind::Source, what).at(format!(
                "dataset {}, rows {first} to {}",
                self.dataset.name(),
                first + BLOCK_ROWS - 1
            ))
        };
        let longest = self.dataset.longest_value();
        // Long values are not copied while it grows.
        let room = longest.as_ref().map_or(0, |(_, bytes)| bytes.saturating_mul(BLOCK_ROWS));
        let _turn = (room > ALONE_BYTES).then(|| self.making.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = Vec::with_capacity(room.min(MAX_BYTES as u64) as usize);
        let mut made = Block { first, bytes, ends: Vec::with_capacity(BLOCK_ROWS as usize) };
        let mut is_too_long = false;
        let mut encoder = CopyEncoder::new(Arc::clone(&self.columns), Buffers::new(64 * 1024));
        let mut number = first;
        for batch in self.dataset.batches(first..first + BLOCK_ROWS, seed, BLOCK_ROWS as usize) {
            let batch = batch.map_err(|error| place(error.to_string()))?;
            let rows = batch.num_rows() as u64;
            let numbers: ArrayRef =
                Arc::new(Int64Array::from_iter_values((number..number + rows).map(|number| number as i64)));
            number += rows;
            let versions: ArrayRef = Arc::new(Int64Array::from_value(0, batch.num_rows()));
            let mut columns = vec![numbers, versions];
            columns.extend(batch.columns().iter().cloned());
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
                .map_err(|error| place(error.to_string()))?;
            let mut keep = |bytes: Bytes, _: u64| -> std::result::Result<(), std::convert::Infallible> {
                is_too_long |= made.bytes.len() + bytes.len() > MAX_BYTES;
                if !is_too_long {
                    made.bytes.extend_from_slice(&bytes);
                }
                Ok(())
            };
            encoder.batch(&batch, &mut keep).map_err(|stop| place(stop.to_string()))?;
            encoder.flush(&mut keep).map_err(|stop| place(stop.to_string()))?;
            if is_too_long {
                let (most, each) = (MAX_BYTES >> 20, (MAX_BYTES as u64 / BLOCK_ROWS) >> 10);
                let what = format!("{BLOCK_ROWS} rows take more than {most} MiB, {each} KiB each");
                let advice = match longest {
                    Some((field, bytes)) => {
                        format!("shorten values, first those of field {field} of up to {bytes} bytes")
                    }
                    None => "leave out fields".to_owned(),
                };
                return Err(place(what).advise(advice));
            }
        }
        made.bytes.shrink_to_fit();
        made.find_ends();
        Ok(made)
    }
}

fn plain_type(column: &Column) -> PgType {
    column.column_type.plain().unwrap_or(PgType::Text)
}

/// Encoded rows.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub first: u64,
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<u32>,
}

impl Block {
    fn find_ends(&mut self) {
        let mut at = 0;
        while at < self.bytes.len() {
            let rest = self.bytes.get(at..).unwrap_or_default();
            at += 2 + fields(rest).map(|field| 4 + field.map_or(0, <[u8]>::len)).sum::<usize>();
            self.ends.push(at as u32);
        }
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// The numbers of its rows.
    pub(crate) fn numbers(&self) -> Range<u64> {
        self.first..self.first + self.ends.len() as u64
    }

    /// Some of its rows, copied.
    pub(crate) fn part(&self, numbers: Range<u64>) -> Self {
        let mut part = Self { first: numbers.start, bytes: Vec::new(), ends: Vec::new() };
        part.bytes.reserve_exact(numbers.clone().map(|number| self.row(number).len()).sum());
        for number in numbers {
            part.bytes.extend_from_slice(self.row(number));
            part.ends.push(part.bytes.len() as u32);
        }
        part
    }

    /// A row, as in COPY: its number of fields, then each with its length.
    pub(crate) fn row(&self, number: u64) -> &[u8] {
        let at = number.wrapping_sub(self.first) as usize;
        let Some(end) = self.ends.get(at) else { return &[] };
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start as usize..*end as usize).unwrap_or_default()
    }
}

/// The fields of an encoded row; `None` is NULL. It ends after as many as the row says it has.
pub(crate) fn fields(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let count = row.first_chunk::<2>().map_or(0, |count| i16::from_be_bytes(*count).max(0));
    let mut rest = row.get(2..).unwrap_or_default();
    (0..count).map_while(move |_| {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            return Some(None);
        };
        let (field, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(field))
    })
}

/// The version of an encoded row; `None` if it has none.
pub(crate) fn version_of(row: &[u8]) -> Option<i64> {
    fields(row).nth(1)??.try_into().ok().map(i64::from_be_bytes)
}

/// The row with another version.
pub(crate) fn with_version(row: &[u8], version: i64) -> Vec<u8> {
    let mut row = row.to_vec();
    if let Some(bytes) = row.get_mut(VERSION_AT) {
        bytes.copy_from_slice(&version.to_be_bytes());
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_function_of_its_number() {
        let maker = RowMaker::new(Arc::new(Dataset::built_in("orders").unwrap().unwrap()), 42).unwrap();
        let whole = maker.block(3, false).unwrap();
        assert_eq!(whole.numbers(), 3072..4096);
        let other = maker.block(3, true).unwrap();
        for number in [3072, 4095, 3500] {
            let row = whole.row(number);
            let mut fields = fields(row);
            assert_eq!(fields.next().unwrap().unwrap(), (number as i64).to_be_bytes());
            assert_eq!(fields.count(), maker.columns.len() - 1);
            assert_eq!((version_of(row), version_of(&with_version(row, 7))), (Some(0), Some(7)));
            assert_ne!(other.row(number), row, "an update has other values");
        }
    }
}
