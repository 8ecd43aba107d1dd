//! Units into the table, and an account of every row.

pub(crate) mod bulk;
pub(crate) mod carried;
pub(crate) mod durable;
pub(crate) mod rejects;
pub(crate) mod there_before;
pub(crate) mod writer;
