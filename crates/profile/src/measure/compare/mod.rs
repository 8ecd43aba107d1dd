//! Statistics of repeated runs, and whether two sides differ.

pub(crate) mod comparison;
pub(crate) mod order;
pub(crate) mod statistics;
