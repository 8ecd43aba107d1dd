//! The numbers of filtered rows in their row groups.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::RowNumber;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::units::ROW_IN_GROUP;

/// Returns the file with another column at the end: the number of each row in the file.
pub(super) fn with_row_numbers(file: &ArrowReaderMetadata) -> Result<ArrowReaderMetadata, ParquetError> {
    let numbers = Field::new(ROW_IN_GROUP, DataType::Int64, false).with_extension_type(RowNumber);
    let options = ArrowReaderOptions::new()
        .with_schema(Arc::clone(file.schema()))
        .with_virtual_columns(vec![Arc::new(numbers)])?;
    ArrowReaderMetadata::try_new(Arc::clone(file.metadata()), options)
}

/// Splits that column off a batch, and makes it count from the start of the row group.
pub(super) fn split_off(
    batch: RecordBatch,
    file: &ParquetMetaData,
    row_group: u32,
) -> Result<(RecordBatch, Option<ArrayRef>), ArrowError> {
    let lacking = || ArrowError::SchemaError("rows are not numbered".to_owned());
    let last = batch.num_columns().checked_sub(1).ok_or_else(lacking)?;
    let numbers = batch.column(last).as_primitive_opt::<Int64Type>().ok_or_else(lacking)?;
    let groups = file.row_groups().iter().take(row_group as usize);
    let before: i64 = groups.map(|group| group.num_rows()).sum();
    let in_group: Int64Array = numbers.unary(|row| row - before);
    let batch = batch.project(&(0..last).collect::<Vec<_>>())?;
    Ok((batch, Some(Arc::new(in_group))))
}

/// Returns the batch with the numbers as its last column, if there are any.
pub(super) fn append(batch: RecordBatch, numbers: Option<ArrayRef>) -> Result<RecordBatch, ArrowError> {
    let Some(numbers) = numbers else { return Ok(batch) };
    let mut fields = batch.schema_ref().fields().to_vec();
    fields.push(Arc::new(Field::new(ROW_IN_GROUP, DataType::Int64, false)));
    let mut columns = batch.columns().to_vec();
    columns.push(numbers);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
