//! The table read back, and rows compared by their keys.

pub(crate) mod rows;
pub(crate) mod source;
