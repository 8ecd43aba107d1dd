//! `sawmill bench load`: whole loads, each into a table of its own that is dropped after it.

use std::path::PathBuf;

use clap::Args;
use sawmill_loader::{LoadOptions, ParquetFiles, TableName};
use sawmill_localpg::LocalPg;
use sawmill_profile::{Case, Profile};

use crate::bench::case::{Done, Measurement};
use crate::bench::plan::PlanArgs;
use crate::console::Console;
use crate::demo;
use crate::error::Error;
use crate::inputs;
use crate::load::load_files;
use crate::target::{self, EffortArgs};

/// Measure loading Parquet files into a table.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench load /data/trips --degree 1,2,4
  sawmill bench load /data/trips --to postgres://me@localhost/db --table scratch.trips --runs 10
  sawmill bench load trips.parquet --against \"sh -c 'my-loader trips.parquet $SAWMILL_BENCH_URL'\"

Each run makes a table, NAME with numbers behind it, and drops it. Without --to a private PostgreSQL is
started for all runs, with fsync off. Other programs find the server's address in SAWMILL_BENCH_URL;
what they load they have to remove.")]
pub(crate) struct LoadBench {
    /// Parquet files, or directories that are searched for them.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Load into this server instead of starting one.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// What the tables' names begin with: NAME or SCHEMA.NAME.
    #[arg(long, default_value = "sawmill_bench")]
    table: String,
    #[command(flatten)]
    effort: EffortArgs,
    /// Compare what is in the table with what is in the files, as part of each run.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// A server that is there for one benchmark.
pub(crate) struct Server {
    local: LocalPg,
    pub version: String,
}

impl Server {
    /// Starts one where the arguments name none.
    pub(crate) fn start(args: &LoadBench, console: Console) -> Result<Option<Self>, Error> {
        // A wrong name is told before anything is started.
        let _: TableName = args.table.parse()?;
        if args.to.is_some() {
            return Ok(None);
        }
        let (local, version) = demo::start_server(&Profile::new(), console)?;
        Ok(Some(Server { local, version }))
    }

    pub(crate) fn stop(self) -> Result<(), Error> {
        Ok(self.local.stop()?)
    }
}

pub(crate) fn measure(
    args: &LoadBench,
    server: Option<&Server>,
    measurement: &Measurement<'_>,
) -> Result<Case, Error> {
    let source = ParquetFiles::open(&inputs::parquet_files(&args.files)?)?;
    let options = LoadOptions { verify: args.verify, ..args.effort.options()? };
    let url = match (&args.to, server) {
        (Some(url), _) => url.clone(),
        (None, Some(server)) => server.local.url(),
        (None, None) => return Err(Error::usage("no server", "--to", "give its address")),
    };
    let table: TableName = args.table.parse()?;
    let mut number = 0;
    measurement.case(&[("SAWMILL_BENCH_URL", url.clone())], || {
        number += 1;
        let target = target::postgres(&url, &numbered(&table, number))?;
        let quiet = Console { verbose: 0, ..measurement.console };
        let profile = Profile::new();
        let loaded = load_files(&source, &target, &options, &profile, quiet, measurement.cancel);
        match loaded {
            Ok((report, phase)) => {
                demo::remove(&target, true)?;
                Ok(Done {
                    bytes: phase.bytes,
                    phase,
                    rows: Some(report.rows),
                    checksum: Some(report.content.content_sum.to_string()),
                })
            }
            Err(error) => {
                // Nothing was made where the table was there before or the server was never reached.
                if let Some(made) = error.made_table()
                    && let Err(left) = demo::remove(&target, made)
                {
                    measurement.console.step(&format!("warning: {left}"));
                }
                Err(error)
            }
        }
    })
}

/// The name of the nth table, which no other process of this machine uses.
fn numbered(table: &TableName, number: u32) -> String {
    let name = format!("{}_{}_{number}", table.name(), std::process::id());
    let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    let parts: Vec<String> = table.schema().into_iter().chain([name.as_str()]).map(quoted).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_table_of_its_own_in_the_same_schema() {
        let table: TableName = "scratch.\"my.trips\"".parse().unwrap();
        let third: TableName = numbered(&table, 3).parse().unwrap();
        assert_eq!(third.schema(), Some("scratch"));
        assert_eq!(third.name(), format!("my.trips_{}_3", std::process::id()));
    }
}
