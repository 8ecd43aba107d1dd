//! Rejected rows and records: recorded, written to a file, and left out of every table of a nested source.

pub(crate) mod bad_records;
pub(crate) mod file;
pub(crate) mod records;
pub(crate) mod rejects;
pub(crate) mod whole_records;
