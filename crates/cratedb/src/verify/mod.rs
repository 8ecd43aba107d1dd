//! The table read back, and rows compared by their keys.

pub(crate) mod compare;
pub(crate) mod equal_rows;
pub(crate) mod read_back;
pub(crate) mod table;
