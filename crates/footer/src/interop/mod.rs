//! Conversion to and from the `parquet` crate's metadata (feature `parquet`).

pub(crate) mod arrow;
pub(crate) mod metadata;
pub(crate) mod schema;
