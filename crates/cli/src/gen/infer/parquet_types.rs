//! Marks Arrow fields whose Parquet type Arrow cannot express, such as ENUM and INT96.

use std::slice::Iter;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor};
use sawmill_generator::PARQUET_TYPE;

/// The fields of `schema`, marked with their types in the file.
pub(super) fn marked(schema: &SchemaRef, parquet: &SchemaDescriptor) -> SchemaRef {
    let mut leaves = parquet.columns().iter();
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| of_field(field, &mut leaves)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The leaves of Arrow's types have the order of the file's columns.
fn of_field(field: &FieldRef, leaves: &mut Iter<'_, ColumnDescPtr>) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| of_field(field, leaves)).collect())
        }
        DataType::List(element) => DataType::List(of_field(element, leaves)),
        DataType::LargeList(element) => DataType::LargeList(of_field(element, leaves)),
        DataType::ListView(element) => DataType::ListView(of_field(element, leaves)),
        DataType::LargeListView(element) => DataType::LargeListView(of_field(element, leaves)),
        DataType::FixedSizeList(element, n) => DataType::FixedSizeList(of_field(element, leaves), *n),
        DataType::Map(entries, sorted) => DataType::Map(of_field(entries, leaves), *sorted),
        _ => {
            let Some(name) = leaves.next().and_then(|leaf| type_name(leaf)) else { return field.clone() };
            let mut metadata = field.metadata().clone();
            metadata.insert(PARQUET_TYPE.to_owned(), name.to_owned());
            return Arc::new(field.as_ref().clone().with_metadata(metadata));
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// The name of a type that Arrow's does not say.
fn type_name(column: &ColumnDescriptor) -> Option<&'static str> {
    match (column.physical_type(), column.logical_type_ref(), column.converted_type()) {
        (Type::INT96, ..) => Some("INT96"),
        (_, Some(LogicalType::Enum), _) | (_, None, ConvertedType::ENUM) => Some("ENUM"),
        (_, Some(LogicalType::Json), _) | (_, None, ConvertedType::JSON) => Some("JSON"),
        (_, Some(LogicalType::Bson), _) | (_, None, ConvertedType::BSON) => Some("BSON"),
        (_, Some(LogicalType::Uuid), _) => Some("UUID"),
        (_, Some(LogicalType::Unknown), _) => Some("UNKNOWN"),
        (_, Some(LogicalType::Geometry { .. }), _) => Some("GEOMETRY"),
        (_, Some(LogicalType::Geography { .. }), _) => Some("GEOGRAPHY"),
        (_, Some(LogicalType::Time(time)), _) if time.is_adjusted_to_u_t_c => Some("TIME UTC"),
        _ => None,
    }
}
