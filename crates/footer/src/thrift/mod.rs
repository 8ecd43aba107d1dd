//! The Thrift compact protocol as Parquet footers use it: reading, tracing and dumping.

pub(crate) mod cursor;
pub(crate) mod dump;
pub(crate) mod format;
pub(crate) mod varint;
