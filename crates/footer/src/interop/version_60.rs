//! Conversion to and from metadata of the `parquet` crate 60 (feature `parquet-60`).

use {arrow_ipc60 as arrow_ipc, arrow_schema60 as arrow_schema, parquet60 as parquet};

#[path = "arrow.rs"]
mod arrow;
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

use self::parquet::basic::ColumnOrder as TheirOrder;
use self::parquet::schema::types::ColumnDescriptor;
use crate::chunk::row_group::RowGroup;
use crate::schema::enums::ColumnOrder;

conversions!(
    to_parquet_60,
    to_parquet_60_with_page_indexes,
    to_parquet_60_with_offset_indexes,
    unreadable_by_parquet_60,
    from_parquet_60
);

/// The order in which a column's bounds are compared.
#[expect(deprecated, reason = "no other public function knows a type's own order")]
fn column_order(order: ColumnOrder, column: &ColumnDescriptor) -> TheirOrder {
    match order {
        ColumnOrder::TypeOrder => TheirOrder::TYPE_DEFINED_ORDER(TheirOrder::sort_order_for_type(
            column.logical_type_ref(),
            column.converted_type(),
            column.physical_type(),
            true,
        )),
        ColumnOrder::Ieee754TotalOrder => TheirOrder::IEEE_754_TOTAL_ORDER,
        ColumnOrder::Int96TimestampOrder => TheirOrder::INT96_TIMESTAMP_ORDER,
        ColumnOrder::Unknown(_) => TheirOrder::UNKNOWN,
    }
}

/// A row group's ordinal, or its index.
fn ordinal(group: &RowGroup<'_>) -> Option<i32> {
    group.ordinal().map(i32::from).or_else(|| i32::try_from(group.index()).ok())
}
