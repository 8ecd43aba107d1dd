//! Footers of Parquet files as tables.

mod cells;
pub(crate) mod columns;
mod files;
pub(crate) mod rows;
mod selection;
pub(crate) mod table;
