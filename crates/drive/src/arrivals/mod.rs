//! When operations are to begin: an arrival process over a rate that changes with time.

pub(crate) mod process;
pub(crate) mod schedule;
pub(crate) mod shape;
pub(crate) mod trace;
