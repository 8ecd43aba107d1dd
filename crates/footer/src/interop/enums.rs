//! Columns in Arrow as their annotations in Parquet say: ENUM is text, as in other readers; UUID and JSON have Arrow's
//! extension types, and bytes that are an INTERVAL have one of ours.

use std::sync::Arc;

use super::arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use super::arrow_schema::{DataType, FieldRef, Fields, Schema};
use super::parquet::basic::{ConvertedType, LogicalType};
use super::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

/// The Arrow schema that the `parquet` crate 59 derives, with text in place of the bytes that it makes of ENUM
/// columns; `None` if there are none. Pass it to `ArrowReaderOptions::with_schema`.
pub fn enums_as_text_59(arrow: &Schema, parquet: &SchemaDescriptor) -> Option<Schema> {
    changed(arrow, parquet, as_text)
}

/// Like [`enums_as_text_59`], with the names of Arrow's extension types for UUID and JSON, at any depth: an Arrow
/// schema within the file would have them; and with `sawmill.interval` for INTERVAL that is read as its 12 bytes.
pub fn annotated_59(arrow: &Schema, parquet: &SchemaDescriptor) -> Option<Schema> {
    changed(arrow, parquet, |field, column| as_text(field, column).or_else(|| as_extension(field, column)))
}

fn as_text(field: &FieldRef, column: &ColumnDescriptor) -> Option<FieldRef> {
    let is_enum = column.logical_type_ref() == Some(&LogicalType::Enum)
        || column.converted_type() == ConvertedType::ENUM;
    (is_enum && *field.data_type() == DataType::Binary)
        .then(|| Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)))
}

fn as_extension(field: &FieldRef, column: &ColumnDescriptor) -> Option<FieldRef> {
    let name = match column.logical_type_ref() {
        Some(LogicalType::Uuid) => "arrow.uuid",
        Some(LogicalType::Json) => "arrow.json",
        _ if column.converted_type() == ConvertedType::JSON => "arrow.json",
        _ if column.converted_type() == ConvertedType::INTERVAL
            && *field.data_type() == DataType::FixedSizeBinary(12) =>
        {
            "sawmill.interval"
        }
        _ => return None,
    };
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
    Some(Arc::new(field.as_ref().clone().with_metadata(metadata)))
}

/// The schema with its leaves replaced by the ones that `leaf` returns; `None` if it returns none.
fn changed(
    arrow: &Schema,
    parquet: &SchemaDescriptor,
    leaf: impl Fn(&FieldRef, &ColumnDescriptor) -> Option<FieldRef>,
) -> Option<Schema> {
    let mut next = 0;
    let fields: Fields =
        arrow.fields().iter().map(|field| of_field(field, parquet, &mut next, &leaf)).collect();
    (fields != *arrow.fields()).then(|| Schema::new_with_metadata(fields, arrow.metadata().clone()))
}

/// Arrow's fields and Parquet's leaf columns are both in depth-first order.
fn of_field(
    field: &FieldRef,
    parquet: &SchemaDescriptor,
    next: &mut usize,
    leaf: &impl Fn(&FieldRef, &ColumnDescriptor) -> Option<FieldRef>,
) -> FieldRef {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    let mut of = |field: &FieldRef| of_field(field, parquet, next, leaf);
    let data_type = match field.data_type() {
        Struct(fields) => Struct(fields.iter().map(of).collect()),
        List(item) => List(of(item)),
        LargeList(item) => LargeList(of(item)),
        ListView(item) => ListView(of(item)),
        LargeListView(item) => LargeListView(of(item)),
        FixedSizeList(item, len) => FixedSizeList(of(item), *len),
        Map(entries, sorted) => Map(of(entries), *sorted),
        _ => {
            let column = (*next < parquet.num_columns()).then(|| parquet.column(*next));
            *next += 1;
            return column.and_then(|column| leaf(field, &column)).unwrap_or_else(|| Arc::clone(field));
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
