//! Marks Arrow fields whose Parquet type Arrow cannot express, such as ENUM and INT96.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use sawmill_generator::PARQUET_TYPE;
use sawmill_source::with_leaves;

/// The fields of `schema`, marked with their types in the file.
pub(super) fn marked(schema: &SchemaRef, parquet: &SchemaDescriptor) -> SchemaRef {
    let mut leaves = parquet.columns().iter();
    let Ok(fields) = with_leaves(schema.fields(), &mut |field| {
        let Some(name) = leaves.next().and_then(|leaf| type_name(leaf)) else { return Ok(field.clone()) };
        let mut metadata = field.metadata().clone();
        metadata.insert(PARQUET_TYPE.to_owned(), name.to_owned());
        Ok::<_, Infallible>(Arc::new(field.as_ref().clone().with_metadata(metadata)))
    });
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
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
