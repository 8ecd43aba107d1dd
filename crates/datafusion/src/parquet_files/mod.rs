//! Parquet files as a table, opened through our footers.

mod named_errors;
mod reader;
pub(crate) mod table;
mod types;
