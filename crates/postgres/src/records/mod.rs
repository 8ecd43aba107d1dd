//! The server's records of loads: their units, files and rows, and whether the tables still hold them.

pub(crate) mod checkpoint;
pub(crate) mod commands;
mod filled;
pub(crate) mod history;
pub(crate) mod parts;
pub(crate) mod presence;
pub(crate) mod renamed;
pub(crate) mod schema;
