//! A run: connections that take operations from one schedule, and the recording of their outcomes.

pub(crate) mod capacity;
pub(crate) mod chaos;
pub(crate) mod connection;
pub(crate) mod course;
pub(crate) mod delay;
pub(crate) mod engine;
pub(crate) mod find_max;
pub(crate) mod processor;
pub(crate) mod pulse;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod verdict;
pub(crate) mod watching;
