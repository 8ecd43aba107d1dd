//! Output for people: results, progress, help, and the bottleneck.

pub(crate) mod connections;
pub(crate) mod console;
pub(crate) mod escape;
pub(crate) mod flame;
#[cfg(test)]
mod front_door_tests;
pub(crate) mod help;
pub(crate) mod limit;
pub(crate) mod phases;
pub(crate) mod short_help;
pub(crate) mod suggestions;
pub(crate) mod topic;
