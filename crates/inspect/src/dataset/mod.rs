//! One file in a line, and many files together.

pub(crate) mod checkup;
pub(crate) mod footer_difference;
pub(crate) mod merge_plan;
pub(crate) mod schema_difference;
pub(crate) mod summary;
pub(crate) mod totals;
