//! Files that name their columns otherwise than their table: by names that never change, or by numbers.
//!
//! The schema of such files gets the names of the table, before anything reads it. The footer keeps its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::parquet_files::interval::with_schema;

/// Field metadata of a table's column, as Delta calls it: its name in the files.
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Field metadata of a table's column, as Delta calls it: the number that its files give it, by which it is found.
const FIELD_ID: &str = "delta.columnMapping.id";

/// Returns the name that a table's column has in its files, unless they find it by its number.
pub(super) fn name_in_files(table: &Schema, name: &str) -> String {
    let physical = table.field_with_name(name).ok().and_then(|field| field.metadata().get(PHYSICAL_NAME));
    physical.map_or(name, String::as_str).to_owned()
}

/// The metadata of a file with the table's names, and for each of these the file's own.
pub(super) type Renamed = (Arc<ParquetMetaData>, HashMap<String, String>);

/// Returns the metadata of a file with the names of the table; `None` if they are the same.
pub(super) fn renamed(
    metadata: &Arc<ParquetMetaData>,
    table: &Schema,
) -> Result<Option<Renamed>, ParquetError> {
    let is_mapped =
        |field: &Arc<Field>| [PHYSICAL_NAME, FIELD_ID].iter().any(|key| field.metadata().contains_key(*key));
    if !table.fields().iter().any(is_mapped) {
        return Ok(None);
    }
    let root = metadata.file_metadata().schema_descr().root_schema_ptr();
    let fields = children(root.get_fields(), table.fields())?;
    let own = root.get_fields().iter().map(|field| field.name().to_owned());
    let names = fields.iter().map(|field| field.name().to_owned()).zip(own).collect();
    let schema = SchemaDescriptor::new(group(&root, root.name(), fields)?);
    Ok(Some((with_schema(metadata, schema), names)))
}

/// Renames the fields of the file, or of a struct.
fn children(given: &[TypePtr], wanted: &Fields) -> Result<Vec<TypePtr>, ParquetError> {
    let is = |given: &TypePtr, wanted: &Field| match wanted.metadata().get(FIELD_ID) {
        Some(id) => given.get_basic_info().has_id() && given.get_basic_info().id().to_string() == *id,
        None => wanted.metadata().get(PHYSICAL_NAME).is_some_and(|name| name == given.name()),
    };
    let rename = |given: &TypePtr| match wanted.iter().find(|wanted| is(given, wanted)) {
        Some(wanted) => renamed_type(given, wanted.name(), wanted.data_type()),
        // The table may have another column of this name.
        None => with_name(given, &format!("{} (not in the table)", given.name())),
    };
    given.iter().map(rename).collect()
}

fn renamed_type(given: &TypePtr, name: &str, wanted: &DataType) -> Result<TypePtr, ParquetError> {
    if given.is_primitive() {
        return with_name(given, name);
    }
    let fields = match (wanted, given.get_fields()) {
        (DataType::Struct(wanted), fields) => children(fields, wanted)?,
        (DataType::List(item), [repeated]) => {
            match repeated.is_primitive() || repeated.get_fields().len() != 1 {
                // The older form of lists, whose elements are repeated themselves.
                true => vec![renamed_type(repeated, repeated.name(), item.data_type())?],
                false => {
                    let element = &repeated.get_fields()[0];
                    let element = renamed_type(element, element.name(), item.data_type())?;
                    vec![group(repeated, repeated.name(), vec![element])?]
                }
            }
        }
        (DataType::Map(entries, _), [repeated]) if !repeated.is_primitive() => {
            let DataType::Struct(pair) = entries.data_type() else { return with_name(given, name) };
            let pair = repeated.get_fields().iter().zip(pair);
            let pair = pair.map(|(given, wanted)| renamed_type(given, given.name(), wanted.data_type()));
            vec![group(repeated, repeated.name(), pair.collect::<Result<_, _>>()?)?]
        }
        (_, fields) => fields.to_vec(),
    };
    group(given, name, fields)
}

fn with_name(given: &TypePtr, name: &str) -> Result<TypePtr, ParquetError> {
    let Type::PrimitiveType { physical_type, type_length, scale, precision, .. } = given.as_ref() else {
        return group(given, name, given.get_fields().to_vec());
    };
    let info = given.get_basic_info();
    let made = Type::primitive_type_builder(name, *physical_type)
        .with_repetition(info.repetition())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_length(*type_length)
        .with_precision(*precision)
        .with_scale(*scale)
        .with_id(info.has_id().then(|| info.id()));
    made.build().map(Arc::new)
}

/// Returns a group with another name and other fields.
pub(super) fn group(given: &TypePtr, name: &str, fields: Vec<TypePtr>) -> Result<TypePtr, ParquetError> {
    let info = given.get_basic_info();
    let made = Type::group_type_builder(name)
        .with_fields(fields)
        .with_id(info.has_id().then(|| info.id()))
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned());
    let made = if info.has_repetition() { made.with_repetition(info.repetition()) } else { made };
    made.build().map(Arc::new)
}
