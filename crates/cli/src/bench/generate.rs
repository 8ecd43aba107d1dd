//! `sawmill bench gen`: whole generations, into a directory that is gone after each run.

use std::path::Path;

use clap::Args;
use sawmill_generator::Output;
use sawmill_profile::{Case, Profile};
use tempfile::TempDir;

use crate::bench::case::{Done, Measurement};
use crate::bench::plan::PlanArgs;
use crate::console::Console;
use crate::error::Error;
use crate::r#gen::{self, GenArgs};

/// Measure the generation of a dataset.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench gen contacts --rows 10M --out /dev/null
  sawmill bench gen contacts --rows 1M --threads 1,2 --html threads.html
  sawmill bench gen contacts --rows 1M --against 'my-generator --rows 1000000'

Each run writes into a new directory, which is removed after it: a temporary one or, where --out names
one, inside of that. A device like /dev/null is written to as it is.")]
pub(crate) struct GenBench {
    #[command(flatten)]
    job: GenArgs,
    #[command(flatten)]
    pub plan: PlanArgs,
}

pub(crate) fn measure(args: &GenBench, measurement: &Measurement<'_>) -> Result<Case, Error> {
    if args.job.prints() {
        return Err(Error::usage("nothing is generated", "--print", "leave it out"));
    }
    let plan = args.job.plan()?;
    let (out, console, cancel) = (args.job.out(), measurement.console, measurement.cancel);
    let asked = Output::from_path(out);
    if asked == Output::Stdout {
        return Err(Error::usage("standard output has the results", "--out -", "give /dev/null"));
    }
    measurement.case(&[], || {
        let directory = Temporary::beside(&asked, out)?;
        let output = directory.output(&asked);
        let job = args.job.job(&plan, &output);
        // The table of the end has the figures of each run.
        let quiet = Console { verbose: 0, ..console };
        let (files, phase) = r#gen::generate(&job, &Profile::new(), quiet, cancel)?;
        directory.close()?;
        let rows = files.iter().map(|file| file.rows).sum();
        let bytes = files.iter().map(|file| file.bytes).sum();
        Ok(Done { phase, rows: Some(rows), bytes, checksum: None })
    })
}

/// Where the files of one run are.
struct Temporary(Option<TempDir>);

impl Temporary {
    /// A new directory inside of the one that is asked for; none for a device.
    fn beside(asked: &Output, out: &Path) -> Result<Self, Error> {
        let here = Path::new(".");
        let parent = match asked {
            Output::Device(_) | Output::Stdout => return Ok(Temporary(None)),
            Output::File(path) => {
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(here)
            }
            Output::Directory(path) => path,
        };
        let temporary = std::env::temp_dir();
        let parent = if out == here { &temporary } else { parent };
        let failed = |error: std::io::Error| {
            let place = parent.display().to_string();
            Error::failure(format!("making a directory failed: {error}"), place, "name another with --out")
        };
        let made = tempfile::Builder::new().prefix("sawmill-bench-").tempdir_in(parent).map_err(failed)?;
        Ok(Temporary(Some(made)))
    }

    fn output(&self, asked: &Output) -> Output {
        match (&self.0, asked) {
            (Some(directory), Output::File(_)) => Output::File(directory.path().join("dataset.parquet")),
            (Some(directory), _) => Output::Directory(directory.path().to_owned()),
            (None, asked) => asked.clone(),
        }
    }

    fn close(self) -> Result<(), Error> {
        let Some(directory) = self.0 else { return Ok(()) };
        let place = directory.path().display().to_string();
        let failed = |e| Error::failure(format!("removing failed: {e}"), place, "remove it by hand");
        directory.close().map_err(failed)
    }
}
