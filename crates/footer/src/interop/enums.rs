//! ENUM columns in Arrow: text, as in other readers.

use std::sync::Arc;

use super::arrow_schema::{DataType, FieldRef, Fields, Schema};
use super::parquet::basic::{ConvertedType, LogicalType};
use super::parquet::schema::types::SchemaDescriptor;

/// The Arrow schema that the `parquet` crate 59 derives, with text in place of the bytes that it makes of ENUM
/// columns; `None` if there are none. Pass it to `ArrowReaderOptions::with_schema`.
pub fn enums_as_text_59(arrow: &Schema, parquet: &SchemaDescriptor) -> Option<Schema> {
    let mut leaf = 0;
    let fields: Fields = arrow.fields().iter().map(|field| of_field(field, parquet, &mut leaf)).collect();
    (fields != *arrow.fields()).then(|| Schema::new_with_metadata(fields, arrow.metadata().clone()))
}

/// Arrow's fields and Parquet's leaf columns are both in depth-first order.
fn of_field(field: &FieldRef, parquet: &SchemaDescriptor, next: &mut usize) -> FieldRef {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    let mut of = |field: &FieldRef| of_field(field, parquet, next);
    let data_type = match field.data_type() {
        Struct(fields) => Struct(fields.iter().map(of).collect()),
        List(item) => List(of(item)),
        LargeList(item) => LargeList(of(item)),
        FixedSizeList(item, len) => FixedSizeList(of(item), *len),
        Map(entries, sorted) => Map(of(entries), *sorted),
        data_type => {
            let column = (*next < parquet.num_columns()).then(|| parquet.column(*next));
            *next += 1;
            let is_enum = column.is_some_and(|column| {
                column.logical_type_ref() == Some(&LogicalType::Enum)
                    || column.converted_type() == ConvertedType::ENUM
            });
            if !is_enum || *data_type != DataType::Binary {
                return Arc::clone(field);
            }
            DataType::Utf8
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
