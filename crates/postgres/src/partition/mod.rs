//! Partitioned tables: which partition a row belongs to, and how partitions are created and attached.

pub(crate) mod by;
pub(crate) mod hash;
pub(crate) mod missing;
pub(crate) mod period;
pub(crate) mod rows;
pub(crate) mod slot;
pub(crate) mod survey;
pub(crate) mod tables;
