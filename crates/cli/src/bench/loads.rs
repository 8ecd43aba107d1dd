//! `sawmill bench load`: whole loads, each into a table of its own that is dropped after it.

mod alone;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use sawmill_loader::{LoadOptions, Mode, TableName};
use sawmill_localpg::LocalPg;
use sawmill_postgres::{Nested, Postgres, Strategy, TableKind, verify};
use sawmill_profile::{Profile, Run, Target};
use sawmill_source::{Control, Source};

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::inputs::{self, ColumnArgs};
use crate::arguments::nested_args::NestedArgs;
use crate::arguments::table_args::{StrategyArg, partitioned};
use crate::arguments::target::{self, EffortArgs, ModeArg};
use crate::bench::against::Told;
use crate::bench::case::{Done, Measured, Measurement, Surroundings};
use crate::bench::own_process;
use crate::bench::plan::PlanArgs;
use crate::demo;
use crate::error::Error;
use crate::load::load_files;
use crate::screen::console::Console;

/// Measure loading Parquet files into a table.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill bench load /data/trips --degree 1,2,4
  sawmill bench load /data/trips --to postgres://me@localhost/db --table scratch.trips --runs 10
  sawmill bench load trips.parquet --batch-rows 1024..16384*2 --degree 1,2
  sawmill bench load trips.parquet --table logged,unlogged --pk yes,no --key id --degree 1,2,4,8
  sawmill bench load trips.parquet --strategy direct,staged --degree 2
  sawmill bench load 'gen:contacts?rows=1M' --degree 1,2
  sawmill bench load trips.parquet --mode replace
  sawmill bench load trips.parquet --to crate://localhost:4200 --row-key --degree 1,2,4
  sawmill bench load contacts.parquet --nested tables
  sawmill bench load trips.parquet --strategy direct,staged --partition-by \"month(pickup)\"
  sawmill bench load trips.parquet --against 'sh -c \"my-loader trips.parquet $SAWMILL_BENCH_URL $SAWMILL_BENCH_TABLE\"'

Each run makes a table, NAME with numbers behind it, and drops it. With --table logged or unlogged, or
with --pk, the table is made empty before the time starts and rows are appended. Without --to a private
PostgreSQL is started for all runs, with fsync off. Into CrateDB, and with --nested tables, each run makes
new tables, and no other program runs beside it.

Another program finds the server's address in SAWMILL_BENCH_URL (and SAWMILL_BENCH_HOST, _PORT, _USER,
_DATABASE of a private server) and in SAWMILL_BENCH_TABLE the name of an empty table to append to, which is
dropped afterwards. Its rows are counted, and of each program's first run the content is compared with the
files; what differs is an error. One that loads elsewhere tells its rows in the last line of its output:
{\"rows\": 1000000}.")]
pub(crate) struct LoadBench {
    /// Parquet files, directories that are searched for them, or gen:DATASET?rows=10M for rows of the generator,
    /// which are made while they are loaded.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Load into this server instead of starting one.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The kind of the table, logged or unlogged; or what the tables' names begin with: NAME or
    /// SCHEMA.NAME.
    #[arg(long, default_value = DEFAULT_NAME)]
    table: String,
    /// Whether the table has a primary key.
    #[arg(long, value_enum)]
    pk: Option<PrimaryKey>,
    /// The way to the table. In the staged strategy each run makes a new table out of tables of its connections.
    #[arg(long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Partition the table, as sawmill load does. Each run makes a new table, and what is read to find its partitions
    /// is a part of its time.
    #[arg(long, value_name = "BY")]
    partition_by: Option<String>,
    /// What happens to the table. Where it has to be there it is made, empty, before the time starts.
    #[arg(long, value_enum, default_value = "create")]
    mode: ModeArg,
    /// The columns of the primary key; the first column of the files by default.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    key: Vec<String>,
    #[command(flatten)]
    nested: NestedArgs,
    #[command(flatten)]
    crate_options: CrateArgs,
    #[command(flatten)]
    effort: EffortArgs,
    /// Compare what is in the table with what is in the files, as part of each run.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// The variables that name the server and the table of a run.
const URL: &str = "SAWMILL_BENCH_URL";
const TABLE: &str = "SAWMILL_BENCH_TABLE";

/// What the tables' names begin with.
const DEFAULT_NAME: &str = "sawmill_bench";

/// Whether the table has a primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrimaryKey {
    /// Rows are entered into its index while they are loaded.
    Yes,
    /// None.
    No,
}

impl LoadBench {
    /// What the tables' names begin with.
    fn name(&self) -> Result<TableName, Error> {
        let is_kind = ["logged", "unlogged"].contains(&self.table.as_str());
        Ok(if is_kind { DEFAULT_NAME } else { &self.table }.parse()?)
    }

    /// The kind of the tables, where one is asked for.
    fn kind(&self, source: &dyn Source) -> Result<Option<TableKind>, Error> {
        if self.mode == ModeArg::Upsert {
            let advice = "give create, append, truncate or replace";
            return Err(Error::usage(
                "a benchmark whose table has no rows to update",
                "--mode upsert",
                advice,
            ));
        }
        let new = self.strategy == Some(StrategyArg::Staged) || self.partition_by.is_some();
        if self.mode != ModeArg::Create && new {
            let advice = "leave it out: each run makes a new table";
            return Err(Error::usage(
                "a mode other than create of a table that each run makes",
                "--mode",
                advice,
            ));
        }
        let kinds = ["logged", "unlogged"];
        if self.pk != Some(PrimaryKey::Yes) && !self.key.is_empty() && self.pk.is_none() {
            return Err(Error::usage("a key of a table without one", "--key", "give --pk yes"));
        }
        if self.pk.is_none() && !kinds.contains(&self.table.as_str()) && self.mode == ModeArg::Create {
            return Ok(None);
        }
        let first = || source.schema().fields().first().map(|field| field.name().clone());
        let primary_key = match self.pk {
            Some(PrimaryKey::Yes) if self.key.is_empty() => first().into_iter().collect(),
            Some(PrimaryKey::Yes) => self.key.clone(),
            _ => Vec::new(),
        };
        Ok(Some(TableKind { unlogged: self.table == "unlogged", primary_key, ..TableKind::default() }))
    }

    fn options(&self) -> Result<LoadOptions, Error> {
        Ok(LoadOptions { verify: self.verify, ..self.effort.options()? })
    }
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
        args.name()?;
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
) -> Result<Measured, Error> {
    let inputs = inputs::open(&args.files, &ColumnArgs::default(), measurement.cancel)?;
    let source = inputs.source();
    let folder = inputs.files().and_then(|_| args.files.first()).map(|path| match path.is_dir() {
        true => path.clone(),
        false => path.parent().map(Path::to_owned).unwrap_or_default(),
    });
    if alone::is_meant(args) {
        let url = args.to.clone().or_else(|| server.map(|server| server.local.url()));
        let url = url.ok_or_else(|| Error::usage("no server", "--to", "give its address"))?;
        let local = server.map(|server| Target::Pid(server.local.pid()));
        let folders = folders_of(folder.as_deref(), server);
        return alone::measure(args, source, (&url, local), folders, measurement);
    }
    if let Some(option) = args.crate_options.first_given() {
        let what = format!("{option} is for CrateDB");
        return Err(Error::usage(what, "--to", "give crate://host:4200, or leave the option out"));
    }
    let options = args.options()?;
    let kind = args.kind(source)?;
    let layout = args.nested.layout()?;
    // Sums of composite values have the numbers of their types in them, and each run's table has types of its own.
    let sums = layout != Nested::Native;
    // Where a kind of table is asked for its rows are appended.
    let mode = if args.mode == ModeArg::Create { Mode::Append } else { args.mode.into() };
    // A table that each run makes itself.
    let new = args.strategy == Some(StrategyArg::Staged) || args.partition_by.is_some();
    let strategy: Strategy = args.strategy.map(Into::into).unwrap_or_default();
    let url = match (own_process::place(URL), &args.to, server) {
        (Some(url), _, _) => url,
        (None, Some(url), _) => url.clone(),
        (None, None, Some(server)) => server.local.url(),
        (None, None, None) => return Err(Error::usage("no server", "--to", "give its address")),
    };
    let number = Cell::new(0);
    let table = args.name()?;
    let next = || {
        number.set(number.get() + 1);
        let named = target::postgres(&url, &numbered(&table, number.get()))?;
        Ok::<_, Error>(named.nested(layout))
    };
    let room = Room {
        url: &url,
        server,
        next: &next,
        source,
        options: &options,
        kind: kind.clone().unwrap_or_default(),
        appends: kind.is_some() && !new,
        cancel: measurement.cancel,
        made: None,
        compared: Vec::new(),
        folder: folder.as_deref(),
        sums,
    };
    let mut measured = measurement.case(room, |profile| {
        // In a process of its own the one that measures it names the table, makes it and removes it.
        let given = own_process::place(TABLE);
        let named = |table| Ok(target::postgres(&url, table)?.nested(layout));
        let mut target = given.as_deref().map_or_else(&next, named)?;
        let quiet = Console { verbose: 0, ..measurement.console };
        let mut survey = None;
        if new {
            target = target.kind(kind.clone().unwrap_or_default()).strategy(strategy);
            if let Some(by) = &args.partition_by {
                let surveying = profile.phase("partitions");
                target = partitioned(target, by, source, quiet, measurement.cancel)?;
                survey = Some(surveying.finish());
            }
        } else if let Some(kind) = &kind {
            if given.is_none() {
                make_empty(&target, source, kind, measurement.cancel)?;
            }
            target = target.mode(mode);
        }
        let loaded = load_files(source, &target, &options, profile, quiet, measurement.cancel);
        match loaded {
            Ok((report, mut phase)) => {
                let mut stored = None;
                if given.is_none() {
                    stored = quietly(|control| Ok(target.stored_bytes(control)?))?;
                    demo::remove(&target, true)?;
                }
                if let Some(survey) = &survey {
                    phase.wall += survey.wall;
                    phase.cpu += survey.cpu;
                    phase.system += survey.system;
                }
                Ok(Done {
                    bytes: phase.bytes,
                    phase,
                    rows: Some(report.rows),
                    stored,
                    checksum: sums.then(|| report.content.content_sum.to_string()),
                })
            }
            Err(error) => {
                // Nothing was made where the table was there before or the server was never reached.
                let made = if kind.is_some() && !new { Some(true) } else { error.made_table() };
                if let Some(made) = made
                    && given.is_none()
                    && let Err(left) = demo::remove(&target, made)
                {
                    measurement.console.step(&format!("warning: {left}"));
                }
                Err(error)
            }
        }
    })?;
    if server.is_none() && measurement.once.is_none() {
        let version = quietly(|control| Ok(next()?.server_version(control)?))?;
        measured.versions.insert("PostgreSQL".to_owned(), version);
    }
    Ok(measured)
}

/// Does `work` apart from what is measured.
fn quietly<T>(work: impl FnOnce(&Control<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let (profile, proceed) = (Profile::new(), AtomicBool::new(false));
    let phase = profile.phase("around");
    work(&Control::new(&proceed, &phase))
}

fn make_empty(
    target: &Postgres,
    source: &dyn Source,
    kind: &TableKind,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let profile = Profile::new();
    let phase = profile.phase("create");
    Ok(target.create_empty(source, kind, &Control::new(cancel, &phase))?)
}

/// The server, and a table on it for each run of another program.
struct Room<'a> {
    url: &'a str,
    server: Option<&'a Server>,
    next: &'a dyn Fn() -> Result<Postgres, Error>,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    kind: TableKind,
    /// Whether ours appends to a table that was made empty before.
    appends: bool,
    cancel: &'a AtomicBool,
    made: Option<Postgres>,
    /// Sides whose content was compared.
    compared: Vec<String>,
    folder: Option<&'a Path>,
    /// Whether the content of two tables can be compared by its sums.
    sums: bool,
}

impl Surroundings for Room<'_> {
    fn before(&mut self) -> Result<Vec<(&'static str, String)>, Error> {
        let target = (self.next)()?;
        make_empty(&target, self.source, &self.kind, self.cancel)?;
        let mut environment = vec![(URL, self.url.to_owned()), (TABLE, target.table().to_string())];
        self.made = Some(target);
        if let Some(server) = self.server {
            environment.push(("SAWMILL_BENCH_HOST", server.local.socket_dir().display().to_string()));
            environment.push(("SAWMILL_BENCH_PORT", server.local.port().to_string()));
        }
        Ok(environment)
    }

    fn after(&mut self, side: &str, run: &mut Run, told: &Told) -> Result<(), Error> {
        let Some(target) = self.made.take() else { return Ok(()) };
        let looked = self.look(&target, side, run, told);
        demo::remove(&target, true)?;
        looked
    }

    fn before_ours(&mut self) -> Result<Vec<(&'static str, String)>, Error> {
        let target = (self.next)()?;
        if self.appends {
            make_empty(&target, self.source, &self.kind, self.cancel)?;
        }
        let environment = vec![(URL, self.url.to_owned()), (TABLE, target.table().to_string())];
        self.made = Some(target);
        Ok(environment)
    }

    fn after_ours(&mut self, run: &mut Run) -> Result<(), Error> {
        let Some(target) = self.made.take() else { return Ok(()) };
        let stored = quietly(|control| Ok(target.stored_bytes(control)?));
        demo::remove(&target, true)?;
        run.stored = stored?;
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(target) = self.made.take() {
            // The failure of the program is what is told.
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

impl Room<'_> {
    /// What the other program left in its table.
    fn look(&mut self, target: &Postgres, side: &str, run: &mut Run, told: &Told) -> Result<(), Error> {
        let rows = quietly(|control| Ok(target.count_rows(control)?))?;
        if rows.unwrap_or(0) == 0 && told.rows.is_some() {
            // It loaded elsewhere, and says how much.
            return Ok(());
        }
        run.rows = Some(rows.unwrap_or(0));
        run.stored = quietly(|control| Ok(target.stored_bytes(control)?))?;
        let planned = self.source.rows();
        if self.sums && run.rows == Some(planned) && self.compared.iter().all(|have| have != side) {
            let verification = quietly(|control| Ok(verify(self.source, target, self.options, control)?))?;
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
