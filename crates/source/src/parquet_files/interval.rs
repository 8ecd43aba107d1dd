//! Parquet's INTERVAL: 12 bytes of months, days and milliseconds, each an unsigned little-endian 32-bit
//! number (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#interval>).
//!
//! The `parquet` crate reads this column as one of Arrow's interval types, but each of them lacks months or
//! days. So this module gives its reader a schema in which they are plain bytes:
//!
//! ```text
//! schema of a file ─ [as_bytes] ─▶ reader ─▶ 12 bytes, in fields with a mark ─▶ encoders, which read the three parts
//!                                                                         └─ `annotations` ─▶ writer of Parquet
//! ```

#[cfg(feature = "generated")]
use std::convert::Infallible;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
#[cfg(feature = "generated")]
use arrow_schema::{IntervalUnit, Schema};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::basic::ConvertedType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::SchemaDescriptor;

#[cfg(feature = "generated")]
use crate::columns::leaves::with_leaves;
use crate::parquet_files::annotations::{Annotation, annotated};
use crate::parquet_files::guarded::guarded;
use crate::parquet_files::schema::EXTENSION_NAME;
#[cfg(feature = "generated")]
use crate::parquet_files::schema::marked;

/// Extension name of 12-byte binary that contains intervals.
pub(crate) const INTERVAL_EXTENSION: &str = "sawmill.interval";
/// The Arrow type in which the reader delivers intervals.
pub(crate) const INTERVAL_BYTES: DataType = DataType::FixedSizeBinary(12);

/// Whether a field, or its dictionary, contains such bytes.
pub(crate) fn is_interval(field: &Field) -> bool {
    let value = match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    *value == INTERVAL_BYTES && is_marked(field)
}

/// Whether a field is marked as an interval, whatever type it was read as.
pub(crate) fn is_marked(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == INTERVAL_EXTENSION)
}

/// Returns the metadata of a file whose intervals are read as their 12 bytes, unless an Arrow schema of another writer
/// within the file says which of the three parts are used: the `parquet` crate drops the months of all others.
///
/// # Errors
/// The crate refuses the schema.
pub fn intervals_as_bytes(metadata: &Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>, ParquetError> {
    let file = metadata.file_metadata();
    let pairs = file.key_value_metadata();
    if pairs.is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY)) {
        let embedded = guarded(|| parquet_to_arrow_schema(file.schema_descr(), pairs));
        if !embedded.is_ok_and(|schema| schema.flattened_fields().into_iter().any(is_marked)) {
            return Ok(Arc::clone(metadata));
        }
    }
    let columns = file.schema_descr().columns().iter().enumerate();
    let leaves = columns.filter(|(_, column)| column.converted_type() == ConvertedType::INTERVAL);
    as_bytes(metadata, &leaves.map(|(leaf, _)| leaf).collect::<Vec<_>>())
}

/// Returns the metadata of a file with these leaf columns as plain bytes, without their annotation.
pub(crate) fn as_bytes(
    metadata: &Arc<ParquetMetaData>,
    leaves: &[usize],
) -> Result<Arc<ParquetMetaData>, ParquetError> {
    if leaves.is_empty() {
        return Ok(Arc::clone(metadata));
    }
    let plain: Vec<_> = leaves.iter().map(|leaf| (*leaf, Annotation::NONE)).collect();
    let schema = annotated(metadata.file_metadata().schema_descr(), &plain)?;
    Ok(with_schema(metadata, schema))
}

/// Returns the metadata of a file with another schema of the same leaves.
pub(super) fn with_schema(metadata: &ParquetMetaData, schema: SchemaDescriptor) -> Arc<ParquetMetaData> {
    let file = metadata.file_metadata();
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(schema),
        file.column_orders().cloned(),
    );
    let made = ParquetMetaData::new(file, metadata.row_groups().to_vec()).into_builder();
    let made = made.set_column_index(metadata.column_index().cloned());
    Arc::new(made.set_offset_index(metadata.offset_index().cloned()).build())
}

/// Returns the schema to embed in the footer of a Parquet file with these columns. The Arrow interval that holds
/// all three parts is one that the `parquet` crate cannot read, so intervals become those that it reads from files
/// without an Arrow schema, with the mark by which `ParquetFiles` reads all three.
#[cfg(feature = "generated")]
pub(crate) fn embedded_schema(schema: &Schema) -> Schema {
    let Ok(fields) = with_leaves(schema.fields(), &mut |field| {
        Ok::<_, Infallible>(match field.data_type() {
            DataType::Interval(_) => {
                let days = DataType::Interval(IntervalUnit::DayTime);
                marked(&field.as_ref().clone().with_data_type(days), EXTENSION_NAME, INTERVAL_EXTENSION)
            }
            _ => Arc::clone(field),
        })
    });
    Schema::new(fields)
}
