//! The arguments of `sawmill drive`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sawmill_loader::Part;
use sawmill_profile::parse_duration;

use crate::arguments::part_arg;
use crate::drive::watching::WatchArgs;
use crate::screen::phases;

/// Load-test a database: operations at a set rate, latency from the intended start, and proof that no
/// acknowledged row was lost.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill drive gen:events --to local --rate 1000 --for 30s
  sawmill drive gen:orders --to postgres://me@localhost/db --rate 50k --connections 16 --for 5m --overwrite
  sawmill drive gen:orders --to postgres://me@localhost/db --rate 'ramp 100..5k over 60s' --limit 'p99 < 20ms'
  sawmill drive gen:orders --to postgres://me@localhost/db --find-max --p99 50ms --for 10s --overwrite
  sawmill drive gen:orders --to local --rate 500 --for 60s --chaos 'kill server every 10s'
  sawmill drive gen:events --to crate://localhost:4200 --rate 200 --for 30s
  sawmill drive shop.toml --to postgres://me@localhost/db --json-file result.json
  sawmill drive fixtures/plans/tpc-b.toml --to local --for 30s                  # transfers that meet at one branch
  sawmill drive gen:events --to local --rate 1000 --for 30s --html run.html --prometheus :9400
  sawmill drive merge one.json two.json --json-file both.json
  sawmill drive gen:orders --to null --rate 100k --connections 1 --for 10s      # the driver's own capacity

Operations have intended start times; latency counts from these, so that a server that stalls is not flattered.
With --clients the loop is closed: the next operation of a client begins when the one before has ended.

Rates: 200, 50k, 'ramp 100..5k over 60s', 'steps 100,200,400 every 30s', 'sine 100..1000 every 60s'.
Arrivals: poisson, constant, 'bursts of 50', 'trace FILE' (a moment in seconds on each line).

Afterwards every table is read back: acknowledged rows must be there with their values, refused ones not. Then the
checks of the plan are carried out: each is a statement that must return no row.
Exit codes: 1 the driver spoilt the figures (the result is invalid), no operation ended well, --chaos failed, or the
rows could not be read back. 3 a limit does not hold or --abort-when ended the run. 4 rows or updates are lost or
differ, a read was outdated, or a check of the plan does not hold."
)]
pub(crate) struct DriveCommand {
    #[command(subcommand)]
    pub results: Option<OfResults>,
    #[command(flatten)]
    pub args: DriveArgs,
}

/// What else to do with the results of load tests.
#[derive(Subcommand, Debug)]
pub(crate) enum OfResults {
    Merge(crate::drive::merge::MergeArgs),
}

/// What to run, and how.
#[derive(Args, Debug)]
pub(crate) struct DriveArgs {
    /// A plan (a TOML file), or gen:NAME: single prepared inserts of the rows of a built-in dataset or of a
    /// dataset spec.
    #[arg(value_name = "PLAN", required = true)]
    plan: Option<String>,
    /// The server: postgres://... or crate://..., as for `load`; `local` starts a private PostgreSQL (with
    /// fsync), `null` is a target that does nothing.
    #[arg(long, value_name = "URL", required = true)]
    to: Option<String>,
    /// A setting of the private PostgreSQL: synchronous_commit=off.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The table for gen:NAME [default: the dataset's name].
    #[arg(help_heading = "Tables", long, value_name = "NAME")]
    pub table: Option<String>,
    /// Rows that are in the table of gen:NAME before the run.
    #[arg(help_heading = "Tables", long, value_parser = phases::count)]
    pub rows: Option<u64>,
    /// Operations a second, or how they change over time [default: the plan's, or 100].
    #[arg(help_heading = "Pace", long, value_name = "RATE")]
    pub rate: Option<String>,
    /// How operations are spread [default: the plan's, or poisson].
    #[arg(help_heading = "Pace", long, value_name = "PROCESS")]
    pub arrivals: Option<String>,
    /// A closed loop of this many clients, instead of a rate.
    #[arg(help_heading = "Connections", long, value_name = "N", conflicts_with_all = ["rate", "arrivals", "connections", "find_max"])]
    pub clients: Option<usize>,
    /// How long a client waits between two operations.
    #[arg(help_heading = "Connections", long, value_name = "TIME", requires = "clients", value_parser = parse_duration)]
    pub think: Option<Duration>,
    /// How long the part of the run lasts that counts [default: the plan's, or 60s].
    #[arg(help_heading = "Pace", long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub length: Option<Duration>,
    /// How long the part before it lasts, which does not count.
    #[arg(help_heading = "Pace", long = "warmup-time", value_name = "TIME", value_parser = parse_duration)]
    pub warm_up: Option<Duration>,
    /// Connections [default: the plan's, or 8].
    #[arg(help_heading = "Connections", long, value_name = "N")]
    pub connections: Option<usize>,
    /// Decides all random draws [default: the plan's, or 42].
    #[arg(long)]
    pub seed: Option<u64>,
    /// A limit: 'insert.p99 < 20ms', 'errors <= 0.1%', 'failed-p99 < 1s', 'rate > 900'. May be given several times.
    #[arg(help_heading = "Limits", long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// End the run when this becomes true: 'errors > 5%', 'p99 > 1s after 30s'. May be given several times.
    #[arg(help_heading = "Limits", long, value_name = "LIMIT")]
    pub abort_when: Vec<String>,
    /// Search the highest rate that holds the limits; each trial lasts as long as --for says.
    #[arg(help_heading = "Limits", long)]
    pub find_max: bool,
    /// With --find-max: the limit of the 99th percentile.
    #[arg(help_heading = "Limits", long, value_name = "TIME", requires = "find_max", value_parser = parse_duration)]
    pub p99: Option<Duration>,
    /// With --find-max: how many searches to make.
    #[arg(help_heading = "Limits", long, value_name = "N", requires = "find_max", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeats: u16,
    /// Do something to the server: 'kill server every 30s', 'stop server for 1s every 30s' (with --to local), or
    /// 'COMMAND every 1m'.
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub chaos: Option<String>,
    /// Do not read the tables back, and carry out no checks.
    #[arg(help_heading = "Tables", long)]
    pub no_proof: bool,
    /// Drop tables that exist.
    #[arg(long)]
    pub overwrite: bool,
    /// Drop the tables after the run.
    #[arg(help_heading = "Tables", long)]
    pub drop: bool,
    /// Which of several driving processes this is: 2/4, or auto/4 for the index that a job scheduler has set. Each
    /// has its part of the rate and of the rows.
    #[arg(long, value_name = "K/N", value_parser = part_arg::part)]
    pub part: Option<Part>,
    /// When to start, for several processes: seconds since 1970 (date -d '+1 min' +%s).
    #[arg(help_heading = "Pace", long, value_name = "SECONDS")]
    pub start_at: Option<f64>,
    /// Write the result to this file, as JSON.
    #[arg(long, alias = "results", value_name = "FILE")]
    pub json_file: Option<PathBuf>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

// Both are required, except by the sub-command that adds up results.
impl DriveArgs {
    /// The plan, or `gen:` and a dataset.
    pub(super) fn plan(&self) -> &str {
        self.plan.as_deref().unwrap_or_default()
    }

    /// The server.
    pub(super) fn to(&self) -> &str {
        self.to.as_deref().unwrap_or_default()
    }
}
