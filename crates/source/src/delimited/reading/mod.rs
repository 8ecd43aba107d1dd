//! Batches of rows: in the order of the file, from given places, and without the records that are rejected.

pub(super) mod addressed;
pub(super) mod gather;
pub(super) mod reader;
pub(super) mod rejected;
