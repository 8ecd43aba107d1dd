//! Text: removes 0x00, checks lengths, and parses values into the wire format of other types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, MapArray, StringArray, StringViewArray, StructArray};
use arrow_schema::DataType;

use super::{items, to_wire};
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::fault::{Fault, shown};
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
        other => other.is_string(),
    }
}

/// Returns the array without the 0x00 in its text, or `None` if its text contains none.
pub(super) fn stripped(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return stripped(dictionary.values()).map(|values| dictionary.with_values(values));
    }
    match array.data_type() {
        arrow if arrow.is_string() => stripped_text(array),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            items::with_items(array, |items| Ok(stripped(items))).ok()?
        }
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

/// Turns text or bytes into the wire format of another type, which `write` appends. Adds to `faults` those that cannot
/// be parsed.
pub(super) fn parsed(
    array: &ArrayRef,
    form: &dyn std::fmt::Display,
    write: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), String>,
    faults: &mut Vec<Fault>,
) -> Option<ArrayRef> {
    let values = ByteStrings::bind(array)?;
    let of = if values.is_text() { "text" } else { "value" };
    let each = |row, out: &mut Vec<u8>| {
        write(values.value(row), out).map_err(|why| {
            let text = shown(&String::from_utf8_lossy(values.value(row)));
            format!("the {of} {text} cannot be read as {form}: {why}")
        })
    };
    Some(to_wire(array, each, faults))
}

/// Appends the 16 bytes of a UUID.
pub(super) fn uuid(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    if bytes.len() != 16 {
        return Err(format!("it has {} bytes and not 16", bytes.len()));
    }
    out.extend_from_slice(bytes);
    Ok(())
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
