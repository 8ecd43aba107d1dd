//! A load of an Arrow stream, and its rows as binary COPY.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sawmill_cratedb::{CrateDb, CrateServer};
use sawmill_loader::{LoadOptions, LoadReport, Mode, TableName, Target, load};
use sawmill_pgcopy::{Buffers, CopyEncoder, HEADER, TRAILER, ValueOptions, natural_columns};
use sawmill_pgwire::Server;
use sawmill_postgres::Postgres;
use sawmill_profile::{Phase, Profile, caught};
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::batches::Batches;
use crate::errors::{of_load, raised};
use crate::streams::batches_of;

/// How often a load looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// How often a notebook shows the progress.
const TELL: Duration = Duration::from_secs(1);

/// Loads an object with `__arrow_c_stream__` into a table, and returns the report as JSON, for sawmill.load. Ctrl-C
/// ends the load; the same call finishes it.
#[pyfunction]
#[pyo3(signature = (stream, to, table, *, mode="create", verify=false, connections=None))]
pub(crate) fn load_stream(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    to: &str,
    table: &str,
    mode: &str,
    verify: bool,
    connections: Option<usize>,
) -> PyResult<String> {
    let (schema, batches) = batches_of(stream)?;
    let source = py.detach(|| Batches::new(schema, batches));
    let target = target(to, table, mode).map_err(|error| of_load(py, &error))?;
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8));
    let default = LoadOptions::default();
    let batch_bytes = if CrateServer::understands(to) { CrateDb::BATCH_BYTES } else { default.batch_bytes };
    let options = LoadOptions { degree: connections.unwrap_or(cores).max(1), verify, batch_bytes, ..default };
    let phase = Profile::new().phase("load");
    let rows = source.files().iter().map(|file| file.rows).sum();
    let report = interruptible(py, &phase, rows, |cancel| {
        load(&source, target.as_ref(), &options, &Control::new(cancel, &phase))
    })?;
    serde_json::to_string(&report).map_err(|error| raised(py, 1, &error.to_string(), "the report", ""))
}

/// Shows in a notebook how many rows are loaded.
fn tell(py: Python<'_>, phase: &Phase, rows: u64) -> PyResult<()> {
    py.import("sawmill")?.getattr("_tell")?.call1((phase.rows(), rows)).map(drop)
}

/// Runs a load of `rows` rows on a new thread, while the calling thread watches for signals and shows the progress.
fn interruptible(
    py: Python<'_>,
    phase: &Phase,
    rows: u64,
    work: impl FnOnce(&AtomicBool) -> Result<LoadReport> + Send,
) -> PyResult<LoadReport> {
    let cancel = AtomicBool::new(false);
    let (send, mut receive) = bounded(1);
    let (done, interrupted) = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The receiver waits until there is a result.
            let _ = send.send(caught("load", || work(&cancel)));
        });
        let (mut interrupted, mut next) = (None, Instant::now() + TELL);
        loop {
            let waiting = &mut receive;
            match py.detach(move || waiting.recv_timeout(LOOK)) {
                Ok(done) => return (done, interrupted),
                Err(RecvTimeoutError::Disconnected) => {
                    return (Err(Error::new(Kind::Source, "the thread of the load has ended")), interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let mut looked = py.check_signals();
                    if Instant::now() >= next {
                        next += TELL;
                        looked = looked.and_then(|()| tell(py, phase, rows));
                    }
                    if let Err(signal) = looked {
                        cancel.store(true, Relaxed);
                        interrupted = Some(signal);
                    }
                }
            }
        }
    });
    match (done, interrupted) {
        (Err(_), Some(signal)) => Err(signal),
        (done, _) => done.map_err(|error| of_load(py, &error)),
    }
}

fn target(to: &str, table: &str, mode: &str) -> Result<Box<dyn Target>> {
    let modes = [Mode::Create, Mode::Append, Mode::Truncate, Mode::Replace];
    let Some(mode) = modes.into_iter().find(|known| known.name() == mode) else {
        let what = format!("a stream cannot be loaded in mode {mode:?}");
        return Err(Error::new(Kind::Config, what).advise("give create, append, truncate or replace"));
    };
    Ok(match CrateServer::understands(to) {
        true => Box::new(CrateDb::new(to.parse()?, sawmill_cratedb::table_name(table)?).mode(mode)),
        false => Box::new(Postgres::new(to.parse::<Server>()?, table.parse::<TableName>()?).mode(mode)),
    })
}

/// The rows of an object with `__arrow_c_stream__` as PostgreSQL's binary COPY, for any driver's
/// `COPY table FROM STDIN (FORMAT binary)`. Both are held in memory.
///
/// ```text
/// >>> sawmill.pgcopy(pyarrow.table({"id": [1, 2]}))[:6]
/// b'PGCOPY'
/// ```
#[pyfunction]
pub(crate) fn pgcopy<'py>(py: Python<'py>, stream: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let (schema, batches) = batches_of(stream)?;
    let failed = |what: String| raised(py, 1, &what, "the stream", "convert the column before");
    let columns =
        natural_columns(&schema, &ValueOptions::default()).map_err(|error| failed(error.to_string()))?;
    let mut encoder = CopyEncoder::new(columns, Buffers::new(1 << 20));
    let mut copy = HEADER.to_vec();
    let mut emit = |rows: bytes::Bytes, _: u64| -> std::result::Result<(), std::convert::Infallible> {
        copy.extend_from_slice(&rows);
        Ok(())
    };
    for batch in &batches {
        py.detach(|| encoder.batch(batch, &mut emit)).map_err(|stop| failed(stop.to_string()))?;
        py.check_signals()?;
    }
    encoder.flush(&mut emit).map_err(|stop| failed(stop.to_string()))?;
    copy.extend_from_slice(&TRAILER);
    Ok(PyBytes::new(py, &copy))
}
