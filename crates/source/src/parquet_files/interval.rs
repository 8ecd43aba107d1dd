//! Parquet's INTERVAL: 12 bytes of months, days and milliseconds, each an unsigned little-endian 32-bit
//! number (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#interval>).
//!
//! The `parquet` crate reads this column as one of Arrow's interval types, each of which lacks months or
//! days. So this module gives its reader a schema in which they are plain bytes:
//!
//! ```text
//! schema of a file ─ [as_bytes] ─▶ reader ─▶ 12 bytes, in fields with a mark ─▶ encoders, which read the three parts
//!                                                                         └─ rejected rows ─ [as_intervals] ─▶ writer
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
#[cfg(feature = "generated")]
use arrow_schema::{FieldRef, Fields, IntervalUnit};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::ConvertedType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

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

/// Returns the metadata of a file with these leaf columns as plain bytes, without their annotation.
pub(crate) fn as_bytes(
    metadata: &Arc<ParquetMetaData>,
    leaves: &[usize],
) -> Result<Arc<ParquetMetaData>, ParquetError> {
    if leaves.is_empty() {
        return Ok(Arc::clone(metadata));
    }
    let schema = annotated(metadata.file_metadata().schema_descr(), leaves, ConvertedType::NONE)?;
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

/// Returns the Parquet schema for writing a file with these columns, in which marked bytes are INTERVAL
/// again; `None` if no column is marked.
pub fn as_intervals(schema: &Schema) -> Result<Option<SchemaDescriptor>, ParquetError> {
    let mut leaves = Vec::new();
    let mut next = 0;
    for field in schema.fields() {
        marked_leaves(field, &mut next, &mut leaves);
    }
    if leaves.is_empty() {
        return Ok(None);
    }
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    annotated(&plain, &leaves, ConvertedType::INTERVAL).map(Some)
}

/// Returns the schema to embed in the footer of a Parquet file with these columns. The Arrow interval that holds
/// all three parts is one that the `parquet` crate cannot read, so intervals become those that it reads from files
/// without an Arrow schema, with the mark by which `ParquetFiles` reads all three.
#[cfg(feature = "generated")]
pub(crate) fn embedded_schema(schema: &Schema) -> Schema {
    Schema::new(schema.fields().iter().map(embedded_field).collect::<Fields>())
}

#[cfg(feature = "generated")]
fn embedded_field(field: &FieldRef) -> FieldRef {
    use DataType::{FixedSizeList, Interval, List, Map, Struct};
    let embedded = match field.data_type() {
        Interval(_) => {
            let read = field.as_ref().clone().with_data_type(Interval(IntervalUnit::DayTime));
            return marked(&read, EXTENSION_NAME, INTERVAL_EXTENSION);
        }
        Struct(fields) => Struct(fields.iter().map(embedded_field).collect()),
        List(item) => List(embedded_field(item)),
        FixedSizeList(item, size) => FixedSizeList(embedded_field(item), *size),
        Map(entries, sorted) => Map(embedded_field(entries), *sorted),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(embedded))
}

/// Adds the positions of marked fields among the leaves; `next` is the first leaf of this field.
fn marked_leaves(field: &Field, next: &mut usize, leaves: &mut Vec<usize>) {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    match field.data_type() {
        Struct(fields) => fields.iter().for_each(|field| marked_leaves(field, next, leaves)),
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => {
            marked_leaves(item, next, leaves);
        }
        Map(entries, _) => marked_leaves(entries, next, leaves),
        _ => {
            if is_interval(field) {
                leaves.push(*next);
            }
            *next += 1;
        }
    }
}

/// Returns the schema with another annotation of these leaves, given in ascending order.
fn annotated(
    schema: &SchemaDescriptor,
    leaves: &[usize],
    converted: ConvertedType,
) -> Result<SchemaDescriptor, ParquetError> {
    let mut next = 0;
    let root = element(&schema.root_schema_ptr(), leaves, converted, &mut next)?;
    Ok(SchemaDescriptor::new(root))
}

fn element(
    given: &TypePtr,
    leaves: &[usize],
    converted: ConvertedType,
    next: &mut usize,
) -> Result<TypePtr, ParquetError> {
    let info = given.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if given.is_primitive() {
        let leaf = *next;
        *next += 1;
        if leaves.binary_search(&leaf).is_err() {
            return Ok(Arc::clone(given));
        }
        let made = Type::primitive_type_builder(given.name(), given.get_physical_type());
        let made = made.with_repetition(info.repetition()).with_converted_type(converted);
        let length =
            if let Type::PrimitiveType { type_length, .. } = given.as_ref() { *type_length } else { 12 };
        return made.with_length(length).with_id(id).build().map(Arc::new);
    }
    let mut fields = Vec::with_capacity(given.get_fields().len());
    for field in given.get_fields() {
        fields.push(element(field, leaves, converted, next)?);
    }
    let made = Type::group_type_builder(given.name()).with_fields(fields).with_id(id);
    let made =
        made.with_converted_type(info.converted_type()).with_logical_type(info.logical_type_ref().cloned());
    let made = if info.has_repetition() { made.with_repetition(info.repetition()) } else { made };
    made.build().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_bytes_are_written_as_intervals_at_any_depth() {
        let marked = |name: &str| {
            Field::new(name, INTERVAL_BYTES, true)
                .with_metadata([(EXTENSION_NAME.to_owned(), INTERVAL_EXTENSION.to_owned())].into())
        };
        let below = Field::new_struct("s", vec![Field::new("n", DataType::Int32, true), marked("i")], true);
        let schema = Schema::new(vec![marked("a"), below, Field::new("b", INTERVAL_BYTES, true)]);
        let written = as_intervals(&schema).unwrap().unwrap();
        let intervals: Vec<bool> =
            written.columns().iter().map(|leaf| leaf.converted_type() == ConvertedType::INTERVAL).collect();
        assert_eq!(intervals, [true, false, true, false]);
        assert!(as_intervals(&Schema::new(vec![Field::new("n", DataType::Int32, true)])).unwrap().is_none());
    }
}
