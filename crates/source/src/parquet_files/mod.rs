//! Parquet files as a source: opens, plans and decodes them.

pub(crate) mod annotations;
pub(crate) mod files;
pub(crate) mod filtered;
pub(crate) mod guarded;
pub(crate) mod interval;
mod left_out;
mod mapped;
pub(crate) mod opened_file;
pub(crate) mod page_checksums;
pub(crate) mod reader;
pub(crate) mod schema;
mod shapes;
pub(crate) mod stamp;
pub(crate) mod table;
pub(crate) mod united;
