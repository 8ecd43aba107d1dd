//! Operations carried out on a server, each with an outcome.

pub(crate) mod crate_db;
pub(crate) mod null;
pub(crate) mod outcome;
pub(crate) mod postgres;
pub(crate) mod reads;
pub(crate) mod rows;
pub(crate) mod statements;
pub(crate) mod step;
pub(crate) mod target;
