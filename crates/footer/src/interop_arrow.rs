//! The Arrow schema that writers leave in a file's key-value metadata, pruned (feature `parquet`).
//!
//! It tells readers what Parquet's schema does not: time zones, large and view types, dictionaries.
//! Readers refuse one that does not have the schema's fields, no more and no less.

use arrow_schema::{Field, Schema as ArrowSchema};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::{encode_arrow_schema, parquet_to_arrow_schema};
use parquet::schema::types::SchemaDescriptor;

use crate::schema::Schema;

/// The encoded Arrow schema with the fields that the wanted leaves stand in; none if it does not fit
/// the file's schema. `pruned` is the file's schema with these leaves.
///
/// Fields of which all leaves are wanted are kept as they are. Of the others, the types are derived
/// from Parquet's: nothing says which of an Arrow field's children are which of the leaves.
pub(crate) fn pruned(
    encoded: &str,
    schema: &Schema,
    leaves: &[usize],
    pruned: &SchemaDescriptor,
) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    // The message has a prefix of a marker and its length, which the oldest writers left out.
    let message = bytes.strip_prefix(&[0xff; 4]).and_then(|rest| rest.get(4..)).unwrap_or(&bytes);
    let message = arrow_ipc::root_as_message(message).ok()?.header_as_schema()?;
    let fields = message.fields()?;
    if fields.len() != schema.root().children().count() {
        return None;
    }
    let mut kept: Vec<Option<Field>> = Vec::new();
    for (index, top) in schema.root().children().enumerate() {
        let columns = top.columns();
        let start = leaves.partition_point(|&leaf| leaf < columns.start);
        let end = leaves.partition_point(|&leaf| leaf < columns.end);
        if start == end {
            continue;
        }
        let field = fields.get(index);
        if field.name() != Some(top.name()) {
            return None;
        }
        kept.push((end - start == columns.len()).then(|| Field::from(field)));
    }
    if kept.iter().any(Option::is_none) {
        let derived = parquet_to_arrow_schema(pruned, None).ok()?;
        for (field, derived) in kept.iter_mut().zip(derived.fields()) {
            field.get_or_insert_with(|| derived.as_ref().clone());
        }
    }
    let mut metadata = std::collections::HashMap::new();
    for pair in message.custom_metadata().into_iter().flatten() {
        if let (Some(key), Some(value)) = (pair.key(), pair.value()) {
            metadata.insert(key.to_string(), value.to_string());
        }
    }
    let fields: Vec<Field> = kept.into_iter().flatten().collect();
    Some(encode_arrow_schema(&ArrowSchema::new_with_metadata(fields, metadata)))
}
