//! Rows of a dataset as a stream.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use sawmill_generator::{Dataset, Error, ErrorKind};

use crate::errors::raised;
use crate::streams::Stream;

/// Generates rows of a dataset: the name of a built-in one such as "contacts", the path of a spec, or a spec's text.
///
/// The same spec and seed give the same rows. The stream makes `batch_rows` rows at a time, when they are read.
///
/// ```text
/// >>> pyarrow.table(sawmill.generate("contacts", rows=1000)).num_rows
/// 1000
/// ```
#[pyfunction]
#[pyo3(signature = (spec, *, rows=None, seed=None, scale=None, batch_rows=65_536))]
pub(crate) fn generate(
    py: Python<'_>,
    spec: PathBuf,
    rows: Option<u64>,
    seed: Option<u64>,
    scale: Option<f64>,
    batch_rows: u32,
) -> PyResult<Stream> {
    let failed = |error: Error| {
        let exit = if error.kind() == ErrorKind::Spec { 2 } else { 1 };
        raised(py, exit, &error.what(), &error.place(), &error.advice())
    };
    let text = spec.to_string_lossy();
    let dataset = match text.contains('\n') {
        true => Dataset::from_toml(&text),
        false if spec.extension().is_some_and(|kind| kind == "toml") => Dataset::from_file(&spec),
        false => Dataset::named(&text, scale),
    };
    let dataset = Arc::new(dataset.map_err(failed)?);
    let (rows, seed) = dataset.rows_and_seed(rows, seed).map_err(failed)?;
    let Some(rows) = rows else {
        return Err(raised(py, 2, "the dataset has no number of rows of its own", &text, "give rows="));
    };
    let batch_rows = u64::from(batch_rows.max(1));
    Ok(Stream::new(move || {
        Box::new(Rows { dataset: Arc::clone(&dataset), seed, next: 0, end: rows, batch_rows })
    }))
}

/// The rows from `next` to `end`.
struct Rows {
    dataset: Arc<Dataset>,
    seed: u64,
    next: u64,
    end: u64,
    batch_rows: u64,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.end.min(self.next.saturating_add(self.batch_rows));
        let batch = self.dataset.batches(self.next..end, self.seed, self.batch_rows as usize).next()?;
        // Batches of long strings are smaller. An error ends the stream.
        self.next = batch.as_ref().map_or(self.end, |batch| self.next + batch.num_rows() as u64);
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.dataset.arrow_schema()
    }
}
