//! Arrow streams by the [C stream interface](https://arrow.apache.org/docs/format/CStreamInterface.html), in
//! [PyCapsules](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html).

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The name that the interface gives the capsule.
const NAME: &std::ffi::CStr = c"arrow_array_stream";

/// Makes a reader of all rows, from the first.
type Open = Box<dyn Fn() -> Box<dyn RecordBatchReader + Send> + Send + Sync>;

/// Rows that any library reads by the C stream interface: pyarrow.table(stream), polars.from_arrow(stream). Each
/// reader begins at the first row.
#[pyclass(module = "sawmill", frozen)]
pub(crate) struct Stream {
    open: Open,
}

impl Stream {
    pub(crate) fn new(open: impl Fn() -> Box<dyn RecordBatchReader + Send> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open) }
    }

    /// The stream as a capsule; `requested_schema` changes nothing.
    pub(crate) fn capsule<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new((self.open)()), NAME)
    }
}

#[pymethods]
impl Stream {
    /// The stream as a capsule. It keeps the schema of the rows even if another is requested, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.capsule(py, requested_schema)
    }
}

/// The schema and all batches of an object with `__arrow_c_stream__`: a table, a data frame, a stream. The batches
/// share the object's memory. Ctrl-C ends it.
pub(crate) fn batches_of(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let kind = object.get_type().name()?;
    if !object.hasattr("__arrow_c_stream__")? {
        return Err(PyTypeError::new_err(format!(
            "{kind} has no __arrow_c_stream__: give a path, or a table of pyarrow, polars, pandas or DuckDB"
        )));
    }
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the interface states that a capsule of this name holds a valid ArrowArrayStream, and that a consumer may
    // move it out. `from_raw` leaves a released stream behind, so that it is released once.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) };
    let failed = |error: arrow_schema::ArrowError| PyValueError::new_err(error.to_string());
    let mut reader = reader.map_err(|error| {
        PyTypeError::new_err(format!("{kind} has no columns: give a table or a data frame ({error})"))
    })?;
    let (schema, mut batches) = (reader.schema(), Vec::new());
    while let Some(batch) = object.py().detach(|| reader.next()) {
        batches.push(batch.map_err(failed)?);
        object.py().check_signals()?;
    }
    Ok((schema, batches))
}
