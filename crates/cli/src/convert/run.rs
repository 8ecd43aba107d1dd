//! Reads the inputs, and writes the output whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use sawmill_profile::{Phase, PhaseReport, Profile};
use sawmill_source::{Control, Source};
use sawmill_store::WholeFile;
use serde::Serialize;

use super::units_in_order;
use super::writer::{ParquetFile, cast, of_parquet, parquet_writer, plain_type, text_writer, without_views};
use super::{ConvertArgs, OutputFormat};
use crate::arguments::inputs;
use crate::error::Error;
use crate::r#gen::format::Format;
use crate::r#gen::formats::batch_writer::Counted;
use crate::r#gen::formats::failed;
use crate::r#gen::formats::files::OpenFile;
use crate::r#gen::formats::text_form::NoText;
use crate::screen::console::Console;
use crate::screen::phases;

/// What `--json` prints.
#[derive(Serialize)]
struct Converted<'a> {
    out: &'a Path,
    files: usize,
    rows: u64,
    bytes_in: u64,
    bytes_out: u64,
    phase: PhaseReport,
}

pub(crate) fn run(args: &ConvertArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    let format = args.format()?;
    let is_stream = args.out == Path::new("-");
    let inputs = inputs::open(&args.files, &args.columns, &args.text, &args.objects, console, cancel)?;
    let filtered = args.rows.filtered(&inputs, console, cancel)?;
    let source = filtered.as_ref().map_or(inputs.source(), |filtered| filtered);
    let limited = args.rows.limited(source);
    let source = limited.as_ref().map_or(source, |limited| limited);
    if format == OutputFormat::Csv {
        reject_nested(source)?;
    }
    let profile = Profile::new();
    let phase = profile.phase("convert");
    let bytes_out =
        console.with_bar("convert", source.rows(), &AtomicU64::new(0), &phase, || match format {
            OutputFormat::Parquet => to_parquet(args, source, &phase, cancel),
            OutputFormat::Csv => to_text(args, Format::Csv, source, &phase, cancel),
            OutputFormat::Ndjson => to_text(args, Format::Ndjson, source, &phase, cancel),
        })?;
    let converted = Converted {
        out: &args.out,
        files: source.files().len(),
        rows: phase.rows(),
        bytes_in: source.files().iter().map(|file| file.bytes).sum(),
        bytes_out,
        phase: phase.finish(),
    };
    if is_stream {
        console.step(&summary(&converted));
        return Ok(());
    }
    console.result(&converted, || summary(&converted) + "\n")
}

fn summary(converted: &Converted<'_>) -> String {
    let Converted { out, files, rows, bytes_in, bytes_out, phase } = converted;
    let seconds = phase.wall.as_secs_f64();
    format!(
        "{}: {} {} of {files} {}, {} from {} in {seconds:.2} s",
        out.display(),
        phases::thousands(*rows),
        if *rows == 1 { "row" } else { "rows" },
        if *files == 1 { "file" } else { "files" },
        phases::bytes(*bytes_out),
        phases::bytes(*bytes_in),
    )
}

/// Returns the number of written bytes.
fn to_parquet(
    args: &ConvertArgs,
    source: &dyn Source,
    phase: &Phase,
    cancel: &AtomicBool,
) -> Result<u64, Error> {
    let file = ParquetFile { file: args.output_file(source)?, bytes: 0, phase };
    let mut writer = parquet_writer(args, source.schema(), file).map_err(|error| refused(args, error, 0))?;
    let rows = pass(args, source, phase, cancel, |batch| {
        writer.write(&cast(batch, without_views)?).map_err(of_parquet)
    })?;
    let written = writer.into_inner().map_err(|error| refused(args, of_parquet(error), rows))?;
    source.check_unchanged()?;
    written.file.finish().map_err(|error| failed("writing", &args.out, &error))?;
    Ok(written.bytes)
}

/// Returns the number of written bytes.
fn to_text(
    args: &ConvertArgs,
    format: Format,
    source: &dyn Source,
    phase: &Phase,
    cancel: &AtomicBool,
) -> Result<u64, Error> {
    let wrong = |error: &io::Error| refused(args, NoText::Arrow(io_error(error)), 0);
    let target = match args.out == Path::new("-") {
        true => OpenFile::Stream(Box::new(io::stdout().lock())),
        false => OpenFile::Whole(args.output_file(source)?),
    };
    let mut out = BufWriter::with_capacity(1 << 20, Counted { target, bytes: 0, phase });
    let refuse = |error: NoText| refused(args, error, 0);
    let mut writer = text_writer(args, format, source.schema(), &mut out).map_err(refuse)?;
    pass(args, source, phase, cancel, |batch| writer.write(&cast(batch, plain_type)?))?;
    writer.finish().map_err(|error| refuse(NoText::Arrow(error)))?;
    source.check_unchanged()?;
    out.flush().map_err(|error| wrong(&error))?;
    let Counted { target, bytes, .. } = out.into_inner().map_err(|error| wrong(error.error()))?;
    target.finish().map_err(|error| wrong(&error))?;
    Ok(bytes)
}

fn io_error(error: &io::Error) -> ArrowError {
    ArrowError::IoError(error.to_string(), io::Error::new(error.kind(), error.to_string()))
}

/// Passes all batches to `write`, in order; returns the number of their rows.
fn pass(
    args: &ConvertArgs,
    source: &dyn Source,
    phase: &Phase,
    cancel: &AtomicBool,
    mut write: impl FnMut(&RecordBatch) -> Result<(), NoText>,
) -> Result<u64, Error> {
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
    let mut rows = 0;
    units_in_order::read(source, threads, &Control::new(cancel, phase), |batch| -> Result<(), Error> {
        write(batch).map_err(|error| refused(args, error, rows))?;
        rows += batch.num_rows() as u64;
        phase.add_rows(batch.num_rows() as u64);
        Ok(())
    })?;
    Ok(rows)
}

fn refused(args: &ConvertArgs, error: NoText, first: u64) -> Error {
    let place = args.out.display().to_string();
    match error {
        NoText::Arrow(ArrowError::IoError(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Error::output(&error)
        }
        NoText::Arrow(ArrowError::IoError(_, error)) => failed("writing", &args.out, &error),
        NoText::Arrow(error) => Error::failure(format!("writing failed: {error}"), place, ""),
        NoText::Value { column, row, what } => {
            let place = format!("{place}, field {column}, row {}", first + row as u64);
            Error::failure(what, place, "write Parquet, or leave the row out with --where")
        }
    }
}

/// Rejects nested columns, for which CSV has no place.
fn reject_nested(source: &dyn Source) -> Result<(), Error> {
    match source.schema().fields().iter().find(|field| field.data_type().is_nested()) {
        None => Ok(()),
        Some(field) => {
            let what = format!("the column {} is nested, which CSV cannot represent", field.name());
            Err(Error::usage(what, "--to csv", "use --to ndjson, or leave it out with --columns"))
        }
    }
}

impl ConvertArgs {
    fn format(&self) -> Result<OutputFormat, Error> {
        let extension = self.out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let by_name = match extension.as_deref() {
            Some("parquet" | "pq") => Some(OutputFormat::Parquet),
            Some("csv") => Some(OutputFormat::Csv),
            Some("ndjson" | "jsonl") => Some(OutputFormat::Ndjson),
            _ => None,
        };
        let place = format!("--out {}", self.out.display());
        match self.to.or(by_name) {
            None => Err(Error::usage(
                "the format to write is not known",
                place,
                "give --to parquet, csv or ndjson",
            )),
            Some(OutputFormat::Parquet) if self.out == Path::new("-") => Err(Error::usage(
                "Parquet is not written to standard output",
                place,
                "give the name of a file",
            )),
            Some(format) => Ok(format),
        }
    }

    /// Begins the output, unless something is in its place.
    fn output_file(&self, source: &dyn Source) -> Result<WholeFile, Error> {
        let out = &self.out;
        let shown = out.display().to_string();
        if out.is_dir() {
            return Err(Error::usage("the output is a directory", shown, "give the name of a file"));
        }
        if let Ok(canonical) = out.canonicalize()
            && source.files().iter().any(|file| Path::new(&file.name) == canonical)
        {
            return Err(Error::usage("the output is one of the inputs", shown, "give another name"));
        }
        if out.symlink_metadata().is_ok() && !self.overwrite {
            return Err(Error::usage("the file exists already", shown, "--overwrite replaces it"));
        }
        WholeFile::remove_abandoned(out).map_err(|error| failed("reading the directory", out, &error))?;
        WholeFile::create(out).map_err(|error| failed("writing", out, &error))
    }
}
