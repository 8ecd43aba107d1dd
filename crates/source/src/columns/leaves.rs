//! The leaves of nested columns.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields};

/// Returns the fields with each leaf replaced by the result of `leaf`, which is called in depth-first order, the order
/// of Parquet's columns.
///
/// # Errors
/// `leaf` fails.
pub fn with_leaves<E>(
    fields: &Fields,
    leaf: &mut impl FnMut(&FieldRef) -> Result<FieldRef, E>,
) -> Result<Fields, E> {
    fields.iter().map(|field| of_field(field, leaf)).collect()
}

fn of_field<E>(
    field: &FieldRef,
    leaf: &mut impl FnMut(&FieldRef) -> Result<FieldRef, E>,
) -> Result<FieldRef, E> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    let data_type = match field.data_type() {
        Struct(fields) => Struct(with_leaves(fields, leaf)?),
        List(item) => List(of_field(item, leaf)?),
        LargeList(item) => LargeList(of_field(item, leaf)?),
        ListView(item) => ListView(of_field(item, leaf)?),
        LargeListView(item) => LargeListView(of_field(item, leaf)?),
        FixedSizeList(item, size) => FixedSizeList(of_field(item, leaf)?, *size),
        Map(entries, sorted) => Map(of_field(entries, leaf)?, *sorted),
        _ => return leaf(field),
    };
    Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
}
