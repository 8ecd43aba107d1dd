//! Parquet files as a table, opened through our footers.

pub(crate) mod checked_pages;
mod named_errors;
pub(crate) mod reader;
pub(crate) mod table;
mod types;
