//! The way to the `parquet` crate (feature `parquet`).

pub(crate) mod arrow;
pub(crate) mod metadata;
pub(crate) mod schema;
