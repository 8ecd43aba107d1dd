//! `sawmill drive`: load-tests a database.

mod args;
#[cfg(feature = "drive")]
mod lines;
#[cfg(feature = "drive")]
mod plan;
#[cfg(feature = "drive")]
mod run;
#[cfg(feature = "drive")]
mod text;

pub(crate) use args::DriveArgs;
#[cfg(feature = "drive")]
pub(crate) use run::run;

/// Without the feature, the command says how to get it.
#[cfg(not(feature = "drive"))]
pub(crate) fn run(
    _: &DriveArgs,
    _: crate::screen::console::Console,
    _: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> Result<(), crate::error::Error> {
    Err(crate::error::Error::not_built("sawmill drive".to_owned(), "drive"))
}
