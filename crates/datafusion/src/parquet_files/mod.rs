//! Parquet files as a table, opened through our footers.

mod reader;
pub(crate) mod table;
