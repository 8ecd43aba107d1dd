//! The table of a load: its name, and what happens to it.

pub(crate) mod mode;
pub(crate) mod name;
pub(crate) mod records;
pub(crate) mod rejects;
