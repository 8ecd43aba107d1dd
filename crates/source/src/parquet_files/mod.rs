//! Parquet files as a source: opened, planned, decoded, and flattened into several tables.

pub(crate) mod files;
pub(crate) mod filtered;
pub(crate) mod flat_columns;
pub(crate) mod guarded;
pub(crate) mod interval;
pub(crate) mod page_checksums;
pub(crate) mod reader;
pub(crate) mod schema;
pub(crate) mod stamp;
