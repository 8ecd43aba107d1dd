//! `sawmill load`: Parquet files into a table.

pub(crate) mod reading;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use clap::{Args, Subcommand, ValueEnum};
use sawmill_cratedb::{CrateExplanation, CrateServer, crate_status};
use sawmill_loader::{LoadOptions, LoadReport, Standing, TableName, Target, load};
use sawmill_pgwire::Server;
use sawmill_postgres::{PostgresTables, status};
use sawmill_profile::{
    Bottleneck, Maxima, PhaseReport, Profile, Sampler, SamplerOptions, Timeline, format_byte_rate,
    format_bytes, format_rate,
};
use sawmill_source::{Control, Source};
use serde::Serialize;

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::inputs::{self, ColumnArgs};
use crate::arguments::nested_args::NestedArgs;
use crate::arguments::record_args::RecordArgs;
use crate::arguments::row_args::RowArgs;
use crate::arguments::table_args::{PartitionsPlan, TableArgs};
use crate::arguments::target::{Destination, EffortArgs, ModeArg, TargetArgs};
use crate::arguments::value_args::{RejectArgs, ValueArgs};
use crate::error::Error;
use crate::load_tables;
use crate::screen::console::Console;
use crate::screen::limit;
use crate::screen::phases;
use reading::Reading;

/// Load Parquet files into a table of PostgreSQL or CrateDB, every row exactly once.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill load trips.parquet --to postgres://me@localhost/db --table trips
  sawmill load /data/trips --to postgres://me@localhost/db --table public.trips --verify
  find /data -name '*.parquet' -newer done | sawmill load @- --to postgres://localhost/db --table trips
  sawmill load new.parquet --to 'host=/var/run/postgresql dbname=db' --table trips --mode append
  sawmill load trips.parquet --to postgres://localhost/db --table trips --ddl
  sawmill load 'gen:contacts?rows=10M' --to postgres://localhost/db --table contacts
  sawmill load /data/trips --to postgres://localhost/db --table trips --where \"pickup >= 2024-01-01 and vendor in (1, 2) and tip is not null\"
  sawmill load changed.parquet --to postgres://localhost/db --table trips --mode upsert --key id
  sawmill load contacts.parquet --to postgres://localhost/db --table contacts --nested native
  sawmill load orders.parquet --to postgres://localhost/db --table orders --enums enum
  sawmill load contacts.parquet --to postgres://localhost/db --table contacts --nested tables --foreign-keys
  sawmill load trips.parquet --to postgres://localhost/db --table trips --primary-key id --key-after --set maintenance_work_mem=1GB --dry-run
  sawmill load /data/trips --to postgres://localhost/db --table trips --partition-by \"month(pickup)\" --explain
  sawmill load new.parquet --to postgres://localhost/db --table trips --mode append --rejects refused.parquet --max-rejects 1000
  sawmill load status --to postgres://me@localhost/db
  sawmill load forget --to postgres://me@localhost/db --table trips
  sawmill load trips.parquet --to crate://localhost:4200 --table trips --row-key
  sawmill load /data/trips --to crates://me:secret@a:4200,b:4200/logs --table trips --primary-key id --partition-by \"date_trunc('month', at)\" --rejects refused.ndjson
  sawmill load new.parquet --to crate://localhost --table trips --mode replace --row-key --explain

After any failure (Ctrl-C, a killed process, a lost connection) the same command again loads exactly
what is missing. In mode create the table appears under its name when it is complete."
)]
pub(crate) struct LoadArgs {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// Parquet files, directories that are searched for them but for names that start with _ or ., patterns,
    /// @LIST for the names in a file (@- on standard input), - for standard input, or
    /// gen:DATASET?rows=10M&seed=7 for rows of the generator.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// What happens to the table.
    #[arg(long, value_enum, default_value = "create")]
    mode: ModeArg,
    /// The columns by which mode upsert finds the rows that are there.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required_if_eq("mode", "upsert"))]
    key: Vec<String>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// How columns of an existing table are matched.
    #[arg(long, value_enum, default_value = "name")]
    map: MapArg,
    #[command(flatten)]
    nested: NestedArgs,
    #[command(flatten)]
    effort: EffortArgs,
    /// Compare what is in the table with what is in the files before the load counts as complete.
    #[arg(long)]
    verify: bool,
    /// Where they differ, say which rows of which row groups are missing. PostgreSQL alone.
    #[arg(long, requires = "verify")]
    locate: bool,
    /// Load files once more that are recorded as loaded, in any mode but create. Without it an append leaves out each file
    /// that is in the table already.
    #[arg(long)]
    again: bool,
    /// Print the CREATE TABLE statement and stop.
    #[arg(long)]
    ddl: bool,
    /// Print what would be done, and stop. Only for an append to CrateDB is the server asked, for its table.
    #[arg(long)]
    explain: bool,
    /// Ask the server for everything that comes before the first row, take it back, and print what would be
    /// done. PostgreSQL.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    rejects: RejectArgs,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    crate_options: CrateArgs,
}

/// How columns of an existing table are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MapArg {
    /// By their names.
    Name,
    /// The first with the first, and so on.
    Position,
}

#[derive(Subcommand, Debug)]
enum LoadCommand {
    /// Remove the records of loads into a table, and what unfinished loads left behind.
    #[command(after_help = "\
Examples:
  sawmill load forget --to postgres://me@localhost/db --table trips

The table itself stays.")]
    Forget(ForgetArgs),
    /// Show which loads a server has records of, and how far they are.
    #[command(after_help = "\
Examples:
  sawmill load status --to postgres://me@localhost/db
  sawmill load status --to postgres://me@localhost/db --table trips --json
  sawmill load status --to service=warehouse --checkpoint-schema etl
  sawmill load status --to crate://localhost:4200")]
    Status(StatusArgs),
}

#[derive(Args, Debug)]
struct ForgetArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    records: RecordArgs,
}

#[derive(Args, Debug)]
struct StatusArgs {
    /// The server, as for a load.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only loads into this table.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    records: RecordArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct LoadResult<'a> {
    table: &'a str,
    report: &'a LoadReport,
    /// What set the speed, where that could be seen.
    bottleneck: Option<Bottleneck>,
    phase: &'a PhaseReport,
    /// The largest of what `over_time` has.
    maxima: Maxima,
    /// Memory, processor time, rows and bytes sent, over time.
    over_time: &'a Timeline,
    #[serde(flatten)]
    reading: &'a Reading,
}

/// Samples of a load that are kept at most.
const MOST_SAMPLES: usize = 300;

/// Samples a load from here on.
pub(crate) fn sampled(profile: &Profile) -> Result<Sampler, Error> {
    Ok(Sampler::start(SamplerOptions::new().most_samples(MOST_SAMPLES).profile(profile))?)
}

/// What a load used at most, in one line.
pub(crate) fn at_most(maxima: &Maxima) -> String {
    let memory =
        maxima.memory.map(|bytes| format!("{} of memory, ", format_bytes(bytes))).unwrap_or_default();
    format!(
        "at most {memory}{:.1} processors, {}, {} sent\n",
        maxima.processors,
        format_rate(maxima.rows_per_second, "rows"),
        format_byte_rate(maxima.sent_per_second)
    )
}

pub(crate) fn run(args: &LoadArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    match &args.command {
        Some(LoadCommand::Forget(target)) => return run_forget(target, console, cancel),
        Some(LoadCommand::Status(status)) => return run_status(status, console, cancel),
        None => {}
    }
    let target = args.target.destination(&args.crate_options, &args.effort)?.mode(args.mode.into());
    let target = args.records.of(target);
    if args.mode != ModeArg::Upsert && !args.key.is_empty() {
        return Err(Error::usage("a key without mode upsert", "--key", "add --mode upsert"));
    }
    if args.again && args.mode == ModeArg::Create {
        let advice = "a new table is made once: add --mode append, upsert, truncate or replace";
        return Err(Error::usage("--again in mode create", "--again", advice));
    }
    let target = args.rejects.of(args.values.of(target)?);
    target.refuse_locate(args.locate)?;
    let target = target.by_position(args.map == MapArg::Position).key(&args.key);
    let target = args.table.apply(args.nested.apply(target)?)?;
    let options = LoadOptions {
        verify: args.verify,
        locate: args.locate,
        again: args.again,
        ..args.effort.options_for(&target)?
    };
    let inputs = inputs::open(&args.files, &args.columns, cancel)?;
    let filtered = args.rows.filtered(&inputs, console, cancel)?;
    let reading = Reading::of(&inputs, filtered.as_ref());
    let source = filtered.as_ref().map_or(inputs.source(), |filtered| filtered);
    let limited = args.rows.limited(source);
    let source = limited.as_ref().map_or(source, |limited| limited);
    let target = args.table.partitioned(target, source, console, cancel)?;
    let tables = args.nested.tables(&target, source)?;
    if args.ddl {
        let phase = Profile::new().phase("ddl");
        let control = Control::new(cancel, &phase);
        let ddl = match &tables {
            Some(tables) => tables.ddl(&control)?,
            None => target.ddl(source, &control)?,
        };
        return console.result(&ddl, || ddl.clone() + ";\n");
    }
    if args.explain {
        return explain(&target, source, tables.as_ref(), &reading, &options, console, cancel);
    }
    if args.dry_run {
        return match &tables {
            Some(tables) => load_tables::dry_run(tables, &options, console, cancel),
            None => dry_run(&target, source, &options, console, cancel),
        };
    }
    if let Some(folders) = reading.folders() {
        console.notice(&folders);
    }
    console.detail(|| {
        format!(
            "{} connections, units of {} rows, at most {} of encoded rows in memory",
            options.degree,
            options.unit_rows,
            phases::bytes(options.block_memory())
        )
    });
    if let Some(tables) = &tables {
        return load_tables::run(tables, &reading, &options, console, cancel);
    }
    let profile = Profile::new();
    let sampler = sampled(&profile)?;
    let (report, phase) = load_files(source, target.as_target(), &options, &profile, console, cancel)?;
    let over_time = &sampler.stop();
    let maxima = over_time.maxima();
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    let table = args.target.table();
    let (reading, phase) = (&reading, &phase);
    let result = LoadResult { table, report: &report, bottleneck, phase, maxima, over_time, reading };
    console.result(&result, || summary(table, &report, phase, &maxima))
}

/// Loads under a progress bar.
pub(crate) fn load_files(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    profile: &Profile,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(LoadReport, PhaseReport), Error> {
    let rows = source.rows();
    let phase = profile.phase("load");
    let say = |line: &str| console.notice(line);
    let control = Control::new(cancel, &phase).saying(&say);
    let report = console
        .with_bar("load", rows, &AtomicU64::new(0), &phase, || load(source, target, options, &control))?;
    Ok((report, phase.finish()))
}

/// What a load would do.
fn explain(
    target: &Destination,
    source: &dyn Source,
    tables: Option<&PostgresTables<'_>>,
    reading: &Reading,
    options: &LoadOptions,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    match target {
        Destination::CrateDb(crate_db) => {
            let phase = Profile::new().phase("explain");
            let plan = crate_db.explain(source, options, &Control::new(cancel, &phase))?;
            #[derive(Serialize)]
            struct Plan<'a> {
                #[serde(flatten)]
                plan: &'a CrateExplanation,
                #[serde(flatten)]
                reading: &'a Reading,
            }
            console.result(&Plan { plan: &plan, reading }, || reading.lines() + &explained(&plan))
        }
        Destination::Postgres(postgres) => {
            #[derive(Serialize)]
            struct Plan<'a> {
                files: usize,
                rows: u64,
                units: usize,
                degree: usize,
                way: String,
                memory_bytes: u64,
                ddl: String,
                #[serde(flatten)]
                reading: &'a Reading,
                partitions: Option<PartitionsPlan>,
            }
            let phase = Profile::new().phase("explain");
            let control = Control::new(cancel, &phase);
            let plan = Plan {
                files: source.files().len(),
                rows: source.rows(),
                units: source.plan(options.unit_rows).iter().map(Vec::len).sum(),
                degree: options.degree,
                way: postgres.way(options.degree)?,
                memory_bytes: options.block_memory(),
                ddl: tables.map_or_else(|| postgres.ddl(source, &control), |tables| tables.ddl(&control))?,
                reading,
                partitions: PartitionsPlan::of(postgres),
            };
            let partitions = plan.partitions.as_ref().map(PartitionsPlan::lines).unwrap_or_default();
            console.result(&plan, || {
                format!(
                    "{}{} files, {} rows in {} units over {} connections, binary COPY\n{}\nexactly once: a unit's record \
                     commits with its rows\nat most {} of encoded rows in memory\n{partitions}\n{};\n",
                    plan.reading.lines(),
                    plan.files,
                    phases::thousands(plan.rows),
                    plan.units,
                    plan.degree,
                    plan.way,
                    phases::bytes(plan.memory_bytes),
                    plan.ddl
                )
            })
        }
    }
}

/// What a load would do, in the server's eyes.
fn dry_run(
    target: &Destination,
    source: &dyn Source,
    options: &LoadOptions,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let Destination::Postgres(postgres) = target else {
        return Err(Error::usage("--dry-run is for PostgreSQL", "--to", "use --explain"));
    };
    let phase = Profile::new().phase("dry run");
    let plan = postgres.rehearse(source, options, &Control::new(cancel, &phase))?;
    console.result(&plan, || {
        let standing = match plan.standing {
            Standing::New => "a new load".to_owned(),
            Standing::Resumed => format!("would go on from {} of {} units", plan.units_done, plan.units),
            Standing::Complete => "this load is complete already: there is nothing to do".to_owned(),
        };
        let way = std::slice::from_ref(&plan.way);
        let notes = plan.notes.iter().filter(|note| !way.contains(note));
        let notes: String = notes.map(|note| format!("{note}\n")).collect();
        let partitions = PartitionsPlan::of(postgres).map(|plan| plan.lines()).unwrap_or_default();
        format!(
            "{}: {standing}\n{} rows in {} units over {} connections\n{}\n{partitions}{}\n{notes}nothing was changed\n",
            plan.table,
            phases::thousands(plan.rows),
            plan.units - plan.units_done,
            options.degree,
            plan.way,
            plan.copy
        )
    })
}

fn explained(plan: &CrateExplanation) -> String {
    let mut rows = vec![["column", "source", "CrateDB", "over the PostgreSQL wire"].map(str::to_owned)];
    for column in &plan.columns {
        rows.push([&column.name, &column.arrow, &column.crate_type, &column.sent_as].map(Clone::clone));
    }
    let ddl = plan.ddl.as_ref().map(|ddl| format!("\n{ddl};\n")).unwrap_or_default();
    format!(
        "table {}, mode {:?}\n{} files, {} rows in {} units over {} connections\ntransport {}\ndelivery {}\n\
         requests of at most {} rows and {}; at most {} of encoded rows in memory\n\n{}{ddl}",
        plan.table,
        plan.mode,
        plan.files,
        phases::thousands(plan.rows),
        plan.units,
        plan.degree,
        plan.transport,
        plan.delivery,
        phases::thousands(plan.batch_rows as u64),
        phases::bytes(plan.batch_bytes as u64),
        phases::bytes(plan.memory_bytes),
        phases::table(&rows),
    )
}

fn summary(table: &str, report: &LoadReport, phase: &PhaseReport, maxima: &Maxima) -> String {
    let mut out = match report.standing {
        Standing::Complete => {
            let rows = phases::thousands(report.rows);
            let counted = report.rows_in_table.filter(|counted| *counted != report.rows);
            let counted = counted.map(|counted| format!(" of {} in the table", phases::thousands(counted)));
            format!(
                "{table}: this load was complete already, {rows} rows{}; nothing to do\n",
                counted.unwrap_or_default()
            )
        }
        Standing::Resumed => format!(
            "{table}: went on from {} of {} units; now {} rows\n",
            report.units_resumed,
            report.units,
            phases::thousands(report.rows_in_table.unwrap_or(report.rows))
        ),
        Standing::New => format!("{table}: {} rows\n", phases::thousands(report.rows)),
    };
    if report.files_already > 0 && report.files_loaded > 0 {
        out += &format!(
            "{}, {} already loaded\n",
            counted(report.files_loaded, "new file"),
            phases::thousands(report.files_already)
        );
    }
    // The phase also counts rejected rows and rows that were already in the table.
    let all_loaded = report.rows_rejected == 0 && report.rows_there_before == 0;
    let done = if all_loaded { "loaded" } else { "went through" };
    out += &format!("{done} {}\n", phases::summary(phase));
    if report.rows_loaded > 0 {
        let rate = report.bytes_read as f64 / phase.wall.as_secs_f64().max(1e-9);
        out +=
            &format!("read {} of the files ({})\n", phases::bytes(report.bytes_read), format_byte_rate(rate));
    }
    if report.rows_loaded > 0 {
        out += &at_most(maxima);
    }
    if let Some(waits) = limit::seen(report.server_waits.as_ref()) {
        out += &format!("{waits}\n");
    }
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    if let Some(bottleneck) = bottleneck.filter(|_| report.rows_loaded > 0) {
        out += &format!("{bottleneck}\n");
    }
    if report.retries > 0 {
        out += &format!("{} lost connections tried again\n", report.retries);
    }
    for note in &report.notes {
        out += &format!("{note}\n");
    }
    out += &format!("content sum {}", report.content.content_sum);
    if report.verified.is_some() {
        out += ", verified: the table holds what the files hold";
    }
    out + "\n"
}

/// A number of things, with their name.
fn counted(number: u64, name: &str) -> String {
    format!("{} {name}{}", phases::thousands(number), if number == 1 { "" } else { "s" })
}

fn run_status(args: &StatusArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let table = args.table.as_deref().map(str::parse::<TableName>).transpose()?;
    let phase = Profile::new().phase("status");
    let control = Control::new(cancel, &phase);
    let table = table.as_ref();
    let loads = match CrateServer::understands(&args.to) {
        true => crate_status(&args.to.parse()?, args.records.crate_schema(), table, &control)?,
        false => status(&args.to.parse::<Server>()?, args.records.schema(), table, &control)?,
    };
    console.result(&loads, || {
        if loads.is_empty() {
            return "no loads are recorded\n".to_owned();
        }
        let mut rows = vec![["table", "mode", "files", "units", "rows", "begun", "state"].map(str::to_owned)];
        for load in &loads {
            let state = match (&load.completed, load.running) {
                (None, _) if load.load_id.is_empty() => "left behind; load forget removes it".to_owned(),
                (Some(completed), _) => format!("complete {completed}").trim_end().to_owned(),
                (None, true) => "under way".to_owned(),
                (None, false) => "broken off".to_owned(),
            };
            let (files, units) = (load.files.len().to_string(), phases::thousands(load.units));
            let (rows_in, begun) = (phases::thousands(load.rows), load.begun.clone());
            rows.push([load.table.clone(), load.mode.clone(), files, units, rows_in, begun, state]);
        }
        let files = loads.iter().map(|load| {
            let mut rows = vec![[format!("{} {}", load.table, load.begun), "rows".to_owned()]];
            rows.extend(load.files.iter().map(|file| [file.name.clone(), phases::thousands(file.rows)]));
            phases::table(&rows)
        });
        let files = files.collect::<Vec<_>>().join("\n");
        format!("{}\n{files}", phases::table(&rows))
    })
}

fn run_forget(args: &ForgetArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let profile = Profile::new();
    let phase = profile.phase("forget");
    let target = args.target.destination(&CrateArgs::default(), &EffortArgs::default())?;
    let target = args.records.of(target);
    let forgotten = target.forget(&Control::new(cancel, &phase))?;
    console.result(&forgotten, || {
        let staging = if forgotten.staging_dropped { "; dropped an unfinished table" } else { "" };
        let loads = if forgotten.loads == 1 { "load" } else { "loads" };
        format!("{}: forgot {} {loads}{staging}\n", args.target.table(), forgotten.loads)
    })
}
