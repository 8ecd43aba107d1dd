//! The server's records of loads: their units, files and rows, and whether the tables still hold them.

pub(crate) mod checkpoint;
mod filled;
pub(crate) mod forget;
pub(crate) mod history;
pub(crate) mod in_order;
pub(crate) mod parts;
pub(crate) mod presence;
pub(crate) mod prune;
pub(crate) mod renamed;
pub(crate) mod schema;
pub(crate) mod status;
