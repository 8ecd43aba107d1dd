//! Runs and compares measurements: whole processes, statistics with intervals, result files.

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod compare;
pub(crate) mod machine;
pub(crate) mod results;
pub(crate) mod run;
