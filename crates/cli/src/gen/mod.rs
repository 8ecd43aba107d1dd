//! `sawmill gen`: generates a dataset as files; prints and explains specs.

pub(crate) mod clean;
mod content_sum;
pub(crate) mod destination;
mod explain;
#[cfg_attr(not(feature = "full"), path = "../demo_build/fidelity.rs")]
mod fidelity;
pub(crate) mod format;
#[cfg_attr(not(feature = "full"), path = "../demo_build/formats.rs")]
pub(crate) mod formats;
#[cfg_attr(not(feature = "full"), path = "../demo_build/infer.rs")]
mod infer;
pub(crate) mod options;
mod parts;
mod schema;
mod spec;
#[cfg_attr(not(feature = "full"), path = "../demo_build/table.rs")]
mod table;
mod whole_schema;

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use clap::{Args, Subcommand};
use sawmill_generator::{
    Checksum, Dataset, Existing, FileOptions, Job, Layout, Notices, Output, StoreOutput, WrittenFile, write,
};
use sawmill_profile::{PhaseReport, Profile};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::r#gen::destination::{UploadArgs, output};
use crate::r#gen::format::Format;
use crate::r#gen::options::dataset_args::DatasetArgs;
use crate::r#gen::options::file_args::FileArgs;
use crate::r#gen::options::layout_args::LayoutArgs;
use crate::r#gen::options::like_args::Wanted;
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// Generate a synthetic nested dataset as Parquet files.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill gen contacts --rows 10M --files 4 --out /tmp/contacts
  sawmill gen contacts --rows 1000 --out sample.parquet --seed 7
  sawmill gen spec contacts > my.toml   # a spec to edit; `gen explain my.toml` shows what it makes
  sawmill gen --like trips.parquet --rows 1B --files 100 --out /tmp/trips   # more rows like these
  sawmill gen --like orders.parquet --like customers.parquet --out /tmp/shop  # keys refer to the other file
  sawmill gen my.toml --rows 1M --out /tmp/mine
  sawmill gen contacts --rows 100M --out /dev/null   # measures generation without a disk
  sawmill gen contacts --rows 1B --file-size 256MB --compression zstd --out /tmp/big
  sawmill gen contacts --compression snappy --compression name=zstd:3 --compression phones=none --out /tmp/codecs
  sawmill gen contacts --rows 1B --files 64 --part 2/8 --out /tmp/parts   # on the second of 8 machines
  sawmill gen finish contacts --rows 1B --files 64 --out /tmp/parts   # when all of them are done
  sawmill gen contacts --rows 1M --out /tmp/c --content-sum   # the sum that a load of /tmp/c prints
  sawmill gen orders --rows 1000 --as ndjson --out -   # one JSON object on each line
  sawmill gen contacts --rows 100M --files 8 --out s3://bucket/contacts   # objects, each whole or not there
  sawmill gen clean s3://bucket/contacts   # aborts the uploads that a killed run left
  sawmill gen contacts --rows 1M --table-format delta --out s3://bucket/contacts   # a version of a Delta table
  sawmill gen tpch --scale 10 --out /tmp/tpch   # all tables of TPC-H, a folder each
  sawmill gen shop.toml --scale 0.1 --out /tmp/tables   # all tables of a spec, a folder each
  sawmill gen tpch/lineitem --scale 1 --files 4 --out /tmp/lineitem
  sawmill gen tpcds/store_sales --scale 10 --files 4 --out /tmp/sales   # or tpcds: all 24 tables of TPC-DS
  sawmill gen contacts --encoding name=delta-bytearray --bloom phones.number --out /tmp/odd

The same dataset, seed, rows, files and options produce the same bytes with any number of threads, writers and
parts. The same dataset and seed produce the same rows in any layout.
If a spec file has the name of a sub-command, give its folder, too: ./spec"
)]
pub(crate) struct GenCommand {
    #[command(subcommand)]
    about: Option<AboutDataset>,
    #[command(flatten)]
    generate: GenArgs,
}

/// With fewer rows it does not matter how many threads write them.
const MANY_ROWS: u64 = 1_000_000;

/// What else to do with a dataset.
#[derive(Subcommand, Debug)]
enum AboutDataset {
    /// Finish a dataset whose parts (--part) were all made: check every file, and write one manifest for all.
    #[command(after_help = "\
Examples:
  sawmill gen finish contacts --rows 1B --files 64 --out /tmp/parts
  sawmill gen finish contacts --rows 1B --files 64 --out s3://bucket/big

Give the options of the parts, without --part. Without --files, the manifests of the parts say how many files there are.")]
    Finish(Box<GenArgs>),
    Spec(spec::SpecArgs),
    Explain(Box<explain::ExplainArgs>),
    Schema(schema::SchemaArgs),
    Clean(clean::CleanArgs),
    Fidelity(options::like_args::FidelityArgs),
}

/// What to generate, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct GenArgs {
    /// A directory for the files (created if missing), a name ending in .parquet for a single file, a device
    /// like /dev/null, or - for standard output. s3://BUCKET/PREFIX, gs:// and az:// name folders in
    /// stores, or single objects if they end in .parquet; they need the full build.
    #[arg(long, short, default_value = ".")]
    pub out: PathBuf,
    /// The seed of all random values. Tables of TPC-H and TPC-DS always have the same rows.
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Threads that generate row groups [default: one for each core].
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// The format of the files. Options about how files are written apply to parquet only.
    #[arg(long = "as", value_enum, default_value = "parquet")]
    pub(crate) format: Format,
    /// Make the files a new version of a Delta table in the folder --out, which is created if missing. Each run
    /// writes to its own folder, so that earlier versions stay. The same command again changes nothing. With
    /// --overwrite, the new version has only these files. Needs the full build.
    #[arg(long = "table-format", value_enum, value_name = "FORMAT")]
    pub table: Option<TableFormat>,
    /// The text for null in CSV [default: empty]. A string that equals it is quoted, so that the two differ.
    #[arg(long, value_name = "TEXT", value_parser = csv_null)]
    csv_null: Option<String>,
    /// Also print the content sum of the rows, which load and verify print for PostgreSQL; it depends neither
    /// on the layout nor on the format. This generates and encodes the rows again, which takes three to four times
    /// as long as writing them; with --partition-by, the files are read instead. With --resume it includes the
    /// files that were kept. By default only the checksum of the files' bytes is printed.
    #[arg(long)]
    content_sum: bool,
    #[command(flatten)]
    dataset: DatasetArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    uploads: UploadArgs,
}

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    /// Delta Lake.
    Delta,
}

/// Parses a text that CSV can write for null.
pub(crate) fn csv_null(text: &str) -> Result<String, String> {
    if text.contains([',', '"', '\n', '\r']) {
        Err("null is written without quotes: give a text without commas, quotes and line breaks".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// The line for a content sum that was not asked for, once for all tables of a run.
const NO_SUM: &str = "\ncontent sum not computed (add --content-sum)";

/// The default of `--seed`.
const DEFAULT_SEED: u64 = 42;

/// What `--json` prints for all tables of a benchmark.
#[derive(Serialize)]
struct AllTables<'a> {
    tables: Vec<&'a GenResult>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct GenResult {
    dataset: String,
    rows: u64,
    seed: u64,
    /// Over the bytes of the files.
    file_checksum: Option<Checksum>,
    /// Over the rows.
    content_sum: Option<Checksum>,
    files: Vec<WrittenFile>,
    /// The version of a table that has the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<TableVersion>,
    phase: PhaseReport,
}

impl GenResult {
    /// The result for files outside of a Delta table.
    fn new(
        dataset: &Dataset,
        seed: u64,
        files: Vec<WrittenFile>,
        (file_checksum, content_sum): (Option<Checksum>, Option<Checksum>),
        phase: PhaseReport,
    ) -> Self {
        let (dataset, rows) = (dataset.name().to_owned(), files.iter().map(|file| file.rows).sum());
        Self { dataset, rows, seed, file_checksum, content_sum, files, table: None, phase }
    }
}

/// A version of a table.
#[derive(Debug, Serialize)]
struct TableVersion {
    format: &'static str,
    version: u64,
    /// Whether an earlier run committed the files; then the version is the newest.
    already_committed: bool,
}

/// The result of a run for `--json`, and its text for people.
#[derive(Debug)]
pub(crate) struct Made {
    result: GenResult,
    summary: String,
}

impl Made {
    /// Prints it, unless standard output holds the rows.
    fn print(&self, out: &Path, console: Console) -> Result<()> {
        if out == Path::new("-") {
            console.steps(&self.summary);
            return Ok(());
        }
        console.summary(&self.result, || format!("{}\n", self.summary))
    }
}

/// A dataset, its layout, and how to write its files.
type Plan = (Dataset, Layout, FileOptions);

impl GenArgs {
    /// The dataset, its layout, and how to write files.
    pub(crate) fn plan(&self, console: Console) -> Result<Plan> {
        let dataset = self.dataset.dataset(self.wanted(), console, &self.uploads.stores)?;
        if let Some(benchmark) = dataset.benchmark().filter(|_| self.seed != DEFAULT_SEED) {
            let what = format!("--seed for a table of {benchmark}, whose rows are the same for every seed");
            return Err(Error::usage(what, dataset.name(), "leave it out"));
        }
        let options = self.files.options(&dataset, self.layout.partition_by.as_deref())?;
        let rows = self.layout.rows_of(&dataset)?;
        self.dataset.check_unique(&dataset, rows)?;
        let layout = self.layout.with_files(|| parts::files(&output(self)?, dataset.name()))?;
        let layout = layout.layout(rows, &dataset, &options, self.seed)?;
        Ok((dataset, layout, options))
    }

    /// The rows and the seed for a spec that is learned.
    fn wanted(&self) -> Wanted {
        Wanted { rows: self.layout.rows, seed: self.seed }
    }

    /// The files that the dataset was read from.
    fn sources(&self, dataset: &Dataset) -> Vec<PathBuf> {
        [self.dataset.sources(), dataset.files().to_vec()].concat()
    }

    /// The threads that generate rows.
    fn threads(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(cores)
    }

    /// Generates what [`GenArgs::plan`] returned. The manifest gets the content sum of the rows, if known.
    pub(crate) fn generate(
        &self,
        (dataset, layout, options): &Plan,
        output: &Output,
        content_sum: Option<Checksum>,
        profile: &Profile,
        console: Console,
    ) -> Generated {
        generate(dataset, layout, output, profile, console, |job| Job {
            options: options.clone(),
            seed: self.seed,
            threads: self.threads(),
            writers: self.layout.writers,
            part: self.layout.part,
            partition_by: self.layout.partition_by.clone(),
            existing: self.layout.existing(),
            sources: self.sources(dataset),
            content_sum,
            ..job
        })
    }
}

pub(crate) fn run(command: &GenCommand, console: Console) -> Result<()> {
    match &command.about {
        Some(AboutDataset::Finish(args)) => {
            if args.table.is_some() {
                let advice = "the run that makes all files commits the version: leave out --table-format";
                return Err(Error::usage("--table-format with gen finish", "--table-format", advice));
            }
            let layout = args.layout.clone().finished()?;
            run_generate(&GenArgs { layout, ..GenArgs::clone(args) }, console)
        }
        Some(AboutDataset::Spec(args)) => spec::run(args, console),
        Some(AboutDataset::Explain(args)) => explain::run(args, console),
        Some(AboutDataset::Fidelity(args)) => fidelity::run(args, console),
        Some(AboutDataset::Schema(_)) => schema::run(console),
        Some(AboutDataset::Clean(args)) => clean::run(args, console),
        None => run_generate(&command.generate, console),
    }
}

fn run_generate(args: &GenArgs, console: Console) -> Result<()> {
    if args.dataset.learns_tables() {
        let spec = args.dataset.spec(args.wanted(), console, &args.uploads.stores)?;
        let failed = |error: std::io::Error| {
            let place = std::env::temp_dir().display().to_string();
            Error::failure(format!("the spec cannot be kept: {error}"), place, "set TMPDIR to another folder")
        };
        let folder = tempfile::tempdir().map_err(failed)?;
        let file = folder.path().join("like.toml");
        std::fs::write(&file, spec).map_err(failed)?;
        let dataset = args.dataset.learned(&file);
        return run_generate(&GenArgs { dataset, ..args.clone() }, console);
    }
    if let Some(tables) = whole_schema::tables(args)? {
        let tables = whole_schema::make_all(args, &tables, console)?;
        let lines: Vec<&str> = tables.iter().map(|made| made.summary.trim_end_matches(NO_SUM)).collect();
        let lacks_sum = tables.iter().any(|made| made.summary.ends_with(NO_SUM));
        let note = if lacks_sum { NO_SUM } else { "" };
        let results: Vec<&GenResult> = tables.iter().map(|made| &made.result).collect();
        return console.summary(&AllTables { tables: results }, || lines.join("\n") + note + "\n");
    }
    make(args, console)?.print(&args.out, console)
}

/// Makes the files of one dataset.
fn make(args: &GenArgs, console: Console) -> Result<Made> {
    if args.table.is_some() {
        return table::make(args, console);
    }
    let output = output(args)?;
    if output == Output::Stdout && args.format.is_binary() && std::io::stdout().is_terminal() {
        let what = format!("{} is binary, and standard output is a terminal", args.format.extension());
        let advice = "redirect it (--out - > FILE), name a file with --out, or use --as ndjson";
        return Err(Error::usage(what, args.out.display().to_string(), advice));
    }
    if args.csv_null.is_some() && args.format != Format::Csv {
        let what = "--csv-null without --as csv";
        return Err(Error::usage(what, args.out.display().to_string(), "leave it out"));
    }
    if args.format != Format::Parquet {
        if destination::is_url(&args.out)? {
            let what = format!("--as {} cannot be written to a URL", args.format.extension());
            let advice = "write parquet, or give a path and copy the files from there";
            return Err(Error::usage(what, args.out.display().to_string(), advice));
        }
        return formats::run(args, console);
    }
    if output.is_single() && matches!(args.layout.existing(), Existing::Resume | Existing::Finish) {
        let advice = "give a directory, or replace a single file with --overwrite";
        let what = "only a directory can be resumed or finished";
        return Err(Error::usage(what, args.out.display().to_string(), advice));
    }
    if output.is_single() && args.layout.parts_a_single_file() {
        let what = format!("a single file is made as a whole: part {} has none", args.layout.part);
        return Err(Error::usage(what, args.out.display().to_string(), "write to a directory"));
    }
    let plan = args.plan(console)?;
    let profile = Profile::new();
    let content_sum = content_sum::planned(args, (&plan.0, &plan.1), &profile, console)?;
    let generated = args.generate(&plan, &output, content_sum, &profile, console);
    let (files, phase) = generated.map_err(|error| resumable(error, &output))?;
    let of_folders = content_sum::of_folders(args, &files, &profile, console)?;
    let content_sum = content_sum.or(of_folders);
    let file_checksum = file_checksum(&files, &output);
    let summary = match args.layout.existing() {
        Existing::Finish => finished(&files, file_checksum, &phase, &args.out),
        _ => summary(&files, (file_checksum, content_sum), &phase, &args.out),
    };
    let result = GenResult::new(&plan.0, args.seed, files, (file_checksum, content_sum), phase);
    Ok(Made { result, summary })
}

/// The error of a run, with the way to keep the complete files, if there are some.
fn resumable(error: sawmill_generator::Error, output: &Output) -> Error {
    use sawmill_generator::ErrorKind;
    let is_resumable = matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled)
        && error.leaves_files()
        && !output.is_single();
    let error = Error::from(error);
    if is_resumable { error.advise_also("add --resume to keep the complete files") } else { error }
}

/// The files, and the time that they took.
type Generated = Result<(Vec<WrittenFile>, PhaseReport), sawmill_generator::Error>;

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Generates all files of a layout on all cores, with default options but for those that `with` changes. Shows a
/// progress bar.
pub(crate) fn generate(
    dataset: &Dataset,
    layout: &Layout,
    output: &Output,
    profile: &Profile,
    console: Console,
    with: impl for<'j> FnOnce(Job<'j>) -> Job<'j>,
) -> Generated {
    let phase = profile.phase("generate");
    let kept_rows = AtomicU64::new(0);
    let say = |text: &str| console.notice(text);
    let job = with(Job {
        threads: cores(),
        kept_rows: Some(&kept_rows),
        notices: Notices(Some(&say)),
        ..Job::new(layout, output, &phase, interrupt::flag())
    });
    let threads = job.threads.get() as u64;
    console.detail(|| {
        let (files, rows) = (layout.files, layout.row_group_rows);
        let [threads, files, rows] = [(threads, "thread"), (files.into(), "file"), (rows, "row")]
            .map(|(n, of)| sawmill_profile::format_counted(n, of));
        format!("{threads}, {files}, row groups of {rows}")
    });
    say_idle_threads(&job, console);
    let rows = layout.part_rows(job.part);
    let files = console.with_named_bar("generate", rows, &kept_rows, &phase, |_| write(dataset, &job))?;
    Ok((files, phase.finish()))
}

/// Says if there are fewer row groups than threads, as in one file of long row groups.
fn say_idle_threads(job: &Job<'_>, console: Console) {
    let threads = job.threads.get() as u64;
    let groups: u64 = job.part.files(job.layout.files).map(|file| job.layout.row_groups(file)).sum();
    if groups < threads && job.layout.part_rows(job.part) >= MANY_ROWS {
        console.notice(&format!(
            "{groups} of {threads} threads have a row group to write; smaller ones (--row-group-rows) use more"
        ));
    }
}

/// The checksum over all files: for a folder, the manifest's.
fn file_checksum(files: &[WrittenFile], output: &Output) -> Option<Checksum> {
    let directory = match output {
        Output::Directory(directory) => directory.clone(),
        Output::Store(StoreOutput { folder, file: None }) => folder.place(""),
        _ => return files.first().and_then(|file| file.sum),
    };
    let named: Option<Vec<(String, Checksum)>> = files
        .iter()
        .map(|file| {
            let name = file.path.strip_prefix(&directory).ok()?;
            Some((name.to_string_lossy().into_owned(), file.sum?))
        })
        .collect();
    named.map(|named| Checksum::of_files(named.iter().map(|(name, sum)| (name.as_str(), *sum))))
}

/// Says what `gen finish` has found.
fn finished(files: &[WrittenFile], checksum: Option<Checksum>, phase: &PhaseReport, out: &Path) -> String {
    let rows = phases::thousands(files.iter().map(|file| file.rows).sum());
    let bytes = phases::bytes(files.iter().map(|file| file.bytes).sum());
    let checksum = checksum.map_or_else(String::new, |sum| format!("\nfile checksum {sum}"));
    let compared = match destination::is_url(out) {
        Ok(true) => "sizes and tags agree with the manifests",
        _ => "all bytes were read, and match their checksums",
    };
    format!(
        "complete in {}: {}, {rows} rows, {bytes}; {compared} ({}){checksum}",
        out.display(),
        sawmill_profile::format_counted(files.len() as u64, "file"),
        phases::seconds(phase.wall),
    )
}

fn summary(
    files: &[WrittenFile],
    (checksum, content): (Option<Checksum>, Option<Checksum>),
    phase: &PhaseReport,
    out: &Path,
) -> String {
    let what = match files {
        [_] => "1 file".to_owned(),
        files => format!("{} files", files.len()),
    };
    let kept = files.iter().filter(|file| file.kept).count();
    let kept = if kept > 0 { format!(" ({kept} kept)") } else { String::new() };
    let line =
        |what: &str, sum: Option<Checksum>| sum.map_or_else(String::new, |sum| format!("\n{what} {sum}"));
    let content = content.map_or_else(|| NO_SUM.to_owned(), |sum| format!("\ncontent sum {sum}"));
    let sums = line("file checksum", checksum) + &content;
    format!("{what}{kept} in {}: {}{sums}", out.display(), phases::summary(phase))
}
