//! Annotations of Parquet columns that Arrow has no types for: UUID, JSON, ENUM and INTERVAL. In Arrow schemas they
//! are marks of fields.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::columns::leaves::with_leaves;
use crate::parquet_files::interval::{INTERVAL_BYTES, INTERVAL_EXTENSION};
use crate::parquet_files::mapped::group;
use crate::parquet_files::schema::{ENUM_MARK, EXTENSION_NAME, JSON_EXTENSION, UUID_EXTENSION};

/// An annotation of a leaf column.
#[derive(Clone, Debug)]
pub(super) struct Annotation {
    converted: ConvertedType,
    logical: Option<LogicalType>,
}

impl Annotation {
    pub(super) const NONE: Self = Self { converted: ConvertedType::NONE, logical: None };

    /// Returns the annotation for a field with a mark, `None` for other fields.
    fn new(field: &Field) -> Option<Self> {
        let value = match field.data_type() {
            DataType::Dictionary(_, value) => value,
            other => other,
        };
        let made = |converted, logical| Some(Self { converted, logical });
        match field.metadata().get(EXTENSION_NAME).map(String::as_str) {
            Some(INTERVAL_EXTENSION) if *value == INTERVAL_BYTES => made(ConvertedType::INTERVAL, None),
            Some(UUID_EXTENSION) if *value == DataType::FixedSizeBinary(16) => {
                made(ConvertedType::NONE, Some(LogicalType::Uuid))
            }
            Some(JSON_EXTENSION) if value.is_string() => made(ConvertedType::JSON, Some(LogicalType::Json)),
            _ if value.is_string() && field.metadata().contains_key(ENUM_MARK) => {
                made(ConvertedType::ENUM, Some(LogicalType::Enum))
            }
            _ => None,
        }
    }
}

/// Returns the Parquet schema for writing a file with these columns, in which marked columns are UUID, JSON, ENUM
/// and INTERVAL again; `None` if no column is marked.
///
/// # Errors
/// A column that Parquet has no type for.
pub fn parquet_schema(schema: &Schema) -> Result<Option<SchemaDescriptor>, ParquetError> {
    let (mut leaves, mut next) = (Vec::new(), 0);
    let Ok(_) = with_leaves(schema.fields(), &mut |field| {
        leaves.extend(Annotation::new(field).map(|annotation| (next, annotation)));
        next += 1;
        Ok::<_, Infallible>(Arc::clone(field))
    });
    if leaves.is_empty() {
        return Ok(None);
    }
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    annotated(&plain, &leaves).map(Some)
}

/// Returns the schema with other annotations of these leaves, given in ascending order.
pub(super) fn annotated(
    schema: &SchemaDescriptor,
    leaves: &[(usize, Annotation)],
) -> Result<SchemaDescriptor, ParquetError> {
    let mut next = 0;
    let root = element(&schema.root_schema_ptr(), leaves, &mut next)?;
    Ok(SchemaDescriptor::new(root))
}

fn element(
    given: &TypePtr,
    leaves: &[(usize, Annotation)],
    next: &mut usize,
) -> Result<TypePtr, ParquetError> {
    if let Type::PrimitiveType { type_length, .. } = given.as_ref() {
        let leaf = *next;
        *next += 1;
        let found = leaves.binary_search_by_key(&leaf, |(leaf, _)| *leaf).ok();
        let Some((_, annotation)) = found.and_then(|at| leaves.get(at)) else { return Ok(Arc::clone(given)) };
        let info = given.get_basic_info();
        return Type::primitive_type_builder(given.name(), given.get_physical_type())
            .with_repetition(info.repetition())
            .with_converted_type(annotation.converted)
            .with_logical_type(annotation.logical.clone())
            .with_length(*type_length)
            .with_id(info.has_id().then(|| info.id()))
            .build()
            .map(Arc::new);
    }
    let mut fields = Vec::with_capacity(given.get_fields().len());
    for field in given.get_fields() {
        fields.push(element(field, leaves, next)?);
    }
    group(given, given.name(), fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_columns_are_annotated_at_any_depth() {
        let marked = |name: &str, data_type, key: &str, mark: &str| {
            Field::new(name, data_type, true).with_metadata([(key.to_owned(), mark.to_owned())].into())
        };
        let interval = |name| marked(name, INTERVAL_BYTES, EXTENSION_NAME, INTERVAL_EXTENSION);
        let json = marked("j", DataType::Utf8, EXTENSION_NAME, JSON_EXTENSION);
        let below = vec![Field::new("n", DataType::Int32, true), interval("i"), json];
        let schema = Schema::new(vec![
            interval("a"),
            Field::new_struct("s", below, true),
            Field::new("b", INTERVAL_BYTES, true),
            marked("u", DataType::FixedSizeBinary(16), EXTENSION_NAME, UUID_EXTENSION),
            marked("e", DataType::Utf8, ENUM_MARK, ""),
            marked("not", DataType::Int64, EXTENSION_NAME, UUID_EXTENSION),
        ]);
        let written = parquet_schema(&schema).unwrap().unwrap();
        let found: Vec<_> = written
            .columns()
            .iter()
            .map(|leaf| (leaf.converted_type(), leaf.logical_type_ref().cloned()))
            .collect();
        use ConvertedType::{ENUM, INTERVAL, JSON, NONE};
        let (plain, interval) = ((NONE, None), (INTERVAL, None));
        let expected = [
            interval.clone(),
            plain.clone(),
            interval,
            (JSON, Some(LogicalType::Json)),
            plain.clone(),
            (NONE, Some(LogicalType::Uuid)),
            (ENUM, Some(LogicalType::Enum)),
            plain,
        ];
        assert_eq!(found, expected);
        let plain = Schema::new(vec![Field::new("n", DataType::Int32, true)]);
        assert!(parquet_schema(&plain).unwrap().is_none());
    }
}
