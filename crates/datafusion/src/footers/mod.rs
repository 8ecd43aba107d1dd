//! Footers of Parquet files as tables.

mod cells;
pub(crate) mod columns;
pub(crate) mod rows;
mod selection;
pub(crate) mod table;
