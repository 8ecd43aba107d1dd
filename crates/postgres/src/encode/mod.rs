//! Batches into blocks of rows, for workers of the engine: summed up, and without the rows that are refused.

pub(crate) mod canonical_row;
pub(crate) mod rejecting;
pub(crate) mod summing;
