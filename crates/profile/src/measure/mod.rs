//! Runs and compares measurements: whole processes, statistics with intervals, result files.

pub(crate) mod bootstrap;
pub(crate) mod captured_output;
pub(crate) mod command_run;
pub(crate) mod command_words;
pub(crate) mod commit;
pub(crate) mod comparison;
pub(crate) mod hardware;
pub(crate) mod machine;
#[cfg(unix)]
pub(crate) mod measured_child;
#[cfg(unix)]
pub(crate) mod output_reader;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod statistics;
