//! Columns into Parquet: pages, column chunks, row groups, footers, and the files of a dataset.

pub(crate) mod column_chunk;
pub(crate) mod dataset;
pub(crate) mod file_metadata;
pub(crate) mod folder_share;
pub(crate) mod page_header;
pub(crate) mod page_maker;
pub(crate) mod page_rows;
pub(crate) mod pages;
pub(crate) mod partition;
pub(crate) mod row_group;
pub(crate) mod schema;
pub(crate) mod thrift;
