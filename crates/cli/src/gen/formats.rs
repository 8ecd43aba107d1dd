//! `sawmill gen --format arrow|ndjson|csv`: the same rows through Arrow batches.
//!
//! Files are made whole or not at all, as Parquet files are. Several files are made at a time; a file is
//! made by one thread.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use clap::ValueEnum;
use sawmill_generator::{Dataset, Existing, Layout, Part, WrittenFile};
use sawmill_profile::{Phase, PhaseReport, Profile};

use crate::console::Console;
use crate::error::Error;
use crate::r#gen::format_files::{OpenFile, Planned, plan};

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// What files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Parquet,
    /// Arrow IPC: files, a stream on standard output.
    Arrow,
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated values behind a line of names; not for nested columns.
    Csv,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
        }
    }
}

/// What is to be made in a format other than Parquet.
pub(crate) struct FormatJob<'a> {
    pub dataset: &'a Dataset,
    pub layout: &'a Layout,
    pub format: Format,
    pub out: &'a Path,
    pub seed: u64,
    pub threads: usize,
    pub part: Part,
    pub existing: Existing,
    /// Files that the dataset was taken from.
    pub sources: &'a [PathBuf],
}

/// Generates under a progress bar.
pub(crate) fn generate(
    job: &FormatJob<'_>,
    profile: &Profile,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(Vec<WrittenFile>, PhaseReport), Error> {
    if job.format == Format::Csv {
        refuse_nested(job.dataset)?;
    }
    let planned = plan(job, console, cancel)?;
    let files = &planned.files;
    let phase = profile.phase("generate");
    let next = Mutex::new(files.iter());
    let results: Mutex<Vec<Result<WrittenFile, Error>>> = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    let work = || {
        loop {
            let Some(file) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
            let stopped = || cancel.load(Relaxed) || stop.load(Relaxed);
            let made = make(job, file, &phase, &stopped);
            stop.fetch_or(made.is_err(), Relaxed);
            results.lock().unwrap_or_else(PoisonError::into_inner).push(made);
            if stop.load(Relaxed) {
                return;
            }
        }
    };
    console.with_bar("generate", job.layout.part_rows(job.part), &AtomicU64::new(0), &phase, || {
        std::thread::scope(|scope| {
            for _ in 1..job.threads.min(files.len()) {
                scope.spawn(work);
            }
            work();
        });
    });
    let mut written = Vec::new();
    // The first error is why the others stopped.
    for result in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        written.push(result?);
    }
    written.sort_by_key(|file| file.file);
    Ok((written, phase.finish()))
}

/// CSV has no place for nested values.
fn refuse_nested(dataset: &Dataset) -> Result<(), Error> {
    let schema = dataset.arrow_schema();
    match schema.fields().iter().find(|field| field.data_type().is_nested()) {
        Some(field) => Err(Error::usage(
            format!("the column {} is nested, which CSV cannot be", field.name()),
            dataset.name(),
            "use --format ndjson",
        )),
        None => Ok(()),
    }
}

pub(crate) fn failed(doing: &str, path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "make room or write somewhere else, then run the same command again",
        io::ErrorKind::BrokenPipe => "the reader of the output went away",
        _ => "mend the cause, then run the same command again",
    };
    Error::failure(format!("{doing} failed: {error}"), path.display().to_string(), advice)
}

/// Makes one file.
fn make(
    job: &FormatJob<'_>,
    planned: &Planned,
    phase: &Phase,
    stopped: &dyn Fn() -> bool,
) -> Result<WrittenFile, Error> {
    let shown = planned.path.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let wrong = |error: &io::Error| failed("writing", &shown, error);
    let target = planned.open().map_err(|e| wrong(&e))?;
    let mut out = BufWriter::with_capacity(1 << 20, Counted { target, bytes: 0, phase });
    write_rows(job, planned, phase, stopped, &mut out, &shown)?;
    let Counted { target, bytes, .. } = out.into_inner().map_err(|e| wrong(e.error()))?;
    target.finish().map_err(|e| wrong(&e))?;
    let rows = job.layout.file_rows(planned.file);
    let rows = rows.end - rows.start;
    Ok(WrittenFile { path: shown, file: planned.file, rows, row_groups: 0, bytes, sum: None, kept: false })
}

/// Writes all rows of a file.
fn write_rows(
    job: &FormatJob<'_>,
    planned: &Planned,
    phase: &Phase,
    stopped: &dyn Fn() -> bool,
    out: &mut Out<'_>,
    shown: &Path,
) -> Result<(), Error> {
    let arrow = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => failed("writing", shown, &error),
        error => Error::failure(
            format!("writing failed: {error}"),
            shown.display().to_string(),
            "use another --format",
        ),
    };
    let schema = job.dataset.arrow_schema();
    let mut writer = BatchWriter::new(job.format, planned.path.is_none(), &schema, out).map_err(arrow)?;
    for batch in job.dataset.batches(job.layout.file_rows(planned.file), job.seed, BATCH_ROWS) {
        if stopped() {
            return Err(Error::from(sawmill_generator::Error::cancelled()));
        }
        let batch = batch?;
        writer.write(&batch).map_err(arrow)?;
        phase.add_rows(batch.num_rows() as u64);
    }
    writer.finish().map_err(arrow)
}

/// A writer of one of the formats.
enum BatchWriter<'a, 'w> {
    File(Box<FileWriter<&'a mut Out<'w>>>),
    Stream(Box<StreamWriter<&'a mut Out<'w>>>),
    Ndjson(arrow_json::LineDelimitedWriter<&'a mut Out<'w>>),
    Csv(Box<arrow_csv::Writer<&'a mut Out<'w>>>),
}

impl<'a, 'w> BatchWriter<'a, 'w> {
    fn new(
        format: Format,
        stream: bool,
        schema: &SchemaRef,
        out: &'a mut Out<'w>,
    ) -> Result<Self, ArrowError> {
        Ok(match format {
            Format::Arrow if stream => BatchWriter::Stream(Box::new(StreamWriter::try_new(out, schema)?)),
            Format::Arrow | Format::Parquet => BatchWriter::File(Box::new(FileWriter::try_new(out, schema)?)),
            Format::Ndjson => BatchWriter::Ndjson(arrow_json::LineDelimitedWriter::new(out)),
            Format::Csv => {
                let mut writer = arrow_csv::WriterBuilder::new().with_header(true).build(out);
                // The names, even where no row follows.
                writer.write(&RecordBatch::new_empty(in_utc(schema)))?;
                BatchWriter::Csv(Box::new(writer))
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            BatchWriter::File(writer) => writer.write(batch),
            BatchWriter::Stream(writer) => writer.write(batch),
            BatchWriter::Ndjson(writer) => writer.write(&text_batch(batch)?),
            BatchWriter::Csv(writer) => writer.write(&text_batch(batch)?),
        }
    }

    fn finish(self) -> Result<(), ArrowError> {
        match self {
            BatchWriter::File(mut writer) => writer.finish(),
            BatchWriter::Stream(mut writer) => writer.finish(),
            BatchWriter::Ndjson(mut writer) => writer.finish(),
            BatchWriter::Csv(_) => Ok(()),
        }
    }
}

/// The schema with the zones of its columns as UTC, which text shows as `Z`.
fn in_utc(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Timestamp(unit, Some(_)) => {
                field.as_ref().clone().with_data_type(DataType::Timestamp(*unit, Some("+00:00".into())))
            }
            _ => field.as_ref().clone(),
        })
        .collect();
    std::sync::Arc::new(arrow_schema::Schema::new(fields))
}

/// A batch that can be shown as text: names of zones need a database of them, instants do not.
fn text_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = in_utc(&batch.schema());
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        let data = column.to_data();
        if data.data_type() == field.data_type() {
            return Ok(column.clone());
        }
        let data = data.into_builder().data_type(field.data_type().clone()).build()?;
        Ok(arrow_array::make_array(data))
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    RecordBatch::try_new(schema, columns)
}

/// A writer that counts what goes through it.
struct Counted<'w> {
    target: OpenFile,
    bytes: u64,
    phase: &'w Phase,
}

/// Where the rows of a file go.
type Out<'w> = BufWriter<Counted<'w>>;

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.target.write(bytes)?;
        self.bytes += n as u64;
        self.phase.add_bytes(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
