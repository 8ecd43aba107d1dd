//! Rows of the generator as a table.

pub(crate) mod rows;
pub(crate) mod spec;
pub(crate) mod table;
