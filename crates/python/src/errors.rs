//! Errors as exceptions, with the fields of the command's errors as JSON: `code`, `what`, `where` and `advice`, and the
//! exit code.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sawmill_source::Kind;

create_exception!(sawmill, Error, PyException, "What was wrong, where, and what to do.");

/// An exception with these parts.
pub(crate) fn raised(py: Python<'_>, exit: u8, what: &str, place: &str, advice: &str) -> PyErr {
    let parts: Vec<&str> = [what, place, advice].into_iter().filter(|part| !part.is_empty()).collect();
    let error = Error::new_err(parts.join(" - "));
    let value = error.value(py);
    let code = match exit {
        2 => "usage",
        4 => "mismatch",
        130 => "interrupted",
        _ => "failure",
    };
    for (name, part) in [("code", code), ("what", what), ("where", place), ("advice", advice)] {
        if let Err(failed) = value.setattr(name, part) {
            return failed;
        }
    }
    match value.setattr("exit_code", exit) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// An error of a source or a load.
pub(crate) fn of_load(py: Python<'_>, error: &sawmill_source::Error) -> PyErr {
    let exit = match error.kind() {
        Kind::Cancelled => 130,
        Kind::Config => 2,
        Kind::Mismatch => 4,
        _ => 1,
    };
    let (what, advice) = (error.what(), error.advice());
    // A stream does not have the command's options.
    let what = what.split_once(" (--").map_or(what.as_str(), |(what, _)| what);
    let advice = if advice.contains("--") { "change the rows or columns before the load" } else { &advice };
    raised(py, exit, what, &error.place(), advice)
}
