//! Columns: selection, renaming, and a common type for columns of several files.

pub(crate) mod choice;
pub(crate) mod common;
pub(crate) mod leaves;
pub(crate) mod mapping;
pub(crate) mod united;
