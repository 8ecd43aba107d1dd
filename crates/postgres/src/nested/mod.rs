//! A nested source as several tables that refer to each other.

pub(crate) mod child_tables;
pub(crate) mod flat_tables;
