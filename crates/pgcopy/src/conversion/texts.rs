//! Text: removes 0x00, checks lengths, and parses values into the wire format of other types.

use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, LargeStringArray, MapArray, OffsetSizeTrait, StringArray,
    StringViewArray, StructArray,
};
use arrow_schema::DataType;

use super::is_text;
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::fault::{Fault, shown};
use crate::types::server_type::ServerType;
use crate::values::element::refuse_longer;

/// Whether values of this type are text or contain text.
pub(super) fn may_hold_nul(arrow: &DataType) -> bool {
    use DataType::*;
    match arrow {
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => {
            may_hold_nul(item.data_type())
        }
        Struct(fields) => fields.iter().any(|field| may_hold_nul(field.data_type())),
        Dictionary(_, value) => may_hold_nul(value),
        other => is_text(other),
    }
}

/// Returns the array without the 0x00 in its text, or `None` if its text contains none.
pub(super) fn stripped(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return stripped(dictionary.values()).map(|values| dictionary.with_values(values));
    }
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => stripped_text(array),
        DataType::List(_) => stripped_list(array.as_list_opt::<i32>()?),
        DataType::LargeList(_) => stripped_list(array.as_list_opt::<i64>()?),
        DataType::Map(entries, sorted) => {
            let map = array.as_map_opt()?;
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = stripped(&inner)?.as_struct_opt()?.clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let map = MapArray::try_new(Arc::clone(entries), offsets, inner, nulls, *sorted).ok()?;
            Some(Arc::new(map))
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct_opt()?;
            let new: Vec<Option<ArrayRef>> = parts.columns().iter().map(stripped).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let old = parts.columns().iter().map(Arc::clone);
            let columns = new.into_iter().zip(old).map(|(new, old)| new.unwrap_or(old)).collect();
            let parts = StructArray::try_new(fields.clone(), columns, parts.nulls().cloned()).ok()?;
            Some(Arc::new(parts))
        }
        _ => None,
    }
}

fn stripped_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Option<ArrayRef> {
    let (DataType::List(field) | DataType::LargeList(field)) = list.data_type() else { return None };
    let values = stripped(list.values())?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    Some(Arc::new(GenericListArray::try_new(Arc::clone(field), offsets, values, nulls).ok()?))
}

fn stripped_text(array: &ArrayRef) -> Option<ArrayRef> {
    let values = ByteStrings::bind(array)?;
    let holds_nul = |row: usize| array.is_valid(row) && memchr::memchr(0, values.value(row)).is_some();
    if !(0..array.len()).any(holds_nul) {
        return None;
    }
    let without = (0..array.len())
        .map(|row| array.is_valid(row).then(|| String::from_utf8_lossy(values.value(row)).replace('\0', "")));
    Some(match array.data_type() {
        DataType::Utf8View => Arc::new(without.collect::<StringViewArray>()),
        DataType::LargeUtf8 => Arc::new(without.collect::<LargeStringArray>()),
        _ => Arc::new(without.collect::<StringArray>()),
    })
}

/// Returns the array unchanged, and adds to `faults` text of more than `most` characters.
pub(super) fn longest(array: &ArrayRef, most: u32, faults: &mut Vec<Fault>) -> Option<ArrayRef> {
    let values = ByteStrings::bind(array)?;
    let checked = (0..array.len()).filter(|row| array.is_valid(*row));
    faults.extend(checked.filter_map(|row| refuse_longer(values.value(row), most, row).err()));
    Some(Arc::clone(array))
}

/// Turns text into the wire format of another type, which `write` appends. Adds to `faults` text that cannot be parsed.
pub(super) fn parsed(
    array: &ArrayRef,
    form: &dyn std::fmt::Display,
    write: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), String>,
    faults: &mut Vec<Fault>,
) -> Option<ArrayRef> {
    let values = ByteStrings::bind(array)?;
    let mut wire = LargeBinaryBuilder::with_capacity(array.len(), 16 * array.len());
    let mut bytes = Vec::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            wire.append_null();
            continue;
        }
        bytes.clear();
        match write(values.value(row), &mut bytes) {
            Ok(()) => wire.append_value(&bytes),
            Err(why) => {
                let text = String::from_utf8_lossy(values.value(row));
                faults.push(Fault::new(
                    row,
                    format!("the text {} cannot be read as {form}: {why}", shown(&text)),
                ));
                wire.append_null();
            }
        }
    }
    Some(Arc::new(wire.finish()))
}

/// Turns text into the wire format of a type that the server reads. Adds text that the type does not hold to `faults`.
///
/// # Errors
/// The server did not answer.
pub(super) fn read_by_server(
    array: &ArrayRef,
    of: &ServerType,
    faults: &mut Vec<Fault>,
) -> Result<Option<ArrayRef>, String> {
    let Some(values) = ByteStrings::bind(array) else { return Ok(None) };
    let mut texts = Vec::with_capacity(array.len());
    let mut broken = Vec::new();
    let rows: Vec<usize> = (0..array.len()).filter(|row| array.is_valid(*row)).collect();
    for row in &rows {
        let text = std::str::from_utf8(values.value(*row)).ok().filter(|text| !text.contains('\0'));
        broken.push(text.is_none());
        texts.push(text.unwrap_or_default());
    }
    let mut wire = LargeBinaryBuilder::with_capacity(array.len(), 16 * array.len());
    let mut read = of.0.wire(&texts)?.into_iter().zip(broken).zip(&texts);
    for row in 0..array.len() {
        match if array.is_valid(row) { read.next() } else { None } {
            None => wire.append_null(),
            Some(((Ok(value), false), _)) => wire.append_value(value),
            Some(((value, broken), text)) => {
                let why = match value {
                    Err(why) if !broken => why,
                    _ => "PostgreSQL does not store the character 0x00".to_owned(),
                };
                faults
                    .push(Fault::new(row, format!("the text {} cannot be read as {of}: {why}", shown(text))));
                wire.append_null();
            }
        }
    }
    Ok(Some(Arc::new(wire.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{ListBuilder, StringBuilder};

    #[test]
    fn nul_is_removed_at_any_depth_and_arrays_without_it_stay_the_same() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a\0b"), None, Some("\0")]);
        lists.append_null();
        let list: ArrayRef = Arc::new(lists.finish());
        let clean = stripped(&list).unwrap();
        let items = clean.as_list::<i32>().values().as_string::<i32>().clone();
        assert_eq!(items.iter().collect::<Vec<_>>(), [Some("ab"), None, Some("")]);
        assert!(clean.is_null(1));
        assert!(stripped(&clean).is_none());
    }
}
