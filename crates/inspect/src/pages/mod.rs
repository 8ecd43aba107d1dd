//! Checks pages before a decoder sees them: their sizes, levels and checksums.

pub(crate) mod chunks;
mod coded_rows;
mod decompress;
mod delta_text;
mod levels;
pub(crate) mod limits;
mod numbers;
#[cfg(feature = "parquet-59")]
pub(crate) mod parquet_limits;
pub(crate) mod reading;
