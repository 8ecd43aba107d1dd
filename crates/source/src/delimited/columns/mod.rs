//! The types of columns, found in a sample or given, and the arrays that fields become.

pub(super) mod arrays;
pub(super) mod column_type;
pub(super) mod formats;
pub(super) mod inference;
pub(super) mod late;
mod numbers;
