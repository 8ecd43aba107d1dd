//! Relations between the columns of a record that are not nested.

pub(crate) mod column;
pub(crate) mod dependence;
pub(crate) mod sums;
pub(crate) mod together;

pub(crate) use column::Column;
