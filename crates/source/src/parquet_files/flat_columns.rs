//! Decodes the flat columns of a row group: numbers, dates and times, decimals, text and bytes outside of
//! lists and structs. The `parquet` crate decodes all other columns. It also decodes these if anything about
//! them is unusual or wrong, and then reports the error.
//!
//! ```text
//! column chunk ─▶ pages (the parquet crate) ─▶ PagedColumn ─▶ array ─┐
//! other column chunks ─▶ arrays (the parquet crate) ─────────────────┴▶ batch
//! ```

mod fixed_width;
mod hybrid;
pub(crate) mod inline_view;
mod paged_column;
#[cfg(test)]
mod tests;
mod views;

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader};
use parquet::basic::{Encoding, Type};
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::parquet_files::guarded::{Panicked, guarded};
use fixed_width::{Decimals, Words};
use paged_column::{PagedColumn, Stored};
use views::Views;

/// Something that this module does not decode; the `parquet` crate decodes it or reports the error.
#[derive(Debug)]
pub(crate) struct NotRead;

impl From<ParquetError> for NotRead {
    fn from(_: ParquetError) -> Self {
        Self
    }
}

impl From<Panicked> for NotRead {
    fn from(_: Panicked) -> Self {
        Self
    }
}

/// A flat column.
enum Column {
    Four(PagedColumn<Words<u32>>),
    Eight(PagedColumn<Words<u64>>),
    Decimals(PagedColumn<Decimals>),
    Views(PagedColumn<Views>),
}

/// The columns of a row group that are read, starting at a row.
pub(crate) struct FlatColumns {
    /// The flat columns, in the order of the file.
    schema: SchemaRef,
    /// For each field its flat column; `None` if the `parquet` crate decodes it.
    columns: Vec<Option<Column>>,
    others: Option<ParquetRecordBatchReader>,
    batch_rows: usize,
    left: usize,
}

/// Whether a column chunk is flat and its pages have one of the usual encodings.
fn is_flat(chunk: &ColumnChunkMetaData) -> bool {
    let column = chunk.column_descr();
    #[allow(
        deprecated,
        reason = "old writers name BIT_PACKED for repetition levels, which flat columns do not have"
    )]
    let usual = |encoding| {
        use Encoding::{BIT_PACKED, PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};
        matches!(encoding, PLAIN | RLE | RLE_DICTIONARY | PLAIN_DICTIONARY | BIT_PACKED)
    };
    column.max_rep_level() == 0
        && column.max_def_level() <= 1
        && column.path().parts().len() == 1
        && chunk.encodings().all(usual)
}

impl Column {
    /// Returns the column of this type, if this module decodes values that Parquet stores like that.
    fn new(
        chunk: &ColumnChunkMetaData,
        arrow: &DataType,
        pages: impl FnOnce() -> Result<Box<dyn PageReader>, NotRead>,
    ) -> Result<Option<Self>, NotRead> {
        use DataType::{
            BinaryView, Date32, Decimal128, Float32, Float64, Int32, Int64, Time32, Time64, Timestamp,
            UInt32, UInt64, Utf8View,
        };
        if !is_flat(chunk) {
            return Ok(None);
        }
        let optional = chunk.column_descr().max_def_level() > 0;
        fn column<S: Stored>(
            pages: Box<dyn PageReader>,
            optional: bool,
            stored: S,
            kind: impl FnOnce(PagedColumn<S>) -> Column,
        ) -> Option<Column> {
            Some(kind(PagedColumn::new(pages, optional, stored)))
        }
        Ok(match (chunk.column_type(), arrow) {
            (
                Type::INT32 | Type::FLOAT,
                Int32 | UInt32 | Float32 | Date32 | Time32(TimeUnit::Millisecond),
            ) => column(pages()?, optional, Words::new(), Self::Four),
            (Type::INT64 | Type::DOUBLE, Int64 | UInt64 | Float64 | Time64(_)) => {
                column(pages()?, optional, Words::new(), Self::Eight)
            }
            (Type::INT64, Timestamp(unit, _)) if *unit != TimeUnit::Second => {
                column(pages()?, optional, Words::new(), Self::Eight)
            }
            (Type::INT32, Decimal128(..)) => column(pages()?, optional, Decimals::Int32, Self::Decimals),
            (Type::INT64, Decimal128(..)) => column(pages()?, optional, Decimals::Int64, Self::Decimals),
            (Type::FIXED_LEN_BYTE_ARRAY, Decimal128(..)) => {
                let width = usize::try_from(chunk.column_descr().type_length()).unwrap_or(0);
                if !(1..=16).contains(&width) {
                    return Ok(None);
                }
                column(pages()?, optional, Decimals::Bytes(width), Self::Decimals)
            }
            (Type::BYTE_ARRAY, Utf8View) => column(pages()?, optional, Views::new(true), Self::Views),
            (Type::BYTE_ARRAY, BinaryView) => column(pages()?, optional, Views::new(false), Self::Views),
            _ => None,
        })
    }

    fn skip(&mut self, rows: usize) -> Result<(), NotRead> {
        match self {
            Self::Four(column) => column.skip(rows),
            Self::Eight(column) => column.skip(rows),
            Self::Decimals(column) => column.skip(rows),
            Self::Views(column) => column.skip(rows),
        }
    }

    /// Reads the next rows.
    fn read(&mut self, rows: usize, arrow: &DataType) -> Result<ArrayRef, NotRead> {
        let (values, nulls) = match self {
            Self::Four(column) => column.read(rows)?,
            Self::Eight(column) => column.read(rows)?,
            Self::Decimals(column) => column.read(rows)?,
            Self::Views(column) => {
                let (views, nulls) = column.read(rows)?;
                return Ok(column.stored.array(views, rows, nulls));
            }
        };
        array(arrow, rows, values, nulls)
    }
}

impl FlatColumns {
    /// Opens the columns of a row group at `places` among the fields of the file, which have the types of
    /// `schema`, starting at a row. `others` returns a reader of the other columns from there on, in their
    /// order; it is called only if there are any.
    ///
    /// # Errors
    /// No column can be decoded by this module, or one is malformed.
    pub(crate) fn open(
        file: impl ChunkReader + 'static,
        metadata: &ArrowReaderMetadata,
        row_group: usize,
        places: &[usize],
        from: u64,
        batch_rows: usize,
        others: impl FnOnce(Vec<usize>) -> Option<ParquetRecordBatchReader>,
    ) -> Result<Self, NotRead> {
        let parquet = metadata.metadata();
        let group = parquet.row_groups().get(row_group).ok_or(NotRead)?;
        let schema = metadata.schema().project(places).map_err(|_| NotRead)?;
        let rows = usize::try_from(group.num_rows()).map_err(|_| NotRead)?;
        let from = usize::try_from(from).ok().filter(|from| *from <= rows).ok_or(NotRead)?;
        let roots = parquet.file_metadata().schema_descr();
        let leaf_of =
            |place: usize| (0..roots.num_columns()).find(|leaf| roots.get_column_root_idx(*leaf) == place);
        let file = Arc::new(file);
        let (mut columns, mut apart) = (Vec::with_capacity(places.len()), Vec::new());
        for (place, field) in places.iter().zip(schema.fields()) {
            let leaf = leaf_of(*place).ok_or(NotRead)?;
            let chunk = group.columns().get(leaf).ok_or(NotRead)?;
            let pages = || -> Result<Box<dyn PageReader>, NotRead> {
                let index = parquet.offset_index().and_then(|index| index.get(row_group)?.get(leaf));
                let places = index.map(|index| index.page_locations().clone());
                let places = places.filter(|places| !places.is_empty());
                Ok(Box::new(SerializedPageReader::new(Arc::clone(&file), chunk, rows, places)?))
            };
            let column = guarded(|| {
                let mut column = Column::new(chunk, field.data_type(), pages)?;
                column.as_mut().map_or(Ok(()), |column| column.skip(from))?;
                Ok::<_, NotRead>(column)
            })?;
            if column.is_none() {
                apart.push(*place);
            }
            columns.push(column);
        }
        let others = match apart.as_slice() {
            [] => None,
            all if all.len() == places.len() => return Err(NotRead),
            _ => Some(guarded(|| others(apart).ok_or(NotRead))?),
        };
        Ok(Self { schema: Arc::new(schema), columns, others, batch_rows, left: rows - from })
    }

    /// Returns the next batch; `None` after the last row.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, NotRead> {
        let rows = self.left.min(self.batch_rows);
        if rows == 0 {
            return Ok(None);
        }
        self.left -= rows;
        guarded(|| self.batch(rows)).map(Some)
    }

    fn batch(&mut self, rows: usize) -> Result<RecordBatch, NotRead> {
        let others = match &mut self.others {
            None => None,
            Some(others) => Some(others.next().ok_or(NotRead)?.map_err(|_| NotRead)?),
        };
        let mut others = others.iter().flat_map(RecordBatch::columns);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            arrays.push(match column {
                None => Arc::clone(others.next().ok_or(NotRead)?),
                Some(column) => column.read(rows, field.data_type())?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options).map_err(|_| NotRead)
    }
}

fn array(
    arrow: &DataType,
    rows: usize,
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, NotRead> {
    macro_rules! of {
        ($t:ty) => {{
            let values = ScalarBuffer::new(values, 0, rows);
            let array = PrimitiveArray::<$t>::try_new(values, nulls).map_err(|_| NotRead)?;
            Arc::new(array.with_data_type(arrow.clone())) as ArrayRef
        }};
    }
    Ok(match arrow {
        DataType::Int32 => of!(Int32Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::Float32 => of!(Float32Type),
        DataType::Date32 => of!(Date32Type),
        DataType::Time32(TimeUnit::Millisecond) => of!(Time32MillisecondType),
        DataType::Int64 => of!(Int64Type),
        DataType::Decimal128(..) => of!(Decimal128Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Float64 => of!(Float64Type),
        DataType::Time64(TimeUnit::Microsecond) => of!(Time64MicrosecondType),
        DataType::Time64(_) => of!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => of!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(TimestampNanosecondType),
        _ => return Err(NotRead),
    })
}
