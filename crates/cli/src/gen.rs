//! `sawmill gen`: a dataset into Parquet files, and what else there is to do with a dataset.

mod spec;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use sawmill_generator::{BUILT_IN, Dataset, Job, Layout, Output, WrittenFile, write};
use sawmill_profile::{PhaseReport, Profile};
use serde::Serialize;

use crate::console::Console;
use crate::error::Error;
use crate::phases;

/// Generate a synthetic nested dataset as Parquet files.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill gen contacts --rows 10M --files 4 --out /tmp/contacts
  sawmill gen contacts --rows 1000 --out sample.parquet --seed 7
  sawmill gen spec contacts > my.toml   # a spec to edit
  sawmill gen my.toml --rows 1M --out /tmp/mine
  sawmill gen contacts --rows 100M --out /dev/null   # as fast as rows can be made

The same dataset, seed, rows, files and row groups give the same bytes, whatever the threads.
A spec file that is named like a sub-command is given with its folder: ./spec"
)]
pub(crate) struct GenCommand {
    #[command(subcommand)]
    about: Option<AboutDataset>,
    #[command(flatten)]
    generate: Option<GenArgs>,
}

/// What is done with a dataset other than generating it.
#[derive(Subcommand, Debug)]
enum AboutDataset {
    Spec(spec::SpecArgs),
}

/// What is to be generated, and how.
#[derive(Args, Debug)]
pub(crate) struct GenArgs {
    /// A built-in dataset (contacts) or a dataset spec (a TOML file).
    dataset: String,
    /// Rows of the dataset, like 1000, 10M or 1.5B.
    #[arg(long, default_value = "1M", value_parser = phases::count)]
    rows: u64,
    /// Files that they are spread over.
    #[arg(long, default_value_t = 1)]
    files: u32,
    /// A directory for the files (made if need be), a name ending in .parquet for one file, a
    /// device like /dev/null, or - for standard output.
    #[arg(long, short, default_value = ".")]
    out: PathBuf,
    /// The seed of all draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Rows of a row group, like 128000 or 1M.
    #[arg(long, value_parser = phases::count)]
    row_group_rows: Option<u64>,
    /// Threads that make row groups [default: one for each core].
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Print the dataset's spec instead of generating it.
    #[arg(long)]
    print: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct GenResult<'a> {
    dataset: &'a str,
    rows: u64,
    seed: u64,
    files: &'a [WrittenFile],
    phase: PhaseReport,
}

impl GenArgs {
    /// What is to be generated, and how it is laid out.
    pub(crate) fn dataset_and_layout(&self) -> Result<(Dataset, Layout), Error> {
        let dataset = dataset(&self.dataset)?;
        let layout = Layout::new(self.rows, self.files)?;
        let layout = match self.row_group_rows {
            Some(rows) => layout.with_row_group_rows(rows)?,
            None => layout,
        };
        Ok((dataset, layout))
    }

    /// Where to, as the user says it.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        self.threads
    }

    /// Whether only the spec is asked for.
    pub(crate) fn prints(&self) -> bool {
        self.print
    }
}

pub(crate) fn run(command: &GenCommand, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    match (&command.about, &command.generate) {
        (Some(AboutDataset::Spec(args)), _) => spec::run(args, console),
        (None, Some(args)) => run_generate(args, console, cancel),
        // Without a sub-command clap asks for the dataset.
        (None, None) => Err(Error::usage("no dataset", "sawmill gen", "name one, for example contacts")),
    }
}

fn run_generate(args: &GenArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    if args.print {
        let spec = spec_text(&args.dataset)?;
        return console.result(&spec, || spec.clone());
    }
    let (dataset, layout) = args.dataset_and_layout()?;
    let output = Output::from_path(&args.out);
    let profile = Profile::new();
    let job = GenJob {
        dataset: &dataset,
        layout: &layout,
        output: &output,
        seed: args.seed,
        threads: args.threads,
    };
    let (files, phase) = generate(&job, &profile, console, cancel)?;
    if output == Output::Stdout {
        // The stream of rows has the standard output.
        console.step(&summary(&files, &phase, &args.out));
        return Ok(());
    }
    let result = GenResult {
        dataset: dataset.name(),
        rows: args.rows,
        seed: args.seed,
        files: &files,
        phase: phase.clone(),
    };
    console.result(&result, || summary(&files, &phase, &args.out) + "\n")
}

/// What is to be generated, and where to.
pub(crate) struct GenJob<'a> {
    pub dataset: &'a Dataset,
    pub layout: &'a Layout,
    pub output: &'a Output,
    pub seed: u64,
    pub threads: Option<NonZeroUsize>,
}

/// Generates under a progress bar.
pub(crate) fn generate(
    job: &GenJob<'_>,
    profile: &Profile,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(Vec<WrittenFile>, PhaseReport), Error> {
    let threads =
        job.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    console.detail(|| format!("{threads} threads, row groups of {} rows", job.layout.row_group_rows));
    let phase = profile.phase("generate");
    let files = console.with_bar("generate", job.layout.rows, &phase, || {
        write(
            job.dataset,
            &Job { layout: job.layout, output: job.output, seed: job.seed, threads, phase: &phase, cancel },
        )
    })?;
    Ok((files, phase.finish()))
}

fn summary(files: &[WrittenFile], phase: &PhaseReport, out: &Path) -> String {
    let what = match files {
        [_] => "1 file".to_owned(),
        files => format!("{} files", files.len()),
    };
    format!("{what} in {}: {}", out.display(), phases::summary(phase))
}

/// The dataset that a user means by `name`: a built-in one, or the spec in a file.
pub(crate) fn dataset(name: &str) -> Result<Dataset, Error> {
    if let Some(dataset) = Dataset::built_in(name) {
        return Ok(dataset?);
    }
    let text = spec_text(name)?;
    Dataset::from_toml(&text)
        .map_err(|error| Error::usage(error.what(), format!("{name}, {}", error.place()), error.advice()))
}

fn spec_text(name: &str) -> Result<String, Error> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return Ok((*text).to_owned());
    }
    fs::read_to_string(name).map_err(|error| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        Error::usage(
            format!("no dataset: {error}"),
            name,
            format!("give a TOML file or a built-in dataset: {}", names.join(", ")),
        )
    })
}
