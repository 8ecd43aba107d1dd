//! `sawmill drive`: load-tests a database, and adds up the results of several driving processes.

mod args;
mod merge;
mod plan;
mod progress;
mod results;
mod run;
mod watching;

pub(crate) use args::DriveCommand;
pub(crate) use results::report;
pub(crate) use run::run;
