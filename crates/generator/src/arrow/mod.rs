//! The rows of a dataset as Arrow batches (feature `arrow`).

pub(crate) mod batches;
mod leaf_arrays;
pub(crate) mod schema;
