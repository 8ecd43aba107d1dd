//! Errors in three parts: what was wrong, where, and what to do.

use std::error::Error;

use datafusion::error::DataFusionError;

/// A statement or a plan that cannot be executed.
pub(crate) fn refused(what: impl AsRef<str>, place: &str, advice: &str) -> DataFusionError {
    DataFusionError::Plan(format!("{} - {place} - {advice}", what.as_ref()))
}

/// An error of another crate, whose text has all three parts.
pub(crate) fn external(error: impl Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
