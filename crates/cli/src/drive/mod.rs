//! `sawmill drive`: load-tests a database, and adds up the results of several driving processes.

mod args;
#[cfg(feature = "drive")]
mod merge;
#[cfg(feature = "drive")]
mod plan;
#[cfg(feature = "drive")]
mod progress;
#[cfg(feature = "drive")]
mod results;
#[cfg(feature = "drive")]
mod run;
#[cfg(feature = "drive")]
mod text;
mod watching;

pub(crate) use args::DriveCommand;
#[cfg(feature = "drive")]
pub(crate) use results::report;
#[cfg(feature = "drive")]
pub(crate) use run::run;

/// Without the feature, the command says how to get it.
#[cfg(not(feature = "drive"))]
pub(crate) fn run(
    _: &DriveCommand,
    _: crate::screen::console::Console,
    _: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> Result<(), crate::error::Error> {
    Err(crate::error::Error::not_built("sawmill drive".to_owned(), "drive"))
}
