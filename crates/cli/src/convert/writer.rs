//! Writes batches in the format of the output.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use parquet::errors::ParquetError;

use super::ConvertArgs;
use crate::r#gen::format::Format;
use crate::r#gen::formats::batch_writer::BatchWriter;
use crate::r#gen::formats::text_form::NoText;

/// Returns a writer of CSV or NDJSON.
pub(super) fn text_writer<W: Write>(
    args: &ConvertArgs,
    format: Format,
    schema: &SchemaRef,
    out: W,
) -> Result<BatchWriter<W>, NoText> {
    let null = args.csv_null.as_deref().unwrap_or_default();
    Ok(BatchWriter::new((format, false, null), &with_types(schema, plain_type), out)?)
}

pub(super) fn of_parquet(error: ParquetError) -> NoText {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => NoText::Arrow(ArrowError::IoError(error.to_string(), *error)),
            Err(error) => NoText::Arrow(ArrowError::ExternalError(error)),
        },
        error => NoText::Arrow(ArrowError::ExternalError(Box::new(error))),
    }
}

/// Text and bytes in the types that all readers of Arrow schemas know, within nested types, too.
pub(super) fn without_views(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(field_without_views(item)),
        DataType::LargeList(item) => DataType::LargeList(field_without_views(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field_without_views(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_without_views).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field_without_views(entries), *sorted),
        other => other.clone(),
    }
}

fn field_without_views(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(without_views(field.data_type())))
}

/// Text as the writers of text know it: not as views, and without dictionaries.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::Dictionary(_, values) => plain_type(values),
        other => other.clone(),
    }
}

pub(super) fn with_types(schema: &Schema, wanted: fn(&DataType) -> DataType) -> SchemaRef {
    let field = |field: &Arc<Field>| field.as_ref().clone().with_data_type(wanted(field.data_type()));
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Returns the batch with columns of the wanted types.
pub(super) fn cast(
    batch: &RecordBatch,
    wanted: fn(&DataType) -> DataType,
) -> Result<RecordBatch, ArrowError> {
    let column = |array: &ArrayRef| match wanted(array.data_type()) {
        wanted if wanted == *array.data_type() => Ok(Arc::clone(array)),
        wanted => arrow_cast::cast(array, &wanted),
    };
    let columns = batch.columns().iter().map(column).collect::<Result<_, _>>()?;
    RecordBatch::try_new(with_types(batch.schema_ref(), wanted), columns)
}
