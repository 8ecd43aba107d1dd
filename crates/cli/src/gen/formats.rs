//! `sawmill gen --format arrow|ndjson|csv`: the same rows through Arrow batches.
//!
//! Files are made whole or not at all, as Parquet files are. Several files are made at a time; a file is
//! made by one thread.

mod batch_writer;
mod csv;
mod ndjson;
mod text_form;

use std::io::{self, BufWriter};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use arrow_schema::ArrowError;
use batch_writer::{BatchWriter, Counted, Out};
use sawmill_generator::{Dataset, Existing, Layout, Part, WrittenFile};
use sawmill_profile::{Phase, PhaseReport, Profile};

use crate::error::Error;
use crate::r#gen::format::Format;
use crate::r#gen::format_files::{Planned, plan};
use crate::r#gen::{GenArgs, GenResult, content_sum, summary};
use crate::screen::console::Console;
use text_form::NoText;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Generates another format than Parquet.
pub(super) fn run(args: &GenArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let refuse = |what: &str, advice: &str| {
        let what = format!("{what} with --format {}", args.format.name());
        Err(Error::usage(what, args.out.display().to_string(), advice))
    };
    if args.layout.partition_by.is_some() {
        return refuse("--partition-by", "folders are made for Parquet files alone");
    }
    if args.layout.existing() == Existing::Resume {
        return refuse("--resume", "--overwrite makes all files again");
    }
    if let Some(option) = args.files.given() {
        return refuse(option, "it is an option of Parquet files: leave it out");
    }
    let (dataset, layout, _) = args.plan()?;
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let job = FormatJob {
        dataset: &dataset,
        layout: &layout,
        format: args.format,
        out: &args.out,
        seed: args.seed,
        threads: threads.map_or(1, NonZeroUsize::get),
        part: args.layout.part,
        existing: args.layout.existing(),
        csv_null: args.csv_null.as_deref().unwrap_or_default(),
        sources: &args.dataset.sources(),
    };
    let profile = Profile::new();
    let content_sum = content_sum::of(args, (&dataset, &layout), &profile, console, cancel)?;
    let (files, phase) = generate(&job, &profile, console, cancel)?;
    let said = || summary(&files, (None, content_sum), &phase, &args.out);
    if args.out == Path::new("-") {
        console.step(&said());
        return Ok(());
    }
    let rows = files.iter().map(|file| file.rows).sum();
    let result = GenResult {
        dataset: dataset.name(),
        rows,
        seed: args.seed,
        file_checksum: None,
        content_sum,
        files: &files,
        phase: phase.clone(),
    };
    console.result(&result, || said() + "\n")
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
    /// How CSV writes null.
    pub csv_null: &'a str,
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
        refuse_what_csv_cannot_be(job)?;
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
            let failed = made.is_err();
            // Before the others stop: theirs is not the reason.
            results.lock().unwrap_or_else(PoisonError::into_inner).push(made);
            stop.fetch_or(failed, Relaxed);
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

/// CSV has no place for nested values, and readers skip empty lines, as which nulls of an only column would come.
fn refuse_what_csv_cannot_be(job: &FormatJob<'_>) -> Result<(), Error> {
    let refuse = |what: String, advice: &str| Err(Error::usage(what, job.dataset.name(), advice));
    let schema = job.dataset.arrow_schema();
    let fields = schema.fields();
    if let Some(field) = fields.iter().find(|field| field.data_type().is_nested()) {
        let what = format!("the column {} is nested, which CSV cannot be", field.name());
        return refuse(what, "use --format ndjson");
    }
    if let (true, [only]) = (job.csv_null.is_empty(), &fields[..])
        && only.is_nullable()
    {
        let what =
            format!("nulls of the only column {} would be empty lines, which readers skip", only.name());
        return refuse(what, "give null a text, like --csv-null NULL");
    }
    Ok(())
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
    let form = (job.format, planned.path.is_none(), job.csv_null);
    let mut writer = BatchWriter::new(form, &schema, out).map_err(arrow)?;
    let rows = job.layout.file_rows(planned.file);
    let mut first = rows.start;
    // As many rows together as in a page of Parquet, which are fewer where they are large.
    let batch_rows = BATCH_ROWS.min(usize::try_from(job.layout.page_rows).unwrap_or(BATCH_ROWS));
    for batch in job.dataset.batches(rows, job.seed, batch_rows) {
        if stopped() {
            return Err(Error::from(sawmill_generator::Error::cancelled()));
        }
        let batch = batch?;
        writer.write(&batch).map_err(|error| match error {
            NoText::Value { column, row, what } => Error::usage(
                what,
                format!("{}, field {column}, row {}", shown.display(), first + row as u64),
                "--format parquet and --format arrow hold it; or keep the values within the years 0 to 9999",
            ),
            NoText::Arrow(error) => arrow(error),
        })?;
        first += batch.num_rows() as u64;
        phase.add_rows(batch.num_rows() as u64);
    }
    writer.finish().map_err(arrow)
}
