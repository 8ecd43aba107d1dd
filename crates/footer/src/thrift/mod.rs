//! The Thrift compact protocol as Parquet footers use it: reading, writing, tracing and dumping.

pub(crate) mod cursor;
pub(crate) mod dump;
pub(crate) mod format;
pub(crate) mod trace;
#[cfg(any(test, feature = "parquet-59", feature = "parquet-60"))]
pub(crate) mod writer;
