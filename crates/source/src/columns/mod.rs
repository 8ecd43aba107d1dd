//! Columns: their selection and renaming, and a common type for those of several files.

pub(crate) mod choice;
pub(crate) mod common;
