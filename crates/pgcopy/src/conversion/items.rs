//! Lists whose items are converted.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, FieldRef};

use super::ColumnConversion;
use crate::arrays::fault::Fault;
use crate::arrays::lists::Lists;

/// Returns the type of lists of converted items.
pub(super) fn output(arrow: &DataType, inner: &ColumnConversion) -> DataType {
    let converted = |item: &FieldRef| retyped(item, inner.output(item.data_type()));
    match arrow {
        DataType::List(item) => DataType::List(converted(item)),
        DataType::LargeList(item) => DataType::LargeList(converted(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(converted(item), *size),
        other => other.clone(),
    }
}

/// Returns the lists with converted items. Adds the faults of items to `faults`, each with its list's row.
pub(super) fn convert(
    array: &ArrayRef,
    inner: &ColumnConversion,
    faults: &mut Vec<Fault>,
) -> Result<Option<ArrayRef>, Fault> {
    let mut of_items = Vec::new();
    let lists = with_items(array, |items| inner.all(items, &mut of_items).map(Some))?;
    let Some(ranges) = lists.as_ref().and_then(Lists::bind).filter(|_| !of_items.is_empty()) else {
        return Ok(lists);
    };
    for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
        let range = ranges.offsets.range(row);
        let here = of_items.iter().filter(|fault| range.contains(&fault.row));
        faults.extend(here.map(|fault| {
            let at = format!("[{}]", fault.row - range.start);
            Fault { row, ..fault.clone() }.below(&at)
        }));
    }
    Ok(lists)
}

/// Returns an array of lists with the items that `convert` returns for those that the lists have; `None` if it returns
/// none, or if the array has another type.
pub(super) fn with_items(
    array: &ArrayRef,
    convert: impl FnOnce(&ArrayRef) -> Result<Option<ArrayRef>, Fault>,
) -> Result<Option<ArrayRef>, Fault> {
    match array.data_type() {
        DataType::List(item) => with_items_of(item, array.as_list::<i32>(), convert),
        DataType::LargeList(item) => with_items_of(item, array.as_list::<i64>(), convert),
        DataType::FixedSizeList(item, size) => {
            let list = array.as_fixed_size_list();
            let Some(items) = convert(list.values())? else { return Ok(None) };
            let item = retyped(item, items.data_type().clone());
            let list = FixedSizeListArray::try_new(item, *size, items, list.nulls().cloned());
            Ok(list.ok().map(|list| Arc::new(list) as ArrayRef))
        }
        _ => Ok(None),
    }
}

/// The same of lists with offsets: a slice of them keeps all items.
fn with_items_of<O: OffsetSizeTrait>(
    item: &FieldRef,
    list: &GenericListArray<O>,
    convert: impl FnOnce(&ArrayRef) -> Result<Option<ArrayRef>, Fault>,
) -> Result<Option<ArrayRef>, Fault> {
    let offsets = list.value_offsets();
    let (first, last) = (offsets[0], offsets[list.len()]);
    let items = list.values().slice(first.as_usize(), (last - first).as_usize());
    let Some(items) = convert(&items)? else { return Ok(None) };
    let item = retyped(item, items.data_type().clone());
    let offsets = OffsetBuffer::new(offsets.iter().map(|offset| *offset - first).collect());
    let list = GenericListArray::try_new(item, offsets, items, list.nulls().cloned());
    Ok(list.ok().map(|list| Arc::new(list) as ArrayRef))
}

/// The field of converted items: those with faults are NULL.
fn retyped(item: &FieldRef, to: DataType) -> FieldRef {
    match *item.data_type() == to {
        true => Arc::clone(item),
        false => Arc::new(item.as_ref().clone().with_data_type(to).with_nullable(true)),
    }
}
