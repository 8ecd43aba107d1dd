//! `sawmill load`: Parquet files into a table.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use sawmill_loader::{
    Control, LoadOptions, LoadReport, ParquetFiles, Postgres, Source, Standing, forget, load,
};
use sawmill_profile::{PhaseReport, Profile};
use serde::Serialize;

use crate::console::Console;
use crate::error::Error;
use crate::inputs;
use crate::phases;
use crate::target::{EffortArgs, ModeArg, TargetArgs};

/// Load Parquet files into a PostgreSQL table, every row exactly once.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill load trips.parquet --to postgres://me@localhost/db --table trips
  sawmill load /data/trips --to postgres://me@localhost/db --table public.trips --verify
  sawmill load new.parquet --to 'host=/var/run/postgresql dbname=db' --table trips --mode append
  sawmill load trips.parquet --to postgres://localhost/db --table trips --ddl
  sawmill load forget --to postgres://me@localhost/db --table trips

After any failure (Ctrl-C, a killed process, a lost connection) the same command again loads exactly
what is missing. In mode create the table appears under its name when it is complete."
)]
pub(crate) struct LoadArgs {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// Parquet files, or directories that are searched for them.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// What happens to the table.
    #[arg(long, value_enum, default_value = "create")]
    mode: ModeArg,
    #[command(flatten)]
    effort: EffortArgs,
    /// Compare what is in the table with what is in the files before the load counts as complete.
    #[arg(long)]
    verify: bool,
    /// Print the CREATE TABLE statement and stop.
    #[arg(long)]
    ddl: bool,
}

#[derive(Subcommand, Debug)]
enum LoadCommand {
    /// Remove the records of loads into a table, and what unfinished loads left behind.
    #[command(after_help = "\
Examples:
  sawmill load forget --to postgres://me@localhost/db --table trips

The table itself stays.")]
    Forget(TargetArgs),
}

/// What `--json` prints.
#[derive(Serialize)]
struct LoadResult<'a> {
    table: &'a str,
    report: &'a LoadReport,
    phase: &'a PhaseReport,
}

pub(crate) fn run(args: &LoadArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    if let Some(LoadCommand::Forget(target)) = &args.command {
        return run_forget(target, console, cancel);
    }
    let files = inputs::parquet_files(&args.files)?;
    let options = LoadOptions { verify: args.verify, ..args.effort.options()? };
    let target = args.target.postgres()?.mode(args.mode.into());
    let source = ParquetFiles::open(&files)?;
    if args.ddl {
        let ddl = target.ddl(&source)?;
        return console.result(&ddl, || ddl.clone() + ";\n");
    }
    console.detail(|| {
        format!(
            "{} connections, units of {} rows, at most {} of encoded rows in memory",
            options.degree,
            options.unit_rows,
            phases::bytes(options.block_memory())
        )
    });
    let profile = Profile::new();
    let (report, phase) = load_files(&source, &target, &options, &profile, console, cancel)?;
    let result = LoadResult { table: args.target.table(), report: &report, phase: &phase };
    console.result(&result, || summary(args.target.table(), &report, &phase))
}

/// Loads under a progress bar.
pub(crate) fn load_files(
    source: &ParquetFiles,
    target: &Postgres,
    options: &LoadOptions,
    profile: &Profile,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(LoadReport, PhaseReport), Error> {
    let rows = source.files().iter().map(|file| file.rows).sum();
    let phase = profile.phase("load");
    let control = Control::new(cancel, &phase);
    let report = console.with_bar("load", rows, &phase, || load(source, target, options, &control))?;
    Ok((report, phase.finish()))
}

fn summary(table: &str, report: &LoadReport, phase: &PhaseReport) -> String {
    let mut out = match report.standing {
        Standing::Complete => format!(
            "{table}: this load was complete already, {} rows; nothing to do\n",
            phases::thousands(report.rows)
        ),
        Standing::Resumed => format!(
            "{table}: went on from {} of {} units; now {} rows\n",
            report.units_resumed,
            report.units,
            phases::thousands(report.rows)
        ),
        Standing::New => format!("{table}: {} rows\n", phases::thousands(report.rows)),
    };
    out += &format!("loaded {}\n", phases::summary(phase));
    if report.retries > 0 {
        out += &format!("{} lost connections tried again\n", report.retries);
    }
    out += &format!("content sum {}", report.content.content_sum);
    if report.verified.is_some() {
        out += ", verified: the table holds what the files hold";
    }
    out + "\n"
}

fn run_forget(args: &TargetArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let profile = Profile::new();
    let phase = profile.phase("forget");
    let forgotten = forget(&args.postgres()?, false, &Control::new(cancel, &phase))?;
    console.result(&forgotten, || {
        let staging = if forgotten.staging_dropped { "; dropped an unfinished table" } else { "" };
        format!("{}: forgot {} loads{staging}\n", args.table(), forgotten.loads)
    })
}
