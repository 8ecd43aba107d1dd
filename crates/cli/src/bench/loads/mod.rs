//! `sawmill bench load`: whole loads, each into a new table that is dropped afterwards.

mod alone;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sawmill_loader::{LoadOptions, Mode, TableName, quote};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Nested, Postgres, Strategy, TableKind, verify};
use sawmill_profile::{PhaseReport, Profile, Run, Target};
use sawmill_source::{Addressed, ByRow, Order, OrderedRows, Source};
use sawmill_store::Location;

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::inputs::{self, ColumnArgs, Inputs, ObjectArgs};
use crate::arguments::nested_args::NestedArgs;
use crate::arguments::order_args::{OrderArgs, ordered};
use crate::arguments::table_args::{StrategyArg, partitioned};
use crate::arguments::target::{self, EffortArgs, ModeArg};
use crate::arguments::text::TextArgs;
use crate::arguments::words::YesNo;
use crate::bench::against::ReportedWork;
use crate::bench::case::{Done, Measured, Measurement, Surroundings};
use crate::bench::own_process;
use crate::bench::plan::PlanArgs;
use crate::error::{Error, Result};
use crate::load::load_files;
use crate::screen::console::Console;
use crate::{demo, interrupt};

/// Measure loading Parquet files into a table.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench load /data/trips --connections 1,2,4
  sawmill bench load /data/trips --to postgres://me@localhost/db --table scratch.trips --runs 10
  sawmill bench load trips.parquet --batch-rows 1024..16384*2 --connections 1,2
  sawmill bench load trips.parquet --table-kind logged,unlogged --keyed yes,no --primary-key id --connections 1,2,4,8
  sawmill bench load 'gen:contacts?rows=1M' --connections 1,2
  sawmill bench load s3://bucket/trips --grid --html grid.html
  sawmill bench load trips.parquet --mode replace
  sawmill bench load trips.parquet --to crate://localhost:4200 --row-key --connections 1,2,4
  sawmill bench load contacts.parquet --nested tables
  sawmill bench load trips.parquet --strategy direct,staged --partition-by \"month(pickup)\"
  sawmill bench load trips.csv --sort-by pickup --partition-by \"day(pickup)\"
  sawmill bench load trips.parquet --against 'sh -c \"my-loader trips.parquet $SAWMILL_BENCH_URL $SAWMILL_BENCH_TABLE\"'

--grid means --table-kind logged,unlogged --keyed yes,no --connections 1..16*2: four kinds of tables over 1 to
16 connections, with a picture in --html.

Each run creates a table, called NAME with numbers after it, and drops it. With --table-kind or
--keyed, the empty table is created before the time starts, and rows are appended. Without --to, a private
PostgreSQL is started for all runs, with fsync off. For CrateDB, and with --nested tables, each run creates new
tables, and no other program can be compared.

Another program finds the server's address in SAWMILL_BENCH_URL (of a private server also in
SAWMILL_BENCH_HOST and SAWMILL_BENCH_PORT). It appends to the empty table that SAWMILL_BENCH_TABLE names, which
Sawmill drops afterwards. Sawmill counts its rows, and compares the content of each program's first run with
the files; a difference is an error. A program that loads elsewhere reports its rows in the last line of its
output: {\"rows\": 1000000}.")]
pub(crate) struct LoadBench {
    /// Parquet files, delimited text, directories to search for them, URLs of objects, or gen:DATASET?rows=10M for rows that are generated
    /// while they are loaded.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Load into this server instead of starting one.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The start of the tables' names: NAME or SCHEMA.NAME.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    table: String,
    /// The kind of the table.
    #[arg(help_heading = "New table", long, value_enum)]
    table_kind: Option<Kind>,
    /// Whether the table has a primary key.
    #[arg(help_heading = "New table", long, value_enum)]
    keyed: Option<YesNo>,
    /// How connections fill the partitions of the table.
    #[arg(help_heading = "New table", long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Partition the table, as sawmill load does. Each run creates a new table, and its time includes reading
    /// the files to find the partitions.
    #[arg(help_heading = "New table", long, value_name = "BY")]
    partition_by: Option<String>,
    /// What to do with the table. A mode that needs an existing table gets an empty one before the time
    /// starts.
    #[arg(help_heading = "Mode", long, value_enum, default_value = "create")]
    mode: ModeArg,
    /// The columns of the primary key [default: the first column of the files].
    #[arg(help_heading = "New table", long, value_name = "COLUMNS", value_delimiter = ',')]
    primary_key: Vec<String>,
    /// Compare the table with the files, as part of each run.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    nested: NestedArgs,
    #[command(flatten)]
    crate_options: CrateArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    objects: ObjectArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    order: OrderArgs,
}

/// The variables that name the server and the table of a run.
const URL: &str = "SAWMILL_BENCH_URL";
const TABLE: &str = "SAWMILL_BENCH_TABLE";

/// The start of the tables' names.
const DEFAULT_NAME: &str = "sawmill_bench";

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Its rows are in the write-ahead log.
    Logged,
    /// A crash of the server empties it.
    Unlogged,
}

impl LoadBench {
    /// The start of the tables' names.
    fn name(&self) -> Result<TableName> {
        Ok(self.table.parse()?)
    }

    /// The kind of the tables, if the arguments give one.
    fn kind(&self, source: &dyn Source) -> Result<Option<TableKind>> {
        if self.mode == ModeArg::Auto {
            let what = "each run of a benchmark makes its own table, so there is nothing to choose";
            return Err(Error::usage(what, "--mode auto", "give create, append, truncate or replace"));
        }
        if matches!(self.mode, ModeArg::Upsert | ModeArg::Insert | ModeArg::History) {
            let advice = "give create, append, truncate or replace";
            return Err(Error::usage("the table of a benchmark has no rows to update", "--mode", advice));
        }
        if self.strategy == Some(StrategyArg::Staged) && self.partition_by.is_none() {
            let advice = "add --partition-by, or leave the strategy out";
            let what = "the staged strategy fills the partitions of a table";
            return Err(Error::usage(what, "--strategy staged", advice));
        }
        if self.mode != ModeArg::Create && self.partition_by.is_some() {
            let advice = "leave it out";
            let what = "each run creates the table, which allows only mode create";
            return Err(Error::usage(what, "--mode", advice));
        }
        if self.keyed.is_none() && !self.primary_key.is_empty() {
            return Err(Error::usage("columns without a primary key", "--primary-key", "give --keyed yes"));
        }
        if self.keyed.is_none() && self.table_kind.is_none() && self.mode == ModeArg::Create {
            return Ok(None);
        }
        let first = || source.schema().fields().first().map(|field| field.name().clone());
        let primary_key = match self.keyed {
            Some(YesNo::Yes) if self.primary_key.is_empty() => first().into_iter().collect(),
            Some(YesNo::Yes) => self.primary_key.clone(),
            _ => Vec::new(),
        };
        let unlogged = self.table_kind == Some(Kind::Unlogged);
        Ok(Some(TableKind { unlogged, primary_key, ..TableKind::default() }))
    }

    /// The order of --sort-by, within the partitions of --partition-by if there are some.
    fn order(&self, source: &dyn Source) -> Result<Option<Order>> {
        let by = self.partition_by.as_ref().filter(|_| self.order.sort_by.is_some());
        let order = self.order.order(by.and_then(|by| by.parse().ok()))?;
        order.iter().try_for_each(|order| OrderedRows::check(source, order))?;
        Ok(order)
    }
}

/// A server for one benchmark.
pub(crate) struct Server {
    local: LocalPg,
    pub version: String,
}

impl Server {
    /// Starts a server unless the arguments name one.
    pub(crate) fn start(args: &LoadBench, console: Console) -> Result<Option<Self>> {
        // Reject a wrong name before starting anything.
        args.name()?;
        if args.to.is_some() {
            return Ok(None);
        }
        let (local, version) = demo::start_server(&Profile::new(), console)?;
        Ok(Some(Server { local, version }))
    }

    pub(crate) fn stop(self) -> Result<()> {
        Ok(self.local.stop()?)
    }
}

pub(crate) fn measure(
    args: &LoadBench,
    server: Option<&Server>,
    measurement: &Measurement<'_>,
) -> Result<Measured> {
    let console = measurement.console;
    let columns = ColumnArgs::default();
    let inputs = inputs::open(&args.files, &columns, &args.text, &args.objects, console)?;
    let source = inputs.source();
    let folder = folder_of(args, &inputs);
    let url = address(args, server)?;
    if alone::is_meant(args) {
        let local = server.map(|server| Target::Pid(server.local.pid()));
        let folders = folders_of(folder.as_deref(), server);
        return alone::measure(args, source, (&url, local), folders, measurement);
    }
    args.crate_options.refuse_for_postgres()?;
    let layout = args.nested.layout()?;
    let order = args.order(source)?;
    let by_row = ByRow::new(source);
    let addressed = inputs.addressed().unwrap_or(&by_row);
    let runs = Runs {
        args,
        source,
        order: order.as_ref().map(|order| (order, addressed)),
        options: LoadOptions { verify: args.verify, ..args.effort.options()? },
        kind: args.kind(source)?,
        // Sums of composite values include the OIDs of their types, and each run's table has types of its
        // own.
        sums: layout != Nested::Native,
        console,
    };
    let number = Cell::new(0);
    let name = args.name()?;
    let next = || {
        number.set(number.get() + 1);
        let named = target::postgres(&url, &numbered(&name, number.get()))?;
        Ok::<_, Error>(named.nested(layout))
    };
    let room = TablesOfOthers {
        url: &url,
        server,
        next: &next,
        runs: &runs,
        made: None,
        compared: Vec::new(),
        folder: folder.as_deref(),
    };
    let mut measured = measurement.case(room, |profile| match own_process::place(TABLE) {
        // The process that measures a separate run names, creates and removes the table.
        Some(table) => runs.load(target::postgres(&url, &table)?.nested(layout), true, profile),
        None => runs.load(next()?, false, profile),
    })?;
    if server.is_none() && measurement.once.is_none() {
        let version = interrupt::despite(|control| Ok(next()?.server_version(control)?))?;
        measured.versions.insert("PostgreSQL".to_owned(), version);
    }
    Ok(measured)
}

/// The folder of the files, if they are Parquet files of this machine.
fn folder_of(args: &LoadBench, inputs: &Inputs) -> Option<PathBuf> {
    let first = inputs.files().and_then(|_| args.files.first());
    let path = first.filter(|path| matches!(Location::new(path), Ok(Location::Path(_))))?;
    Some(if path.is_dir() { path.clone() } else { path.parent().map(Path::to_owned).unwrap_or_default() })
}

/// The address of the server.
fn address(args: &LoadBench, server: Option<&Server>) -> Result<String> {
    let url = own_process::place(URL).or_else(|| args.to.clone());
    let url = url.or_else(|| server.map(|server| server.local.url()));
    url.ok_or_else(|| Error::usage("no server", "--to", "give its address"))
}

/// Our runs of a case.
struct Runs<'a> {
    args: &'a LoadBench,
    source: &'a dyn Source,
    /// The order in which rows are read, through an index that each run builds.
    order: Option<(&'a Order, &'a dyn Addressed)>,
    options: LoadOptions,
    /// The kind of the tables, if the arguments give one.
    kind: Option<TableKind>,
    /// Whether content sums of two tables can be compared.
    sums: bool,
    console: Console,
}

impl Runs<'_> {
    /// Whether each run appends to a table that was created empty.
    fn append(&self) -> bool {
        self.kind.is_some() && self.args.partition_by.is_none()
    }

    /// The table at the end has the figures of each run.
    fn quiet(&self) -> Console {
        Console { verbose: 0, ..self.console }
    }

    /// Does one run. Creates and removes the table unless it is given.
    fn load(&self, target: Postgres, given: bool, profile: &Profile) -> Result<Done> {
        let index = |(order, addressed)| {
            let place = self.args.order.place(&std::env::temp_dir());
            ordered(addressed, order, &place, profile, self.quiet())
        };
        let indexed = self.order.map(index).transpose()?;
        let source = indexed.as_ref().map_or(self.source, |(rows, _)| rows);
        let index = indexed.as_ref().map(|(_, report)| report);
        let (target, survey) = self.prepared(target, source, given, profile)?;
        match load_files(source, &target, &self.options, profile, self.quiet()) {
            Ok((report, mut phase)) => {
                let mut stored = None;
                if !given {
                    stored = interrupt::despite(|control| Ok(target.stored_bytes(control)?))?;
                    demo::remove(&target, true)?;
                }
                for survey in index.into_iter().chain(&survey) {
                    phase.wall += survey.wall;
                    phase.cpu += survey.cpu;
                    phase.system += survey.system;
                }
                Ok(Done {
                    bytes: phase.bytes,
                    phase,
                    rows: Some(report.rows),
                    stored,
                    checksum: self.sums.then(|| report.content.content_sum.to_string()),
                })
            }
            Err(error) => {
                // Nothing was created if the table existed before or the server was never reached.
                let made = if self.append() { Some(true) } else { error.made_table };
                if let Some(made) = made
                    && !given
                    && let Err(left) = demo::remove(&target, made)
                {
                    self.console.step(&format!("warning: {left}"));
                }
                Err(error)
            }
        }
    }

    /// Creates the table without rows.
    fn make_empty(&self, target: &Postgres) -> Result<()> {
        let kind = self.kind.clone().unwrap_or_default();
        Ok(interrupt::during(|control| target.create_empty(self.source, &kind, control))?)
    }

    /// The target of a run, and the phase that found its partitions, which is part of the run.
    fn prepared(
        &self,
        mut target: Postgres,
        source: &dyn Source,
        given: bool,
        profile: &Profile,
    ) -> Result<(Postgres, Option<PhaseReport>)> {
        if let Some(by) = &self.args.partition_by {
            let strategy: Strategy = self.args.strategy.map(Into::into).unwrap_or_default();
            target = target.kind(self.kind.clone().unwrap_or_default()).strategy(strategy);
            let surveying = profile.phase("partitions");
            target = partitioned(target, by, source, self.quiet())?;
            return Ok((target, Some(surveying.finish())));
        }
        if self.kind.is_some() {
            if !given {
                self.make_empty(&target)?;
            }
            let mode = if self.args.mode == ModeArg::Create { Mode::Append } else { self.args.mode.into() };
            target = target.mode(mode);
        }
        Ok((target, None))
    }
}

/// A table on the server for each run of another program.
struct TablesOfOthers<'a> {
    url: &'a str,
    server: Option<&'a Server>,
    next: &'a dyn Fn() -> Result<Postgres>,
    runs: &'a Runs<'a>,
    made: Option<Postgres>,
    /// Sides whose content has been compared.
    compared: Vec<String>,
    folder: Option<&'a Path>,
}

impl Surroundings for TablesOfOthers<'_> {
    fn before(&mut self) -> Result<Vec<(&'static str, String)>> {
        let target = (self.next)()?;
        self.runs.make_empty(&target)?;
        let mut environment = vec![(URL, self.url.to_owned()), (TABLE, target.table().to_string())];
        self.made = Some(target);
        if let Some(server) = self.server {
            environment.push(("SAWMILL_BENCH_HOST", server.local.socket_dir().display().to_string()));
            environment.push(("SAWMILL_BENCH_PORT", server.local.port().to_string()));
        }
        Ok(environment)
    }

    fn after(&mut self, side: &str, run: &mut Run, work: &ReportedWork) -> Result<()> {
        let Some(target) = self.made.take() else { return Ok(()) };
        let inspected = self.inspect(&target, side, run, work);
        demo::remove(&target, true)?;
        inspected
    }

    fn before_ours(&mut self) -> Result<Vec<(&'static str, String)>> {
        let target = (self.next)()?;
        if self.runs.append() {
            self.runs.make_empty(&target)?;
        }
        let environment = vec![(URL, self.url.to_owned()), (TABLE, target.table().to_string())];
        self.made = Some(target);
        Ok(environment)
    }

    fn after_ours(&mut self, run: &mut Run) -> Result<()> {
        let Some(target) = self.made.take() else { return Ok(()) };
        let stored = interrupt::despite(|control| Ok(target.stored_bytes(control)?));
        demo::remove(&target, true)?;
        run.stored = stored?;
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(target) = self.made.take() {
            // The program's error is the one to report.
            let _ = demo::remove(&target, true);
        }
    }

    fn watched(&self) -> Vec<(&'static str, Target)> {
        let listener = || self.url.parse::<sawmill_pgwire::Server>().ok()?.local_listener();
        let server = self.server.map(|server| Target::Pid(server.local.pid())).or_else(listener);
        server.map(|server| ("PostgreSQL", server)).into_iter().collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        folders_of(self.folder, self.server)
    }
}

impl TablesOfOthers<'_> {
    /// Completes a run's figures from the table that the other program filled.
    fn inspect(&mut self, target: &Postgres, side: &str, run: &mut Run, work: &ReportedWork) -> Result<()> {
        let rows = interrupt::despite(|control| Ok(target.count_rows(control)?))?;
        if rows.unwrap_or(0) == 0 && work.rows.is_some() {
            // It loaded elsewhere, and reports its rows.
            return Ok(());
        }
        run.rows = Some(rows.unwrap_or(0));
        run.stored = interrupt::despite(|control| Ok(target.stored_bytes(control)?))?;
        let planned = self.runs.source.rows();
        if self.runs.sums && run.rows == Some(planned) && self.compared.iter().all(|have| have != side) {
            let verification = interrupt::despite(|control| {
                Ok(verify(self.runs.source, target, &self.runs.options, control)?)
            })?;
            run.checksum = Some(verification.target.content_sum.to_string());
            self.compared.push(side.to_owned());
        }
        Ok(())
    }
}

/// The folders of the files and of the server's data.
fn folders_of(files: Option<&Path>, server: Option<&Server>) -> Vec<PathBuf> {
    let here = |folder: &Path| if folder.as_os_str().is_empty() { ".".into() } else { folder.to_owned() };
    let data = server.map(|server| server.local.data_dir().to_owned());
    files.map(here).into_iter().chain(data).collect()
}

/// The name of the nth table, unique on this machine.
fn numbered(table: &TableName, number: u32) -> String {
    let name = format!("{}_{}_{number}", table.name(), std::process::id());
    let parts: Vec<String> = table.schema().into_iter().chain([name.as_str()]).map(quote).collect();
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
