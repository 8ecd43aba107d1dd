//! Loads into PostgreSQL as a job: a unit of work is a part of the load.

pub(crate) mod parts;
pub(crate) mod source;
