//! Statistics of repeated runs, and whether two sides differ.

pub(crate) mod bootstrap;
pub(crate) mod comparison;
pub(crate) mod statistics;
