//! Reads the inputs, and writes the output whole or not at all.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use sawmill_profile::{Phase, PhaseReport, Profile};
use sawmill_source::{
    Addressed, ByRow, Order, OrderedRows, ParquetFiles, Source, Unit, UnitReader, UnlikeFiles,
    refuse_variants,
};
use sawmill_store::directories::directory_of;
use sawmill_store::{Location, is_stream};
use serde::Serialize;

use super::folders::{self, Folders};
use super::out;
use super::parse_only;
use super::parts::{Part, Parts};
use super::staging::{self, Layout};
use super::units_in_order::UnitsInOrder;
use super::{ConvertArgs, OutputFormat};
use crate::arguments::inputs::{self, ForTable, Inputs, TextFound};
use crate::arguments::order_args::{IndexPlan, Ordered, ordered};
use crate::arguments::paths::each_has_its_file;
use crate::arguments::text::TextArgs;
use crate::error::Error;
use crate::r#gen::formats::files::OpenFile;
use crate::r#gen::formats::text_form::NoText;
use crate::r#gen::options::file_args::PageArgs;
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// Rows of a unit and of a batch.
const UNIT_ROWS: u64 = 32 * 1024;
const BATCH_ROWS: usize = 4096;
/// How many decoded bytes of a unit to collect before passing them on: a unit of wide rows is passed on in parts.
const HELD_BYTES: usize = 16 << 20;
/// The write buffer of a text file.
const FILE_BUFFER: usize = 1 << 20;

/// What `--json` prints.
#[derive(Serialize)]
struct Converted<'a> {
    out: String,
    files: usize,
    rows: u64,
    bytes_in: u64,
    bytes_out: u64,
    files_out: u64,
    /// Text records that could not be read and were left out of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    records_left_out: Option<u64>,
    /// The last phase.
    phase: &'a PhaseReport,
    /// All phases, in order.
    phases: &'a [PhaseReport],
    #[serde(flatten)]
    ordered: Option<Ordered>,
}

/// The bytes and files written so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub bytes: u64,
    pub files: u64,
}

impl Written {
    /// Counts a file of `bytes` bytes.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.files += 1;
    }
}

/// What `--explain --json` prints.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    text: TextFound,
    files: usize,
    rows: u64,
    phases: Vec<&'static str>,
    index: Option<IndexPlan>,
}

pub(crate) fn run(args: &ConvertArgs, console: Console) -> Result<(), Error> {
    // Sources write their advice for loads; a conversion has no load to forget.
    let again = "run the same command again: it reads the file as it is now";
    converted(args, console).map_err(|error| error.advise_instead_of(&["forget the load"], again))
}

fn converted(args: &ConvertArgs, console: Console) -> Result<(), Error> {
    let format = if args.parse_only { None } else { Some(args.format()?) };
    let mut text = args.text.with_rejects(args.rejects.as_deref(), args.max_rejects);
    if format == Some(OutputFormat::Csv)
        && !text.has_values()
        && matches!(args.order.order(args.partition_by.clone()), Ok(None))
    {
        text.to_mut().as_written = true;
    }
    args.check_rejects()?;
    let inputs = opened(args, &text, console)?;
    let filtered = args.rows.filtered(&inputs, console)?;
    let source = filtered.as_ref().map_or(inputs.source(), |filtered| filtered);
    let limited = args.rows.limited(source);
    let source = limited.as_ref().map_or(source, |limited| limited);
    refuse_variants(source.schema())?;
    if source.schema().fields().is_empty() && source.rows() > 0 {
        let place = source.files().first().map(|file| file.name.clone()).unwrap_or_default();
        return Err(Error::failure("the file has rows and no columns", place, "leave the file out"));
    }
    let profile = Profile::new();
    let Some(format) = format else {
        if let Some(option) = args.pages.given.first_of::<PageArgs>(&[]) {
            return Err(Error::usage("--parse-only writes nothing", option, "leave the option out"));
        }
        return parse_only::run(args, source, &inputs, &profile, console);
    };
    check_columns((args, format), source, &inputs, console)?;
    if args.is_directory() && args.partition_by.is_none() {
        staging::check_out(args, source, Layout::Parts)?;
    }
    let before = (inputs.records_left_out_in_all(), inputs.phases.clone());
    let Some(order) = args.order.order(args.partition_by.clone())? else {
        if args.explain {
            return explain(&inputs, source, None, console);
        }
        return convert((args, format), source, None, before, &profile, console);
    };
    OrderedRows::check(source, &order)?;
    if let Some(by) = &order.partition_by {
        folders::check_out(args, by, source)?;
    } else if !args.is_directory() && matches!(Location::new(args.out())?, Location::Path(_)) {
        out::check_file(args.out(), args.overwrite, source)?;
    }
    let beside = match Location::new(args.out())? {
        Location::Path(path) if !is_stream(&path) => directory_of(args.out()).to_owned(),
        Location::Path(_) | Location::Object(_) => args.temporary(),
    };
    let place = args.order.place(&beside);
    let by_row = ByRow::new(source);
    let whole = filtered.is_none() && limited.is_none();
    let addressed: &dyn Addressed = inputs.addressed().filter(|_| whole).unwrap_or(&by_row);
    if args.explain {
        return explain(&inputs, source, Some(IndexPlan::new(addressed, &order, &place)), console);
    }
    let (rows, indexed) = ordered(addressed, &order, &place, &profile, console)?;
    let (left_out, mut phases) = before;
    phases.push(indexed);
    convert((args, format), source, Some((&rows, &order)), (left_out, phases), &profile, console)
}

/// Refuses columns and options that the format lacks, and notes changes of values.
fn check_columns(
    (args, format): (&ConvertArgs, OutputFormat),
    source: &dyn Source,
    inputs: &Inputs,
    console: Console,
) -> Result<(), Error> {
    match format {
        OutputFormat::Csv => reject_nested(source)?,
        OutputFormat::Ndjson => reject_equal_names(source)?,
        OutputFormat::Parquet => {}
    }
    args.check_format(format)?;
    for column in inputs.files().map(ParquetFiles::int96_columns).unwrap_or_default() {
        let what = "INT96 timestamps are read in microseconds, and finer digits are cut";
        console.notice(&format!("column {column:?}: {what}"));
    }
    Ok(())
}

/// Opens the inputs, and checks that their columns agree.
fn opened(args: &ConvertArgs, text: &TextArgs, console: Console) -> Result<Inputs, Error> {
    let unlike = UnlikeFiles::Refused("convert files with different columns separately");
    let refused = ForTable::none(unlike);
    inputs::open_unlike(&args.files, &args.columns, text, &args.objects, refused, console)
}

/// Prints the plan.
fn explain(
    inputs: &Inputs,
    source: &dyn Source,
    index: Option<IndexPlan>,
    console: Console,
) -> Result<(), Error> {
    let mut phases: Vec<&str> = inputs.phases.iter().map(|_| "boundaries").collect();
    phases.extend(index.as_ref().map(|_| "index"));
    phases.push("write");
    let explained = Explained {
        text: inputs.text_found()?,
        files: source.files().len(),
        rows: source.rows(),
        phases,
        index,
    };
    console.result(&explained, || {
        format!(
            "{}{} of {}\nphases: {}\n{}",
            explained.text.lines(),
            phases::counted(explained.rows, "row"),
            phases::counted(explained.files as u64, "file"),
            explained.phases.join(", "),
            explained.index.as_ref().map(IndexPlan::lines).unwrap_or_default()
        )
    })
}

fn convert(
    (args, format): (&ConvertArgs, OutputFormat),
    source: &dyn Source,
    in_order: Option<(&OrderedRows<'_>, &Order)>,
    (records_left_out, mut phases): (Option<u64>, Vec<PhaseReport>),
    profile: &Profile,
    console: Console,
) -> Result<(), Error> {
    let is_stream = is_standard_output(args.out());
    let files = source.files().len();
    let bytes_in = source.files().iter().map(|file| file.bytes).sum();
    let source = in_order.map_or(source, |(rows, _)| rows);
    let title = if in_order.is_some() { "write" } else { "convert" };
    let phase = profile.phase(title);
    let by = in_order.and_then(|(rows, order)| Some((rows, order, order.partition_by.as_ref()?)));
    let write = || match (format, by) {
        (_, Some((rows, order, by))) => {
            Folders { args, rows, by, sort_by: order.sort_by.as_deref(), phase: &phase }.write()
        }
        _ if args.is_directory() => Parts { args, format, source, phase: &phase }.write(),
        _ => to_file(args, format, source, &phase),
    };
    let Written { bytes: bytes_out, files: files_out } =
        console.with_bar(title, source.rows(), &phase, write)?;
    let rows = phase.rows();
    phases.push(phase.finish());
    let Some(phase) = phases.last() else { return Ok(()) };
    let ordered = in_order.map(|(rows, _)| Ordered::new(rows));
    let out = args.shown();
    let phases = &phases;
    let converted = Converted {
        out,
        files,
        rows,
        bytes_in,
        bytes_out,
        files_out,
        records_left_out,
        phase,
        phases,
        ordered,
    };
    if is_stream {
        console.steps(&summary(&converted));
        return Ok(());
    }
    console.summary(&converted, || summary(&converted) + "\n")
}

fn summary(converted: &Converted<'_>) -> String {
    let Converted { out, files, rows, bytes_in, bytes_out, files_out, phases, ordered, .. } = converted;
    let seconds: f64 = phases.iter().map(|phase| phase.wall.as_secs_f64()).sum();
    let mut text = format!(
        "{out}: {} of {}, {} from {} in {seconds:.2} s",
        phases::counted(*rows, "row"),
        phases::counted(*files as u64, "file"),
        phases::bytes(*bytes_out),
        phases::bytes(*bytes_in),
    );
    if *files_out > 1 {
        text += &format!(", in {}", phases::counted(*files_out, "file"));
    }
    if let Some(ordered) = ordered {
        text = format!("{text}\n{}", ordered.line(phases));
    }
    text
}

fn to_file(
    args: &ConvertArgs,
    format: OutputFormat,
    source: &dyn Source,
    phase: &Phase,
) -> Result<Written, Error> {
    let target = match args.out() == Path::new("-") {
        true => OpenFile::stdout(),
        false => out::begin(args, source)?,
    };
    let begun = Part::begin((args, format), source.schema(), (target, FILE_BUFFER), phase);
    let mut file = begun.map_err(|error| refused(args, error, 0))?;
    let rows = pass(args, source, phase, |batch| file.write(batch))?;
    source.check_unchanged()?;
    let bytes = file.finish().map_err(|error| refused(args, error, rows))?;
    Ok(Written { bytes, files: 1 })
}

/// Passes all batches to `write`, in order; returns the number of rows.
pub(super) fn pass(
    args: &ConvertArgs,
    source: &dyn Source,
    phase: &Phase,
    mut write: impl FnMut(&RecordBatch) -> Result<(), NoText>,
) -> Result<u64, Error> {
    let (mut rows, control) = (0, interrupt::control(phase));
    let threads = ("reader", args.threads());
    let units = UnitsInOrder { source, threads, unit_rows: UNIT_ROWS, batch_rows: BATCH_ROWS };
    let batches = |reader: &mut dyn UnitReader, _: &Unit, give: &mut dyn FnMut(Vec<RecordBatch>) -> bool| {
        let (mut held, mut bytes) = (Vec::new(), 0);
        let mut goes_on = true;
        while goes_on {
            control.check()?;
            let Some(batch) = reader.next_batch()? else { break };
            bytes += batch.get_array_memory_size();
            held.push(batch);
            if bytes > HELD_BYTES {
                goes_on = give(std::mem::take(&mut held));
                bytes = 0;
            }
        }
        give(held);
        Ok(())
    };
    units.read(&control, batches, |batches| -> Result<(), Error> {
        for batch in &batches {
            control.check()?;
            write(batch).map_err(|error| refused(args, error, rows))?;
            rows += batch.num_rows() as u64;
            phase.add_rows(batch.num_rows() as u64);
        }
        Ok(())
    })?;
    Ok(rows)
}

pub(super) fn refused(args: &ConvertArgs, error: NoText, first: u64) -> Error {
    let place = args.shown();
    match error {
        NoText::Arrow(ArrowError::IoError(_, error)) => Error::of_output("writing", args.out(), &error),
        NoText::Option(what) => Error::usage(what, place, "correct the options for Parquet output"),
        NoText::Arrow(error) => Error::failure(format!("writing failed: {error}"), place, ""),
        NoText::Value { column, row, what } => {
            let place = format!("{place}, field {column}, row {}", first + row as u64);
            Error::failure(what, place, "write Parquet, or leave the row out with --where")
        }
    }
}

/// Whether `path` is standard output, under any name: then only rows may be written there.
fn is_standard_output(path: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|there| (there.dev(), there.ino())).ok();
    path == Path::new("-") || (is_stream(path) && identity(path) == identity(Path::new("/dev/stdout")))
}

/// Rejects nested columns: CSV has no place for them.
fn reject_nested(source: &dyn Source) -> Result<(), Error> {
    match source.schema().fields().iter().find(|field| field.data_type().is_nested()) {
        None => Ok(()),
        Some(field) => {
            let what = format!("the column {} is nested, which CSV cannot represent", field.name());
            Err(Error::usage(what, "--as csv", "use --as ndjson, or leave it out with --columns"))
        }
    }
}

/// Rejects columns that share a name: JSON readers keep only the last value of a repeated key.
fn reject_equal_names(source: &dyn Source) -> Result<(), Error> {
    let mut names = HashSet::new();
    match source.schema().fields().iter().find(|field| !names.insert(field.name())) {
        None => Ok(()),
        Some(field) => {
            let what = format!("two columns have the name {:?}, which an object has once", field.name());
            Err(Error::usage(what, "--as ndjson", "use --as csv or --as parquet"))
        }
    }
}

impl ConvertArgs {
    /// Rejects options that the format does not have.
    fn check_format(&self, format: OutputFormat) -> Result<(), Error> {
        let of_parquet = self.pages.given.first_of::<PageArgs>(&[]);
        let of_parquet = of_parquet.or(self.row_group_rows.map(|_| "--row-group-rows".to_owned()));
        let csv_null = || self.csv_null.as_ref().map(|_| "--csv-null".to_owned());
        let (what, option) = match format {
            OutputFormat::Parquet if self.row_group_rows == Some(0) => {
                let advice = "give a number of rows, like 128k";
                return Err(Error::usage("a row group has at least one row", "--row-group-rows 0", advice));
            }
            OutputFormat::Parquet => ("this option is available for CSV only", csv_null()),
            OutputFormat::Ndjson if self.csv_null.is_some() => {
                ("this option is available for CSV only", csv_null())
            }
            OutputFormat::Csv | OutputFormat::Ndjson => {
                ("this option is available for Parquet only", of_parquet)
            }
        };
        match option {
            None => Ok(()),
            Some(option) => Err(Error::usage(what, option, "leave it out")),
        }
    }

    /// Rejects a file of rejected records that is named as Parquet, or would be replaced by the output.
    fn check_rejects(&self) -> Result<(), Error> {
        let extension = self.rejects.as_ref().and_then(|rejects| rejects.extension());
        let is_parquet =
            |name: &OsStr| name.eq_ignore_ascii_case("parquet") || name.eq_ignore_ascii_case("pq");
        if let (Some(rejects), true) = (&self.rejects, extension.is_some_and(is_parquet)) {
            let place = format!("--rejects {}", rejects.display());
            let advice = "give a name that ends in .csv, .ndjson or .jsonl";
            return Err(Error::usage("records that cannot be read are written as text", place, advice));
        }
        each_has_its_file([("--out", self.out.as_ref()), ("--rejects", self.rejects.as_ref())])
    }

    /// How many threads read and parse.
    pub(super) fn threads(&self) -> usize {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from)
    }

    /// Whether the output is a directory of files, or a folder of a store.
    fn is_directory(&self) -> bool {
        let out = self.out();
        if self.partition_by.is_some() {
            return true;
        }
        match Location::new(out) {
            Ok(Location::Path(path)) if path != Path::new("-") => {
                let ends = out.to_string_lossy().ends_with(std::path::is_separator);
                ends || path.is_dir() || (path.extension().is_none() && path.symlink_metadata().is_err())
            }
            Ok(Location::Object(url)) => {
                url.key().ends_with('/') || Path::new(url.key()).extension().is_none()
            }
            _ => false,
        }
    }

    fn format(&self) -> Result<OutputFormat, Error> {
        let named = match Location::new(self.out())? {
            Location::Path(path) => path,
            Location::Object(url) => PathBuf::from(url.key()),
        };
        let extension = named.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let by_name = match extension.as_deref() {
            Some("parquet" | "pq") => Some(OutputFormat::Parquet),
            Some("csv") => Some(OutputFormat::Csv),
            Some("ndjson" | "jsonl") => Some(OutputFormat::Ndjson),
            _ => None,
        };
        let place = format!("--out {}", self.shown());
        if self.partition_by.is_some() {
            return match self.to {
                _ if self.out() == Path::new("-") => Err(Error::usage(
                    "folders are not written to standard output",
                    place,
                    "give the name of a directory",
                )),
                None | Some(OutputFormat::Parquet) => Ok(OutputFormat::Parquet),
                Some(_) => Err(Error::usage(
                    "folders are available for Parquet alone",
                    "--partition-by",
                    "leave --as out, or write one file without --partition-by",
                )),
            };
        }
        if self.is_directory() {
            return Ok(self.to.unwrap_or(OutputFormat::Parquet));
        }
        if self.file_size.is_some() {
            let advice =
                "name an existing directory, or a new one by a name that ends with / or has no extension";
            return Err(Error::usage("--file-size is for files in a directory", place, advice));
        }
        match self.to.or(by_name) {
            None => Err(Error::usage(
                "the format to write is not known",
                place,
                "give --as parquet, csv or ndjson, or end the name with / for a directory of Parquet files",
            )),
            Some(OutputFormat::Parquet) if self.out() == Path::new("-") => Err(Error::usage(
                "Parquet is not written to standard output",
                place,
                "give the name of a file",
            )),
            Some(format) => Ok(format),
        }
    }

    /// The folder for temporary files that do not go beside the output.
    pub(super) fn temporary(&self) -> PathBuf {
        self.order.index_dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// The output as messages name it: the query of a URL may be a secret.
    pub(super) fn shown(&self) -> String {
        Location::new(self.out()).map_or_else(|_| "--out".to_owned(), |place| place.to_string())
    }
}
