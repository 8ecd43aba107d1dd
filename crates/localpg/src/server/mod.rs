//! Initialises, starts, stops and restarts a server.

pub(crate) mod builder;
mod chaos;
pub(crate) mod cluster;
pub(crate) mod local_pg;
pub(crate) mod postmaster;
