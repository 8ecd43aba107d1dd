//! The table of a load: its name, the mode, and the records of its loads.

pub(crate) mod mode;
pub(crate) mod name;
pub(crate) mod prune;
pub(crate) mod records;
pub(crate) mod rejects;
pub(crate) mod schema_change;
