//! `sawmill gen --as arrow|ndjson|csv`: writes the same rows from Arrow batches.
//!
//! Files are written whole or not at all, like Parquet files. Several files are written in parallel, each by
//! one thread.

pub(crate) mod batch_writer;
mod csv;
pub(crate) mod files;
mod map_keys;
pub(crate) mod ndjson;
pub(crate) mod text_form;

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use arrow_schema::ArrowError;
use batch_writer::{BatchWriter, Counted, Out};
use sawmill_generator::{Dataset, Existing, Layout, WrittenFile};
use sawmill_profile::{Phase, PhaseReport, Pool, Profile};

use crate::error::{Error, Result};
use crate::r#gen::format::Format;
use crate::r#gen::{GenArgs, GenResult, Made, content_sum, summary};
use crate::interrupt;
use crate::screen::console::Console;
use files::{Planned, plan};
use text_form::NoText;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Generates another format than Parquet.
pub(super) fn run(args: &GenArgs, console: Console) -> Result<Made> {
    let reject = |what: &str, advice: &str| {
        let what = format!("{what} with --as {}", args.format.extension());
        Err(Error::usage(what, args.out.display().to_string(), advice))
    };
    if args.layout.partition_by.is_some() {
        return reject("--partition-by", "folders are available for Parquet files only");
    }
    if args.layout.existing() == Existing::Finish {
        return reject("gen finish", "only Parquet files have manifests: compare the number of files");
    }
    if args.layout.existing() == Existing::Resume {
        return reject("--resume", "use --overwrite, which writes all files again");
    }
    if let Some(option) = args.files.given() {
        return reject(&option, "leave it out: it is available for Parquet files only");
    }
    let (dataset, layout, _) = args.plan(console)?;
    let job = FormatJob { args, dataset: &dataset, layout: &layout };
    let profile = Profile::new();
    let content_sum = content_sum::planned(args, (&dataset, &layout), &profile, console)?;
    let (files, phase) = generate(&job, &profile, console)?;
    let summary = summary(&files, (None, content_sum), &phase, &args.out);
    let result = GenResult::new(&dataset, args.seed, files, (None, content_sum), phase);
    Ok(Made { result, summary })
}

/// What to write in a format other than Parquet.
pub(crate) struct FormatJob<'a> {
    pub args: &'a GenArgs,
    pub dataset: &'a Dataset,
    pub layout: &'a Layout,
}

impl FormatJob<'_> {
    /// How CSV writes null.
    fn csv_null(&self) -> &str {
        self.args.csv_null.as_deref().unwrap_or_default()
    }
}

/// Generates under a progress bar.
pub(crate) fn generate(
    job: &FormatJob<'_>,
    profile: &Profile,
    console: Console,
) -> Result<(Vec<WrittenFile>, PhaseReport)> {
    if job.args.format == Format::Csv {
        reject_what_csv_cannot_hold(job)?;
    }
    let planned = plan(job, console)?;
    let files = &planned.files;
    let phase = profile.phase("generate");
    let stop = AtomicBool::new(false);
    let stopped = || interrupt::asked() || stop.load(Relaxed);
    let written = Mutex::new(Vec::with_capacity(files.len()));
    let write = |(): &mut (), file| {
        let made = make(job, file, &phase, &stopped)?;
        written.lock().unwrap_or_else(PoisonError::into_inner).push(made);
        Ok::<_, Error>(())
    };
    let rows = job.layout.part_rows(job.args.layout.part);
    let pool = Pool::new("generate", job.args.threads().get().min(files.len()), Some(&phase.sink()));
    let made = || pool.for_each(files, &stop, || Ok(()), write);
    console.with_bar("generate", rows, &phase, made)?;
    let mut written: Vec<WrittenFile> = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    written.sort_by_key(|file| file.file);
    Ok((written, phase.finish()))
}

/// Rejects nested columns, for which CSV has no place, and nulls of an only column: they would be empty
/// lines, which readers skip.
fn reject_what_csv_cannot_hold(job: &FormatJob<'_>) -> Result<()> {
    let reject = |what: String, advice: &str| Err(Error::usage(what, job.dataset.name(), advice));
    let schema = job.dataset.arrow_schema();
    let fields = schema.fields();
    if let Some(field) = fields.iter().find(|field| field.data_type().is_nested()) {
        let what = format!("the column {} is nested, which CSV cannot represent", field.name());
        return reject(what, "use --as ndjson");
    }
    if let (true, [only]) = (job.csv_null().is_empty(), &fields[..])
        && only.is_nullable()
    {
        let what =
            format!("nulls of the only column {} would be empty lines, which readers skip", only.name());
        return reject(what, "give null a text, like --csv-null NULL");
    }
    Ok(())
}

/// Writes one file.
fn make(
    job: &FormatJob<'_>,
    planned: &Planned,
    phase: &Phase,
    stopped: &dyn Fn() -> bool,
) -> Result<WrittenFile> {
    let shown = planned.path.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let wrong = |error: &io::Error| Error::of_output("writing", &shown, error);
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
) -> Result<()> {
    let arrow = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => Error::of_output("writing", shown, &error),
        error => Error::failure(
            format!("writing failed: {error}"),
            shown.display().to_string(),
            "use another --as",
        ),
    };
    let schema = job.dataset.arrow_schema();
    let form = (job.args.format, planned.path.is_none(), job.csv_null());
    let mut writer = BatchWriter::new(form, &schema, out).map_err(arrow)?;
    let rows = job.layout.file_rows(planned.file);
    let mut first = rows.start;
    // As many rows as in a page of Parquet, which has fewer if rows are large.
    let batch_rows = BATCH_ROWS.min(usize::try_from(job.layout.page_rows).unwrap_or(BATCH_ROWS));
    for batch in job.dataset.batches(rows, job.args.seed, batch_rows) {
        if stopped() {
            return Err(Error::from(sawmill_generator::Error::cancelled()));
        }
        let batch = batch?;
        writer.write(&batch).map_err(|error| match error {
            NoText::Value { column, row, what } => Error::usage(
                what,
                format!("{}, field {column}, row {}", shown.display(), first + row as u64),
                "use --as parquet or arrow, or keep the values within the years 0 to 9999",
            ),
            NoText::Option(what) => Error::usage(what, shown.display().to_string(), ""),
            NoText::Arrow(error) => arrow(error),
        })?;
        first += batch.num_rows() as u64;
        phase.add_rows(batch.num_rows() as u64);
    }
    writer.finish().map(|_| ()).map_err(arrow)
}
