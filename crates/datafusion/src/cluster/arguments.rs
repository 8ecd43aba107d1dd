//! The arguments of the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// SQL over generated rows and Parquet footers, in one process or on a cluster of machines.
#[derive(Debug, Parser)]
#[command(name = "sawmill-cluster", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one SQL statement and print its rows.
    Sql(SqlArgs),
    /// Plan jobs and hand their tasks to executors, until the process is ended.
    Scheduler(SchedulerArgs),
    /// Run tasks of a scheduler, until the process is ended.
    Executor(ExecutorArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Table functions:
  gen(SPEC, rows => N, seed => N, number => 'COLUMN', partitions => N)
      rows of a built-in dataset or a TOML file, made when they are read
  footer(FILES, level => 'chunk' | 'row_group' | 'file')
      what the footers of Parquet files state; FILES is a file, a directory or a pattern

Examples:
  sawmill-cluster sql \"SELECT count(*), max(name) FROM gen('contacts', rows => 1e6, seed => 7)\"
  sawmill-cluster sql \"SELECT path, sum(compressed_bytes) FROM footer('data/**') GROUP BY path\" --csv")]
pub(crate) struct SqlArgs {
    /// The statement.
    pub sql: String,
    /// The scheduler of a cluster, such as df://scheduler:50050. Without it the statement runs in this process.
    #[arg(long, value_name = "URL")]
    pub scheduler: Option<String>,
    /// How many partitions a query has: tasks on a cluster, threads in this process [default: the cores here].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub partitions: Option<u32>,
    /// Print a JSON object a row.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values, the first line with the names of the columns.
    #[arg(long)]
    pub csv: bool,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

impl SqlArgs {
    pub(crate) fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => Format::Table,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SchedulerArgs {
    /// The address to listen on. Anybody who reaches it can run SQL: there is neither TLS nor a password.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind: std::net::IpAddr,
    /// The port to listen on; 0 takes a free one, which is printed.
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub port: u16,
    /// The name by which executors and clients reach this machine [default: the address that it listens on].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// After so many seconds without a sign of life, the tasks of an executor are given to others.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..))]
    pub executor_timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutorArgs {
    /// The scheduler, such as df://scheduler:50050.
    #[arg(long, value_name = "URL")]
    pub scheduler: String,
    /// The address to listen on, for other executors and clients that fetch rows.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind: std::net::IpAddr,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// The name by which others reach this machine [default: the address that it listens on].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// How many tasks run at a time [default: the cores of this machine].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub tasks: Option<u32>,
    /// Where rows between stages are kept [default: a temporary directory].
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Bytes that the operators of all tasks may take before they spill [default: 70 % of the memory].
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
}
