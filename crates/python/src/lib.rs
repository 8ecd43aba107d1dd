//! Sawmill for Python: the native half of the module `sawmill`.
//!
//! | room | content |
//! |---|---|
//! | `streams` | Arrow streams by the C data interface, in and out |
//! | `generated` | rows of a dataset as a stream |
//! | `footers` | a footer as a stream of one row for each column chunk |
//! | `batches` | batches in memory as a source of a load |
//! | `loading` | a load of a stream, and its rows as binary COPY |
//! | `errors` | errors as exceptions with their parts |
//!
//! Functions that take file names are written in Python, in `python/sawmill`, and call the command.

mod batches;
mod errors;
mod footers;
mod generated;
mod loading;
mod streams;

use std::ffi::OsString;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: sawmill_cli::Watched<mimalloc::MiMalloc> = sawmill_cli::Watched(mimalloc::MiMalloc);

/// Runs the command `sawmill` in this process and returns its exit code. `program` starts it once more.
#[pyfunction]
fn command(py: Python<'_>, program: Vec<OsString>, words: Vec<OsString>) -> u8 {
    py.detach(|| sawmill_cli::command(program, words))
}

/// The native half of the module `sawmill`.
#[pymodule]
fn _sawmill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<errors::Error>())?;
    module.add_class::<streams::Stream>()?;
    module.add_class::<footers::Footer>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(generated::generate, module)?)?;
    module.add_function(wrap_pyfunction!(footers::footer, module)?)?;
    module.add_function(wrap_pyfunction!(loading::load_stream, module)?)?;
    module.add_function(wrap_pyfunction!(loading::pgcopy, module)?)
}
