//! Rejected rows: recorded, written to a file, and left out when a table is compared with its source.

pub(crate) mod bad_records;
pub(crate) mod file;
pub(crate) mod rejects;
pub(crate) mod views;
