//! Runs other programs and measures them: CPU time, peak memory, output.

pub(crate) mod captured_output;
pub(crate) mod command_run;
pub(crate) mod command_words;
pub(crate) mod measured_child;
pub(crate) mod output_reader;
