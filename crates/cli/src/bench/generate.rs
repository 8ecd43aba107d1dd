//! `sawmill bench gen`: whole generations, each into a directory that is removed afterwards.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clap::Args;
use sawmill_generator::Output;
use sawmill_profile::Run;
use tempfile::TempDir;

use crate::arguments::paths;
use crate::bench::against::ReportedWork;
use crate::bench::case::{Done, Measured, Measurement, Surroundings};
use crate::bench::own_process;
use crate::bench::plan::PlanArgs;
use crate::error::{Error, Result};
use crate::footer;
use crate::r#gen::GenArgs;
use crate::r#gen::destination::output_of_run;
use crate::screen::console::Console;

/// Measure the generation of a dataset.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench gen contacts --rows 10M --out /dev/null
  sawmill bench gen contacts --rows 1M --threads 1,2 --html threads.html
  sawmill bench gen contacts --rows 10M --files 4 --out s3://bucket/scratch
  sawmill bench gen contacts --rows 1M --against 'sh -c \"my-generator --rows 1000000 --out $SAWMILL_BENCH_OUT\"'

Each run writes into a new directory and removes it afterwards: a temporary one, or one below the directory or URL
that --out names. It writes directly to a device like /dev/null. Another program finds a directory of this machine
in SAWMILL_BENCH_OUT; the Parquet files that it leaves there must have as many rows as ours. Or it reports its rows
in the last line of its output: {\"rows\": 1000000}.")]
pub(crate) struct GenBench {
    #[command(flatten)]
    job: GenArgs,
    #[command(flatten)]
    pub plan: PlanArgs,
}

pub(crate) fn measure(args: &GenBench, measurement: &Measurement<'_>) -> Result<Measured> {
    if args.job.table.is_some() {
        return Err(Error::usage(
            "--table-format is not part of what is measured",
            "--table-format",
            "leave it out",
        ));
    }
    let (out, console) = (args.job.out.as_path(), measurement.console);
    let plan = args.job.plan(console)?;
    let asked = output_of_run(&args.job, &name_of_run())?;
    if asked == Output::Stdout {
        return Err(Error::usage("results go to standard output", "--out -", "give /dev/null instead"));
    }
    let to = match &asked {
        Output::Device(_) => To::Device,
        Output::Store(_) => To::Store(args, None),
        _ => To::Directory,
    };
    let room = OutputDirectory { parent: parent_of(&asked, out), directory: None, to };
    measurement.case(room, |profile| {
        let given = own_process::place(OUT);
        let is_store = matches!(asked, Output::Store(_));
        let is_temporary = given.is_none() && !matches!(asked, Output::Store(_) | Output::Device(_));
        let directory = is_temporary.then(|| temporary(&parent_of(&asked, out))).transpose()?;
        let output = match (&given, is_store) {
            (Some(given), true) => output_of_run(&args.job, given)?,
            (None, true) => output_of_run(&args.job, &name_of_run())?,
            (Some(given), false) => inside(Path::new(given), &asked),
            (None, false) => {
                directory.as_ref().map_or(asked.clone(), |directory| inside(directory.path(), &asked))
            }
        };
        // The final table has the figures of each run.
        let quiet = Console { verbose: 0, ..console };
        let generated = args.job.generate(&plan, &output, None, profile, quiet);
        let removed = if given.is_none() { remove_objects(&output) } else { Ok(()) };
        let (files, phase) = generated?;
        removed?;
        directory.map_or(Ok(()), close)?;
        let rows = files.iter().map(|file| file.rows).sum();
        let bytes = files.iter().map(|file| file.bytes).sum();
        Ok(Done { phase, rows: Some(rows), bytes, stored: None, checksum: None })
    })
}

/// The variable that names the directory for the files of a run; of a run that writes to a store, the folder
/// there.
const OUT: &str = "SAWMILL_BENCH_OUT";

/// The name of the next run's folder in a store.
fn name_of_run() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("sawmill-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed))
}

/// Removes what a run has written to its folder of a store.
fn remove_objects(output: &Output) -> Result<()> {
    let Output::Store(store) = output else { return Ok(()) };
    for below in std::iter::once(String::new()).chain(store.folder.folders()?) {
        for name in store.folder.files(&below)? {
            store.folder.remove(&name)?;
        }
    }
    Ok(())
}

/// The same kind of output inside a directory.
fn inside(directory: &Path, asked: &Output) -> Output {
    match asked {
        Output::File(_) => Output::File(directory.join("dataset.parquet")),
        _ => Output::Directory(directory.to_owned()),
    }
}

/// Where to create directories: where the output was asked for, or among the temporary files.
fn parent_of(asked: &Output, out: &Path) -> PathBuf {
    let here = Path::new(".");
    match asked {
        _ if out == here => std::env::temp_dir(),
        Output::Device(_) | Output::Stdout => std::env::temp_dir(),
        Output::File(path) => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(here).to_owned()
        }
        Output::Directory(path) => path.to_owned(),
        Output::Store(_) => std::env::temp_dir(),
    }
}

/// A place for the files of another program.
struct OutputDirectory<'a> {
    parent: PathBuf,
    directory: Option<TempDir>,
    to: To<'a>,
}

/// Where ours writes to.
enum To<'a> {
    Device,
    Directory,
    /// A store, with the folder in it if the run has a separate process.
    Store(&'a GenBench, Option<String>),
}

impl Surroundings for OutputDirectory<'_> {
    fn before(&mut self) -> Result<Vec<(&'static str, String)>> {
        let directory = self.directory.insert(temporary(&self.parent)?);
        Ok(vec![(OUT, directory.path().display().to_string())])
    }

    fn before_ours(&mut self) -> Result<Vec<(&'static str, String)>> {
        match &mut self.to {
            To::Device => Ok(Vec::new()),
            To::Directory => self.before(),
            To::Store(_, run) => Ok(vec![(OUT, run.insert(name_of_run()).clone())]),
        }
    }

    fn after_ours(&mut self, _: &mut Run) -> Result<()> {
        if let To::Store(args, run) = &mut self.to
            && let Some(run) = run.take()
        {
            remove_objects(&output_of_run(&args.job, &run)?)?;
        }
        self.directory.take().map_or(Ok(()), close)
    }

    fn after(&mut self, _: &str, run: &mut Run, work: &ReportedWork) -> Result<()> {
        let Some(directory) = self.directory.take() else { return Ok(()) };
        if !empty(directory.path()) {
            let (mut rows, mut bytes) = (0i64, 0);
            for file in paths::parquet_files(directory.path())? {
                rows = rows.saturating_add(footer::summarise(&file)?.rows);
                bytes += file.metadata().map_or(0, |file| file.len());
            }
            // The rows in the files count, whatever the program reports.
            run.rows = u64::try_from(rows).ok();
            run.bytes = work.bytes.or(Some(bytes));
        }
        close(directory)
    }

    fn abandon(&mut self) {
        self.directory = None;
    }

    fn folders(&self) -> Vec<PathBuf> {
        vec![self.parent.clone()]
    }
}

fn empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}

/// A new directory for the files of one run.
fn temporary(parent: &Path) -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("sawmill-bench-").tempdir_in(parent);
    made.map_err(|error| {
        let place = parent.display().to_string();
        Error::failure(format!("creating a directory failed: {error}"), place, "name another with --out")
    })
}

fn close(directory: TempDir) -> Result<()> {
    let place = directory.path().display().to_string();
    let failed = |e| Error::failure(format!("removing failed: {e}"), place, "remove it by hand");
    directory.close().map_err(failed)
}
