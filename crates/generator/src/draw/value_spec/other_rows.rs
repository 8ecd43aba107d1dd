//! Values and rows that follow from the rows of other tables.

pub(crate) mod arrivals;
pub(crate) mod changes;
pub(crate) mod fan_out;
pub(crate) mod of_children;
pub(crate) mod other_column;
