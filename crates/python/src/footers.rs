//! A footer as a stream of one row for each column chunk.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use sawmill_footer::{ColumnChunk, Options};

use crate::errors::raised;
use crate::streams::Stream;

/// The footer of a Parquet file. It is a table of one row for each column chunk:
/// pyarrow.table(footer), polars.from_arrow(footer).
#[pyclass(module = "sawmill", frozen)]
pub(crate) struct Footer {
    footer: Arc<sawmill_footer::Footer>,
    chunks: Stream,
}

/// Decodes the footer of a file. `columns` are names or patterns: others are skipped, which takes a third of the time.
///
/// ```text
/// >>> footer = sawmill.footer("trips.parquet")
/// >>> footer.rows, footer.row_groups
/// (1000, 1)
/// >>> pyarrow.table(footer).num_rows == len(footer.schema)
/// True
/// ```
#[pyfunction]
#[pyo3(signature = (path, *, columns=None))]
pub(crate) fn footer(py: Python<'_>, path: PathBuf, columns: Option<Vec<String>>) -> PyResult<Footer> {
    let options = columns.map_or_else(Options::new, |columns| Options::new().column_globs(columns));
    let footer = py
        .detach(|| sawmill_footer::Footer::open_with(&path, &options))
        .map_err(|error| raised(py, 1, &error.what(), &error.place(), &error.advice()))?;
    let footer = Arc::new(footer);
    let shared = Arc::clone(&footer);
    let chunks = Stream::new(move || {
        let batch = table(&shared);
        let schema =
            batch.as_ref().map_or_else(|_| arrow_schema::Schema::empty().into(), RecordBatch::schema);
        Box::new(RecordBatchIterator::new([batch], schema))
    });
    Ok(Footer { footer, chunks })
}

#[pymethods]
impl Footer {
    /// The number of rows.
    #[getter]
    fn rows(&self) -> i64 {
        self.footer.num_rows()
    }

    /// The number of row groups.
    #[getter]
    fn row_groups(&self) -> usize {
        self.footer.num_row_groups()
    }

    /// The program that wrote the file, if it says so.
    #[getter]
    fn created_by(&self) -> Option<String> {
        self.footer.created_by().map(|name| name.into_owned())
    }

    /// The length of the footer in bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.footer.footer_len()
    }

    /// The leaf columns: path and physical type.
    #[getter]
    fn schema(&self) -> Vec<(String, String)> {
        let leaves = self.footer.schema().leaves();
        leaves
            .map(|leaf| {
                (leaf.path(), leaf.physical_type().map_or_else(String::new, |kind| format!("{kind:?}")))
            })
            .collect()
    }

    /// Keys and values of the file.
    #[getter]
    fn key_value_metadata(&self) -> Vec<(String, Option<String>)> {
        let pairs = self.footer.key_value_metadata();
        pairs.map(|(key, value)| (key.into_owned(), value.map(|value| value.into_owned()))).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<sawmill.Footer: {} rows, {} row groups, {} columns>",
            self.rows(),
            self.row_groups(),
            self.footer.num_columns()
        )
    }

    /// The column chunks as a stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.chunks.capsule(py, requested_schema)
    }
}

/// One row for each column chunk.
fn table(footer: &sawmill_footer::Footer) -> Result<RecordBatch, ArrowError> {
    let chunks: Vec<ColumnChunk<'_>> = footer.row_groups().flat_map(|group| group.columns()).collect();
    let numbers = |value: fn(&ColumnChunk<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(chunks.iter().map(value).collect::<Int64Array>())
    };
    let names = |name: fn(&ColumnChunk<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(chunks.iter().map(name)))
    };
    RecordBatch::try_from_iter([
        (
            "row_group",
            Arc::new(UInt32Array::from_iter_values(
                chunks.iter().map(|chunk| chunk.row_group().index() as u32),
            )) as ArrayRef,
        ),
        ("column", names(|chunk| chunk.path())),
        ("type", names(|chunk| format!("{:?}", chunk.physical_type()))),
        ("codec", names(|chunk| format!("{:?}", chunk.codec()))),
        ("encodings", names(|chunk| chunk.encodings().to_string())),
        ("rows", numbers(|chunk| Some(chunk.row_group().num_rows()))),
        ("values", numbers(|chunk| Some(chunk.num_values()))),
        // A damaged statistic hides only this fact of its chunk.
        ("nulls", numbers(|chunk| chunk.null_count().ok().flatten())),
        ("compressed_bytes", numbers(|chunk| Some(chunk.compressed_size()))),
        ("uncompressed_bytes", numbers(|chunk| Some(chunk.uncompressed_size()))),
        ("data_page_offset", numbers(|chunk| Some(chunk.data_page_offset()))),
        ("dictionary_page_offset", numbers(|chunk| chunk.dictionary_page_offset())),
    ])
}
