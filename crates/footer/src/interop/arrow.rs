//! Prunes the Arrow schema that writers store in a file's key-value metadata.
//!
//! It records what Parquet's schema cannot: time zones, large and view types, dictionaries. Readers reject an Arrow
//! schema whose fields differ from the Parquet schema's.

use super::arrow_ipc::{Field as IpcField, Int, Type};
use super::arrow_schema::{Field, Schema as ArrowSchema};
use super::parquet::arrow::{encode_arrow_schema, parquet_to_arrow_schema};
use super::parquet::schema::types::SchemaDescriptor;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::schema::arena::Schema;

/// A message of up to this many bytes is shortened in place and keeps the bytes of dropped fields: writing it again
/// takes longer. A longer one is written again, because readers pay for its text.
const SHORT: usize = 8 << 10;

/// The encoded Arrow schema, reduced to the fields that contain the wanted leaves; `None` if it does not fit
/// the file's schema. `pruned` is the file's schema with these leaves.
///
/// A field whose leaves are all wanted is kept as it is. For other fields the types are derived from
/// Parquet's: nothing maps an Arrow field's children to leaves.
pub(crate) fn pruned(
    encoded: &str,
    schema: &Schema,
    leaves: &[usize],
    pruned: &SchemaDescriptor,
) -> Option<String> {
    let mut bytes = BASE64_STANDARD.decode(encoded).ok()?;
    // The fields to keep, with their names, and whether with all of their leaves.
    let mut kept: Vec<(usize, &str, bool)> = Vec::new();
    let mut count = 0;
    for (index, top) in schema.root().children().enumerate() {
        let columns = top.columns();
        let start = leaves.partition_point(|&leaf| leaf < columns.start);
        let end = leaves.partition_point(|&leaf| leaf < columns.end);
        if start < end {
            kept.push((index, top.name(), end - start == columns.len()));
        }
        count = index + 1;
    }
    let whole = kept.iter().all(|(.., whole)| *whole);
    let in_place = whole && bytes.len() <= SHORT;
    // A marker and a length precede the message; the oldest writers omitted the marker.
    let message_start = if bytes.starts_with(&[0xff; 4]) { 8 } else { 0 };
    if in_place {
        keep_fields(bytes.get_mut(message_start..)?, count, kept.iter().map(|(index, ..)| *index))?;
    }
    // In a shortened message this verifies only the kept fields.
    let message = super::arrow_ipc::root_as_message(bytes.get(message_start..)?).ok()?.header_as_schema()?;
    let fields = message.fields()?;
    if fields.len() != if in_place { kept.len() } else { count } {
        return None;
    }
    let field = |place: usize, index: usize| fields.get(if in_place { place } else { index });
    let mut known = kept.iter().enumerate().map(|(place, (index, name, _))| (field(place, *index), *name));
    if !known.all(|(field, name)| field.name() == Some(name) && is_well_formed(field)) {
        return None;
    }
    if in_place {
        return Some(BASE64_STANDARD.encode(bytes));
    }
    let mut kept: Vec<Option<Field>> =
        kept.into_iter().map(|(index, _, whole)| whole.then(|| Field::from(fields.get(index)))).collect();
    if !whole {
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

/// Shortens a message's list of `count` fields to the kept ones, in place: the other fields' bytes stay, unused. `None`
/// if the message lacks that list. Does not verify the rest of the message.
fn keep_fields(message: &mut [u8], count: usize, kept: impl ExactSizeIterator<Item = usize>) -> Option<()> {
    let list = list_of_fields(message)?;
    let elements = list.checked_add(4)?;
    if word(message, list)? as usize != count {
        return None;
    }
    let short = u32::try_from(kept.len()).ok()?;
    *message.get_mut(list..)?.first_chunk_mut()? = short.to_le_bytes();
    for (place, index) in kept.enumerate() {
        // An element holds the distance from itself to its field, which follows the list.
        let (from, to) = (elements + 4 * index, elements + 4 * place);
        let distance = word(message, from)? as usize;
        *message.get_mut(to..)?.first_chunk_mut()? =
            u32::try_from(distance.checked_add(from - to)?).ok()?.to_le_bytes();
    }
    Some(())
}

/// Where the list of fields is in a message that holds a schema.
fn list_of_fields(message: &[u8]) -> Option<usize> {
    /// The numbers of the fields in their tables.
    const HEADER: usize = 2;
    const FIELDS: usize = 1;
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(*message.get(at..)?.first_chunk()?)));
    let target = |at: usize| at.checked_add(word(message, at)? as usize);
    // A table starts with the distance back to its vtable.
    let field = |table: usize, number: usize| {
        let back = i32::from_le_bytes(*message.get(table..)?.first_chunk()?);
        let places = table.checked_add_signed((back as isize).checked_neg()?)?;
        let slot = 4 + 2 * number;
        let place = if slot + 2 <= half(places)? { half(places + slot)? } else { 0 };
        (place != 0).then_some(table + place)
    };
    let header = target(field(target(0)?, HEADER)?)?;
    target(field(header, FIELDS)?)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether `Field::from` knows the field's type and its parameters: it panics on others.
fn is_well_formed(field: IpcField<'_>) -> bool {
    let child = |wanted: usize| {
        field.children().is_some_and(|found| found.len() == wanted && found.iter().all(is_well_formed))
    };
    let index = field.dictionary().is_none_or(|found| found.indexType().is_some_and(is_integer));
    index
        && match field.type_type() {
            Type::Null | Type::Bool | Type::Binary | Type::BinaryView | Type::LargeBinary => true,
            Type::Utf8 | Type::Utf8View | Type::LargeUtf8 => true,
            Type::FixedSizeBinary => field.type_as_fixed_size_binary().is_some(),
            Type::Int => field.type_as_int().is_some_and(is_integer),
            Type::FloatingPoint => {
                field.type_as_floating_point().is_some_and(|of| (0..=2).contains(&of.precision().0))
            }
            Type::Date => field.type_as_date().is_some_and(|of| (0..=1).contains(&of.unit().0)),
            Type::Time => field
                .type_as_time()
                .is_some_and(|of| matches!((of.bitWidth(), of.unit().0), (32, 0 | 1) | (64, 2 | 3))),
            Type::Timestamp => field.type_as_timestamp().is_some_and(|of| (0..=3).contains(&of.unit().0)),
            Type::Duration => field.type_as_duration().is_some_and(|of| (0..=3).contains(&of.unit().0)),
            Type::Interval => field.type_as_interval().is_some_and(|of| (0..=2).contains(&of.unit().0)),
            Type::List | Type::LargeList | Type::ListView | Type::LargeListView => child(1),
            Type::FixedSizeList => field.type_as_fixed_size_list().is_some() && child(1),
            Type::Map => field.type_as_map().is_some() && child(1),
            Type::Struct_ => field.children().is_none_or(|found| found.iter().all(is_well_formed)),
            Type::Decimal => field.type_as_decimal().is_some_and(|of| {
                matches!(of.bitWidth(), 32 | 64 | 128 | 256)
                    && u8::try_from(of.precision()).is_ok()
                    && i8::try_from(of.scale()).is_ok()
            }),
            // No writer stores unions or run-end encoded values as Parquet.
            _ => false,
        }
}

fn is_integer(of: Int<'_>) -> bool {
    matches!(of.bitWidth(), 8 | 16 | 32 | 64)
}
