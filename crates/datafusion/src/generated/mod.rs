//! Rows of the generator as a table.

#[cfg(feature = "cluster")]
pub(crate) mod files;
pub(crate) mod rows;
pub(crate) mod spec;
pub(crate) mod table;
