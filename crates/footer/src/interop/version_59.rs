//! Conversion to and from metadata of the `parquet` crate 59 (feature `parquet-59`).

#[allow(clippy::single_component_path_imports, reason = "the modules below import from here")]
use {arrow_ipc, arrow_schema, parquet};

#[path = "arrow.rs"]
mod arrow;
#[path = "enums.rs"]
mod enums;
#[path = "metadata.rs"]
mod metadata;
#[path = "page_indexes.rs"]
mod page_indexes;
#[path = "projection.rs"]
mod projection;
#[path = "row_groups.rs"]
mod row_groups;
#[path = "schema.rs"]
mod schema;

pub use enums::{annotated_59, enums_as_text_59};

use self::parquet::basic::ColumnOrder as TheirOrder;
use self::parquet::schema::types::ColumnDescriptor;
use crate::chunk::row_group::RowGroup;
use crate::schema::enums::ColumnOrder;

conversions!(
    to_parquet_59,
    to_parquet_59_with_page_indexes,
    to_parquet_59_with_offset_indexes,
    unreadable_by_parquet_59,
    from_parquet_59
);

/// The order in which a column's bounds are compared.
fn column_order(order: ColumnOrder, column: &ColumnDescriptor) -> TheirOrder {
    match order {
        ColumnOrder::TypeOrder => TheirOrder::TYPE_DEFINED_ORDER(TheirOrder::sort_order_for_type(
            column.logical_type_ref(),
            column.converted_type(),
            column.physical_type(),
        )),
        _ => TheirOrder::UNKNOWN,
    }
}

/// A row group's ordinal, or its index if that is small enough for one.
fn ordinal(group: &RowGroup<'_>) -> Option<i16> {
    group.ordinal().or_else(|| i16::try_from(group.index()).ok())
}
