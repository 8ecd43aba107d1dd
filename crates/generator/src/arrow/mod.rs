//! The rows of a dataset as Arrow batches (feature `arrow`).

pub(crate) mod batches;
pub(crate) mod schema;
