//! The Thrift compact protocol as Parquet footers use it: read, written, traced and dumped.

pub(crate) mod cursor;
pub(crate) mod dump;
pub(crate) mod format;
pub(crate) mod trace;
pub(crate) mod writer;
