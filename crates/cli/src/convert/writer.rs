//! Writes batches in the format of the output.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression as Codec, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use sawmill_generator::Compression;
use sawmill_profile::Phase;
use sawmill_store::WholeFile;

use super::ConvertArgs;
use crate::r#gen::format::Format;
use crate::r#gen::formats::batch_writer::{BatchWriter, Out};
use crate::r#gen::formats::text_form::NoText;

/// A Parquet file that counts its bytes. Unlike other outputs it moves between threads, as its writer asks
/// for.
pub(super) struct ParquetFile<'w> {
    pub file: WholeFile,
    pub bytes: u64,
    pub phase: &'w Phase,
}

impl Write for ParquetFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        self.phase.add_bytes(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns a writer of Parquet.
pub(super) fn parquet_writer<'w>(
    args: &ConvertArgs,
    schema: &SchemaRef,
    file: ParquetFile<'w>,
) -> Result<ArrowWriter<ParquetFile<'w>>, NoText> {
    let properties = properties(args)?.build();
    ArrowWriter::try_new(file, with_types(schema, without_views), Some(properties)).map_err(of_parquet)
}

/// How Parquet is written.
pub(super) fn properties(args: &ConvertArgs) -> Result<WriterPropertiesBuilder, NoText> {
    let rows = args.row_group_rows.and_then(|rows| usize::try_from(rows).ok());
    Ok(WriterProperties::builder()
        .set_compression(codec(args.compression).map_err(of_parquet)?)
        .set_max_row_group_row_count(Some(rows.unwrap_or(131_072).max(1))))
}

/// Returns a writer of CSV or NDJSON.
pub(super) fn text_writer<'a, 'w>(
    args: &ConvertArgs,
    format: Format,
    schema: &SchemaRef,
    out: &'a mut Out<'w>,
) -> Result<BatchWriter<'a, 'w>, NoText> {
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

fn codec(compression: Compression) -> Result<Codec, ParquetError> {
    Ok(match compression {
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::Zstd(level) => Codec::ZSTD(ZstdLevel::try_new(level)?),
        Compression::Gzip => Codec::GZIP(GzipLevel::default()),
        Compression::Brotli => Codec::BROTLI(BrotliLevel::default()),
        _ => Codec::UNCOMPRESSED,
    })
}

/// Text and bytes in the types that all readers of Arrow schemas know.
pub(super) fn without_views(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
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
