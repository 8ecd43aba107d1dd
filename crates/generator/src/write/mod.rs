//! Columns into Parquet: pages, column chunks, row groups, footers, and the files of a dataset.

pub(crate) mod column_chunk;
pub(crate) mod dataset;
pub(crate) mod file_metadata;
pub(crate) mod folder_share;
pub(crate) mod page;
pub(crate) mod partition;
pub(crate) mod plan;
pub(crate) mod row_group;
pub(crate) mod row_size;
pub(crate) mod schema;
pub(crate) mod statistics;
