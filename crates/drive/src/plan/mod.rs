//! The plan of a run: written in TOML, or made from a dataset's name.

pub(crate) mod abort;
pub(crate) mod limit;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod own_statement;
pub(crate) mod pooling;
pub(crate) mod reader;
pub(crate) mod types;
