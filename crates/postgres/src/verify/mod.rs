//! Reads the table back, sums it, and compares it with the source.

pub(crate) mod compare;
pub(crate) mod locate;
pub(crate) mod sums;
pub(crate) mod tuples;
