//! Runs a load: workers and their schedule, the interface of a target, and the proof of its content.

pub(crate) mod load;
pub(crate) mod note;
pub(crate) mod part;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod schedule;
pub(crate) mod server_waits;
pub(crate) mod target;
pub(crate) mod under_way;
pub(crate) mod verification;
pub(crate) mod worker;
