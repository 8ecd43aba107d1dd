//! The arguments of the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sawmill_generator::ColumnCompression;

use crate::FooterLevel;
use crate::cluster::access::{AccessArgs, ClusterArgs};

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
    /// Load the rows of a SELECT over Parquet files into a table: what `sawmill load --query` runs.
    Load(LoadArgs),
    /// Plan jobs and hand their tasks to executors, until the process is ended.
    Scheduler(SchedulerArgs),
    /// Run tasks of a scheduler, until the process is ended.
    Executor(ExecutorArgs),
    /// Run a job whose units of work are placed on the executors of a scheduler.
    #[command(subcommand)]
    Submit(Job),
    /// Start a scheduler, two executors and PostgreSQL on this machine; generate files, read their footers by SQL, load
    /// them, and compare the table with them.
    Demo(DemoArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Generate the files of a dataset, as `sawmill gen` does: the same bytes.
    Gen(SubmitGenArgs),
    /// Read footers and print a row for each column chunk, row group or file.
    Footer(SubmitFooterArgs),
    /// Load Parquet files or generated rows into a table of PostgreSQL, as `sawmill load --part` does.
    Load(SubmitLoadArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The columns are those of the table footer() in SQL. Rows come in no order: executors read the files side by side.

Example:
  sawmill-cluster submit footer '/shared/**/*.parquet' --level file --json --scheduler df://scheduler:50050")]
pub(crate) struct SubmitFooterArgs {
    /// A file, a folder or a pattern.
    pub files: String,
    /// What a row is.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = FooterLevel::Chunk)]
    pub level: FooterLevel,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub printed: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each part of the load is a unit of work, over one connection. When all parts are in, this process checks that no unit
is missing and puts the table in its place. The same command again finishes a job that was ended. Passwords come from
PGPASSWORD or ~/.pgpass of each executor and of this process.

Example:
  sawmill-cluster submit load '/shared/contacts/*.parquet' --to postgres://me@db/logs --table contacts --parts 16 \\
    --verify --scheduler df://scheduler:50050")]
pub(crate) struct SubmitLoadArgs {
    /// Files, a folder or a pattern, also as URLs of a store (s3://bucket/data/**); or rows of the generator:
    /// gen:contacts?rows=1M&seed=7, gen:tpch/orders?scale=10, gen:shop.toml/orders.
    pub source: String,
    /// The address of the server, without a password: postgres://user@host/database.
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// The table, which is created.
    #[arg(long, value_name = "TABLE")]
    pub table: String,
    /// Parts of the load; each has one connection.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub parts: u32,
    /// Read the table back and compare it with the source; exit with 4 if they differ.
    #[arg(long)]
    pub verify: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub printed: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each file is a unit of work. It appears when it is complete; complete files are kept, so that the same command again
finishes a job that was ended. Each executor, the scheduler and this process have to see the same folder, or reach the
same store; its keys come from the environment of each process, such as AWS_ACCESS_KEY_ID.

Examples:
  sawmill-cluster submit gen contacts --rows 1B --files 256 --out /shared/contacts --scheduler df://scheduler:50050
  sawmill-cluster submit gen contacts --rows 1B --files 256 --out s3://bucket/contacts --scheduler df://scheduler:50050
  sawmill-cluster submit gen tpch --scale 100 --files 64 --out s3://bucket/tpch --scheduler df://scheduler:50050")]
pub(crate) struct SubmitGenArgs {
    #[command(flatten)]
    pub dataset: DatasetArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub printed: PrintArgs,
}

/// Which files.
#[derive(Debug, Args)]
pub(crate) struct DatasetArgs {
    /// A built-in dataset, a table of TPC-H or TPC-DS (tpch/lineitem and so on; tpch makes all) or the path of a TOML
    /// file (if it has several tables, all of them, or one as SPEC/TABLE). With several tables, each gets a folder.
    pub spec: String,
    /// Rows of the dataset, like 1000, 10M or 1.5B [default: as its spec says, else a million].
    #[arg(long, value_name = "N", value_parser = count)]
    pub rows: Option<u64>,
    /// The scale factor of TPC-H or TPC-DS, which determines the rows of its tables [default: 1], or what the rows of
    /// each table of a spec with several are multiplied by.
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Number of files, with an equal share of the rows each.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub files: u32,
    /// The folder of the files: a path, or a URL of a store such as s3://BUCKET/FOLDER.
    #[arg(long, value_name = "FOLDER")]
    pub out: String,
    /// The seed of all random values [default: 42]. Tables of TPC-H and TPC-DS always have the same rows.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The codec of pages: none, snappy, lz4, zstd, zstd:LEVEL, gzip or brotli; for one column, for all columns of a
    /// struct, list or map, or for all other columns. May be repeated [default: none].
    #[arg(long, value_name = "[COLUMN=]CODEC")]
    pub compression: Vec<ColumnCompression>,
}

fn count(text: &str) -> Result<u64, String> {
    sawmill_profile::parse_count(text).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Rows to generate.
    #[arg(long, value_name = "N", default_value = "10M", value_parser = count)]
    pub rows: u64,
    /// Files to generate.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub files: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Table functions:
  gen(SPEC, rows => N, seed => N, scale => FACTOR, number => 'COLUMN', partitions => N)
      rows of a built-in dataset, a TOML file ('shop.toml/orders' is a table of one with several) or a table of TPC-H
      ('tpch/lineitem', scale => 10), made when they are read
  footer(FILES, level => 'chunk' | 'row_group' | 'file')
      what the footers of Parquet files state; FILES is a file, a directory or a pattern
  parquet(FILES, max_page => 67108864)
      the rows of Parquet files, whose pages have at most so many bytes; executors have --max-page

Tables of PostgreSQL (pg.*) and CrateDB (crate.*), with --to:
  INSERT INTO pg.TABLE [(COLUMNS)] SELECT ..        CREATE TABLE pg.TABLE AS SELECT ..
  COPY (SELECT ..) TO pg.TABLE [(COLUMNS)]          pg.SCHEMA.TABLE names the schema, too
      The result is the number of rows that the server has stored. PostgreSQL takes all rows of a statement or none, and
      so does a new table of CrateDB. CrateDB has no transactions: if an INSERT into an existing table fails, the error
      says how many of its rows are there, and whether to run the same statement again.

Examples:
  sawmill-cluster sql \"SELECT count(*), max(name) FROM gen('contacts', rows => 1e6, seed => 7)\"
  sawmill-cluster sql \"SELECT path, sum(compressed_bytes) FROM footer('data/**') GROUP BY path\" --csv
  sawmill-cluster sql --to postgres://me@db/shop \"CREATE TABLE pg.orders AS SELECT * FROM gen('orders', rows => 1e6)\"
  sawmill-cluster sql --to crate://db:4200 \"INSERT INTO crate.orders SELECT * FROM parquet('new/**')\" \\
    --scheduler df://scheduler:50050")]
pub(crate) struct SqlArgs {
    /// The statement.
    pub sql: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// A server whose tables statements fill: postgres://user@host/database for the tables pg.*,
    /// crate://host:4200,host2:4200/schema for the tables crate.*. Give it twice for both. This process alone connects to
    /// it, also when executors make the rows.
    #[arg(long, value_name = "URL")]
    pub to: Vec<String>,
    /// How many partitions a query has: tasks on a cluster, threads in this process [default: the cores here].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub partitions: Option<u32>,
    #[command(flatten)]
    pub printed: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The query reads the source as the table `read`. One transaction of PostgreSQL takes all rows or none; a new table of
CrateDB appears with all of them.

Example:
  sawmill-cluster load /data/trips --query 'SELECT vendor, sum(tip) AS tips FROM read GROUP BY vendor' \\
    --to postgres://me@db/shop --table tips")]
pub(crate) struct LoadArgs {
    /// A file, a folder or a pattern of Parquet files.
    pub source: String,
    /// The query.
    #[arg(long, value_name = "SELECT", allow_hyphen_values = true)]
    pub query: String,
    /// The server: postgres://user@host/database or crate://host:4200.
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// The table: NAME or SCHEMA.NAME.
    #[arg(long, value_name = "NAME")]
    pub table: String,
    /// What to do with the table.
    #[arg(long, value_enum, default_value = "create")]
    pub mode: LoadMode,
    /// How many threads run the query [default: the cores here].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub partitions: Option<u32>,
    /// Print the result, or the error, as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors.
    #[arg(long)]
    pub quiet: bool,
}

/// What a load does with the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LoadMode {
    /// Create the table, which must not exist.
    Create,
    /// Add rows to an existing table of PostgreSQL; columns are matched by name.
    Append,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

/// How to print rows, by default as a table.
#[derive(Debug, Args)]
pub(crate) struct PrintArgs {
    /// Print a JSON object a row.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values, the first line with the names of the columns.
    #[arg(long)]
    pub csv: bool,
}

impl PrintArgs {
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
    /// The address to listen on. Others than the loopback need TLS.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind: std::net::IpAddr,
    /// The port to listen on; 0 takes a free one, which is printed.
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub port: u16,
    /// The name by which executors and clients reach this machine [default: the address that it listens on].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// After this many seconds without a sign of life, an executor's tasks go to other executors. A busy one gives
    /// a sign every 5 seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..))]
    pub executor_timeout: u64,
    #[command(flatten)]
    pub access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutorArgs {
    /// The scheduler, such as df://scheduler:50050.
    #[arg(long, value_name = "URL")]
    pub scheduler: String,
    /// The address to listen on, for other executors and clients that fetch rows. Others than the loopback need TLS.
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
    /// The most bytes of a page of a Parquet file: one of a damaged or hostile file may claim 2 GiB.
    #[arg(long, value_name = "BYTES", default_value_t = sawmill_inspect::DEFAULT_MAX_PAGE)]
    pub max_page: u64,
    /// Bytes that the operators of all tasks may take before they spill [default: 70 % of the memory].
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub access: AccessArgs,
}
