//! `sawmill load`: loads Parquet files into a table.

mod finish;
mod loaded;
mod planned;
pub(crate) mod query;
pub(crate) mod reading;
mod records;
pub(crate) mod report;
pub(crate) mod tables;

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sawmill_loader::{Arrange, LoadArranged, LoadOptions, LoadReport, Part, Share, Target, load_in_order};
use sawmill_profile::{PhaseReport, Profile};
use sawmill_source::{Addressed, ByRow, Order, OrderedRows, Source};

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::given::Given;
use crate::arguments::inputs::{self, ColumnArgs, ForTable, Inputs, ObjectArgs};
use crate::arguments::lineage_args::LineageArgs;
use crate::arguments::merge_args::MergeArgs;
use crate::arguments::nested_args::NestedArgs;
use crate::arguments::order_args::{self, IndexPlan, OrderArgs, Ordered, Sorting, ordered};
use crate::arguments::part_arg;
use crate::arguments::record_args::RecordArgs;
use crate::arguments::row_args::RowArgs;
use crate::arguments::schema_args::SchemaArgs;
use crate::arguments::table_args::TableArgs;
use crate::arguments::target::{Destination, EffortArgs, ModeArg, TargetArgs};
use crate::arguments::text::{TableText, TextArgs};
use crate::arguments::value_args::{RejectArgs, ValueArgs};
use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::screen::{help, phases};
use crate::{Cli, Command, forms, interrupt};
use finish::FinishArgs;
use planned::PlannedLoad;
use reading::Reading;

/// Load Parquet, CSV or NDJSON files into a table of PostgreSQL or CrateDB, every row exactly once.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  sawmill load trips.parquet postgres://me@localhost/db/trips
  sawmill load /data/trips postgres://me@localhost/db/public.trips --verify
  sawmill load s3://bucket/trips --to postgres://me@localhost/db --table trips
  find /data -name '*.parquet' -newer done | sawmill load @- --to postgres://localhost/db --table trips
  sawmill load new.parquet --to 'host=/var/run/postgresql dbname=db' --table trips --mode append
  sawmill load trips.parquet --to postgres://localhost/db --table trips --ddl
  sawmill load trips.csv --to postgres://localhost/db --table trips --types 'fare=decimal(10,2)' --null NA --null ''
  sawmill load 'logs/*.tsv' --to postgres://localhost/db --table logs --no-header --names at,host,line --explain
  sawmill load 'gen:contacts?rows=10M' --to postgres://localhost/db --table contacts
  sawmill load /data/trips --to postgres://localhost/db --table sums --query 'SELECT vendor, sum(tip) AS tips FROM read GROUP BY vendor'
  sawmill load /data/trips --to postgres://localhost/db --table trips --where \"pickup >= 2024-01-01 and vendor in (1, 2) and tip is not null\"
  sawmill load changed.parquet --to postgres://localhost/db --table trips --mode upsert --key id --newest updated_at
  sawmill load changes.parquet --to postgres://localhost/db --table trips --mode upsert --key id --newest at --delete-where \"op = 'D'\"
  sawmill load contacts.parquet --to postgres://localhost/db --table contacts --nested native
  sawmill load /data/trips --to postgres://localhost/db --table trips --file-column source --changed replace
  sawmill load orders.parquet --to postgres://localhost/db --table orders --enums enum
  sawmill load contacts.parquet --to postgres://localhost/db --table contacts --nested tables --foreign-keys
  sawmill load trips.parquet --to postgres://localhost/db --table trips --primary-key id --key-after --set maintenance_work_mem=1GB --dry-run
  sawmill load /data/trips --to postgres://localhost/db --table trips --partition-by \"month(pickup)\" --explain
  sawmill load trips.csv --to postgres://localhost/db --table trips --sort-by at --partition-by \"day(at)\" --verify
  sawmill load new.parquet --to postgres://localhost/db --table trips --mode append --rejects rejected.parquet --max-rejects 1000
  sawmill load s3://bucket/trips --to postgres://me@localhost/db --table trips --part 2/4
  sawmill load finish --to postgres://me@localhost/db --table trips --verify
  sawmill load status --to postgres://me@localhost/db
  sawmill load forget --to postgres://me@localhost/db --table trips
  sawmill load trips.parquet --to crate://localhost:4200 --table trips
  sawmill load /data/trips --to crates://me:secret@a:4200,b:4200/logs --table trips --primary-key id --partition-by \"date_trunc('month', at)\" --rejects rejected.ndjson
  sawmill load new.parquet --to crate://localhost --table trips --mode replace --explain

After any failure (Ctrl-C, a killed process, a lost connection), run the same command again: it loads exactly
what is missing. In mode create, the table appears under its name once it is complete."
)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    given: Given,
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// Load one of several parts: 2/4, or auto/4 for the index that a job scheduler has set (Kubernetes, Slurm, AWS
    /// Batch). Each process loads its part, all with the same options; then sawmill load finish. PostgreSQL only.
    #[arg(long, value_name = "K/N", value_parser = part_arg::part)]
    part: Option<Part>,
    /// Load the rows of a SELECT, in which the table `read` is the source: one file, folder or pattern of Parquet files.
    /// The program sawmill-cluster does it, in one transaction. Mode auto makes the table, and mode append adds the rows.
    #[arg(long, value_name = "SELECT", allow_hyphen_values = true)]
    query: Option<String>,
    #[command(flatten)]
    table: TableLoad,
}

/// A load into one table.
#[derive(Args, Debug)]
struct TableLoad {
    /// Parquet or text files, directories, patterns, @LIST, gen:DATASET, also as URLs of stores.
    ///
    /// Text is .csv, .ndjson and the like, compressed or not, all of one kind. Directories are searched, except for names
    /// that start with _ or . . @LIST is a file with one path on each line (@- is standard input), - a file on standard
    /// input (text with --format csv), gen:DATASET?rows=10M&seed=7 generated rows. URLs: s3://, gs://, az://, abfss://,
    /// http(s)://.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Compare table and files before the load is complete.
    #[arg(long)]
    verify: bool,
    /// If they differ, report the missing rows and their row groups. PostgreSQL only.
    #[arg(long, requires = "verify")]
    locate: bool,
    /// Print the CREATE TABLE statement and stop.
    #[arg(help_heading = "Plan", long)]
    ddl: bool,
    /// Print what the load would do, and stop.
    ///
    /// This connects to the server to look at a table that exists; mode auto plans a new one if none answers.
    #[arg(help_heading = "Plan", long)]
    explain: bool,
    /// Do everything that comes before the first row on the server, roll it back, and print what the load
    /// would do. PostgreSQL only.
    #[arg(help_heading = "Plan", long)]
    dry_run: bool,
    /// What to do with the table.
    #[arg(help_heading = "Mode", long, value_enum, default_value = "auto")]
    mode: ModeArg,
    #[command(flatten)]
    merge: MergeArgs,
    /// How to match columns of an existing table.
    #[arg(help_heading = "Mode", long, value_enum, default_value = "name")]
    map: MapArg,
    /// Load files again that are recorded as loaded; not in mode create. An append then has their rows twice. By
    /// default, it skips files that are in the table already.
    #[arg(help_heading = "Mode", long)]
    again: bool,
    /// What to do with a file that was loaded before under this name, with other content.
    #[arg(help_heading = "Mode", long, value_enum, default_value = "error")]
    changed: ChangedArg,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    lineage: LineageArgs,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    objects: ObjectArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    nested: NestedArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    rejects: RejectArgs,
    #[command(flatten)]
    crate_options: CrateArgs,
}

/// How to match columns of an existing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MapArg {
    /// By name.
    Name,
    /// By position: the first with the first, and so on.
    Position,
}

/// What to do with a file whose content has changed since it was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChangedArg {
    /// Fail, and name the file.
    Error,
    /// Append its rows.
    Append,
    /// Put its rows in the place of those that it had: in one transaction, in CrateDB one after the other. With
    /// --file-column.
    Replace,
}

#[derive(Subcommand, Debug)]
enum LoadCommand {
    /// Finish a load whose parts (--part) have all ended: check that nothing is missing, verify, put the table in place.
    #[command(after_help = "\
Examples:
  sawmill load finish --to postgres://me@localhost/db --table trips
  sawmill load finish --to service=warehouse --table contacts --verify --connections 8

Its record has the command of the parts: their files and options apply. Run it in their folder if the files have relative
names.")]
    Finish(FinishArgs),
    /// Remove the records of loads into a table, and what unfinished loads left behind.
    #[command(after_help = "\
Examples:
  sawmill load forget --to postgres://me@localhost/db --table trips

The table itself is kept.")]
    Forget(records::ForgetArgs),
    /// List the loads that a server has records of, and their progress.
    #[command(after_help = "\
Examples:
  sawmill load status --to postgres://me@localhost/db
  sawmill load status --to postgres://me@localhost/db --table trips --json
  sawmill load status --to postgres://me@localhost/db --history
  sawmill load status --to service=warehouse --checkpoint-schema etl
  sawmill load status --to crate://localhost:4200")]
    Status(records::StatusArgs),
    /// Remove the records of old loads that no later load needs.
    #[command(after_help = "\
Examples:
  sawmill load prune --to postgres://me@localhost/db --older-than 90d --dry-run
  sawmill load prune --to crate://localhost:4200 --older-than 90d

This removes the records of loads into tables that are gone, and of inserts and merges by --newest into tables without
appends on record. All others are kept: an append skips the files on record, and another merge, repeated, would overwrite
newer rows.")]
    Prune(records::PruneArgs),
}

pub(crate) fn run(args: &LoadArgs, console: Console) -> Result<()> {
    match &args.command {
        Some(LoadCommand::Forget(target)) => records::forget(target, console),
        Some(LoadCommand::Status(status)) => records::status(status, console),
        Some(LoadCommand::Prune(args)) => records::prune(args, console),
        Some(LoadCommand::Finish(args)) => load_share(&finished(args, console)?, Share::Finish, console),
        None => {
            if let Some(query) = &args.query {
                let TableLoad { files, target, mode, effort, .. } = &args.table;
                return query::run(query, files, (target, *mode), effort.degree(), &args.given, console);
            }
            let share = args.part.map_or(Share::Whole, Share::Part);
            load_share(&args.table, share, console)
        }
    }
}

/// The load to finish, with the options of its parts.
fn finished(args: &FinishArgs, console: Console) -> Result<TableLoad> {
    let recorded = args.recorded()?;
    console.notice(&format!("finishes the load of: {recorded}"));
    let words = forms::written_out(args.words(&recorded)?);
    let parsed = Cli::try_parse_from(words).map_err(|message| help::as_error(&message.to_string()))?;
    let Command::Load(parts) = parsed.command else {
        return Err(Error::failure("the record names another command than a load", recorded, ""));
    };
    let mut load = parts.table;
    if !args.files.is_empty() {
        load.files.clone_from(&args.files);
    }
    load.verify |= args.verify;
    load.locate |= args.locate;
    load.effort.replace_connections(args.connections);
    load.records = args.records.clone();
    Ok(load)
}

/// Loads this run's share of a load, or shows the plan.
fn load_share(args: &TableLoad, share: Share, console: Console) -> Result<()> {
    let target = args.destination(share)?;
    // The record keeps the command of the parts.
    let command = (share != Share::Finish).then(|| forms::recorded(crate::words()));
    let options = LoadOptions { share, command, ..args.options(&target)? };
    let text = args.text_with_rejects(&target)?;
    let by_position = args.map == MapArg::Position;
    let text = text.with_types_of(&target, &args.columns.rename, by_position)?;
    let target = text.typed(target, &args.columns.rename)?;
    let unlike = args.schema.unlike_files(args.mode);
    let table_text = || args.table_text(&text, &target, &options);
    let loaded = || args.loaded_files(&target, None, &options);
    let table = ForTable { unlike, text: &table_text, loaded: &loaded };
    let inputs = inputs::open_unlike(&args.files, &args.columns, &text, &args.objects, table, console)?;
    let records_left_out = inputs.records_left_out.clone().unwrap_or_default();
    let options = LoadOptions { records_left_out, ..options };
    let filtered = args.rows.filtered(&inputs, console)?;
    let mut reading = Reading::new(&inputs, filtered.as_ref());
    let source = filtered.as_ref().map_or(inputs.source(), |filtered| filtered);
    let limited = args.rows.limited(source);
    let source = limited.as_ref().map_or(source, |limited| limited);
    let traced = args.merge.traced(source, args.lineage.columns(), &args.columns.rename)?;
    let source: &dyn Source = traced.as_ref().map_or(source, |traced| traced);
    let target = match traced.as_ref().and_then(|traced| traced.tested()) {
        Some(tested) => target.with_postgres(|postgres| postgres.deletes(tested)),
        None => target,
    };
    let whole = filtered.is_none() && limited.is_none() && traced.is_none();
    reading.phases = inputs.phases.clone();
    load_rows(args, target, (source, &inputs, whole), options, reading, console)
}

/// Loads rows in their order or sorted, or shows the plan. They are `whole` inputs, or some of their rows or columns.
fn load_rows(
    args: &TableLoad,
    target: Destination,
    (source, inputs, whole): (&dyn Source, &Inputs, bool),
    options: LoadOptions,
    mut reading: Reading,
    console: Console,
) -> Result<()> {
    let adds_files = args.adds_files(&target, source, &options)?;
    args.check_taken_out(&target, (source, inputs), &options, console)?;
    let keeps_table = adds_files || args.mode == ModeArg::Append;
    if adds_files {
        args.table.refuse_other_partitions(&target, &options)?;
    }
    let order = args.order(&target, inputs.addressed().is_some(), keeps_table)?;
    let options = match &order {
        Some(order) if keeps_table => LoadOptions { order: order.identity(), ..options },
        _ => options,
    };
    let place = args.order.place(&std::env::temp_dir());
    let profile = Profile::new();
    let by_row = ByRow::new(source);
    let addressed: &dyn Addressed = inputs.addressed().filter(|_| whole).unwrap_or(&by_row);
    let index = match &order {
        None => None,
        Some(order) => {
            OrderedRows::check(source, order)?;
            let plans = args.ddl || args.explain || args.dry_run;
            if plans {
                reading.index = Some(IndexPlan::new(addressed, order, &place));
            }
            // For a plan, too, the order of rows decides how they are split into partitions.
            match !keeps_table && (!plans || (order.partition_by.is_some() && !args.ddl)) {
                true => Some(ordered(addressed, order, &place, &profile, console)?.0),
                false => None,
            }
        }
    };
    let sorting = order.as_ref().filter(|_| keeps_table).map(|order| Sorting {
        order,
        place: &place,
        source,
        addressed,
        profile: &profile,
        sorted: RefCell::default(),
    });
    let source = index.as_ref().map_or(source, |rows| rows);
    let target = match adds_files {
        true => target.appending(),
        false => args.table.partitioned(target, source, console)?,
    };
    let tables = args.nested.tables(&target, source)?;
    let planned = PlannedLoad { target: &target, source, tables: tables.as_ref(), options: &options };
    if args.explain {
        reading.text = inputs.text_found()?;
    }
    carry_out(args, &planned, reading, (index.as_ref(), sorting.as_ref()), &profile, console)
}

/// Carries the plan out, or shows it.
fn carry_out(
    args: &TableLoad,
    planned: &PlannedLoad<'_>,
    mut reading: Reading,
    order: (Option<&OrderedRows<'_>>, Option<&Sorting<'_>>),
    profile: &Profile,
    console: Console,
) -> Result<()> {
    let PlannedLoad { target, tables, options, .. } = *planned;
    if args.ddl {
        return planned.ddl(console);
    }
    if args.explain {
        return planned.explain(&reading, console);
    }
    if args.dry_run {
        return planned.dry_run(console);
    }
    if let Some(folders) = reading.folders() {
        console.notice(&folders);
    }
    console.detail(|| {
        format!(
            "{}, units of {}, at most {} of encoded rows in memory",
            phases::counted(options.degree as u64, "connection"),
            phases::counted(options.unit_rows, "row"),
            phases::bytes(options.block_memory())
        )
    });
    match tables {
        Some(tables) => tables::run(tables, &reading, options, args.manner(target), console),
        None => load_table(args, planned, &mut reading, order, profile, console),
    }
}

impl TableLoad {
    /// The table with all options of its database. Rejects options that contradict each other.
    fn destination(&self, share: Share) -> Result<Destination> {
        let target = self.target.destination(&self.crate_options, &self.effort)?.mode(self.mode.into());
        let target = self.records.apply(target);
        let by_position = self.map == MapArg::Position;
        let target = self.merge.apply(target, self.mode, by_position)?;
        if self.again && matches!(self.mode, ModeArg::Auto | ModeArg::Create) {
            let what = "modes auto and create load a new table or new files, and nothing again";
            let advice = "--mode replace loads a table from the beginning; --mode append --again adds all rows of the files once more, \
                 also those that the table has";
            return Err(Error::usage(what, "--again", advice));
        }
        if self.changed != ChangedArg::Error && !matches!(self.mode, ModeArg::Auto | ModeArg::Append) {
            let advice =
                "leave it out: this mode takes the files as they are now; or use --mode auto or append";
            return Err(Error::usage("not available in this mode", "--changed", advice));
        }
        let target = self.values.apply(target)?;
        let (_, rejected_rows) = self.files_of_rejects(&target)?;
        let target = self.rejects.apply(target, rejected_rows)?;
        target.refuse_for_crate_db(self.locate, "--locate")?;
        target.check_new_names(&self.columns.rename)?;
        let target = target.with(
            |of| of.by_position(by_position),
            |of| of.with(|options| options.by_position = by_position),
        );
        let others = [
            (by_position, "--map position"),
            (self.nested.makes_tables(), "--nested tables"),
            (share != Share::Whole, "a load in parts"),
        ];
        let target = self.schema.apply(target, self.mode, &others)?;
        let partitioned = matches!(target, Destination::Postgres(_)) && self.table.partition_by.is_some();
        if partitioned && self.lineage.loaded_at_column.is_some() {
            let advice = "leave one of them out; or add the column to the partitioned table, and append";
            return Err(Error::usage("not available with --partition-by", "--loaded-at-column", advice));
        }
        let of_lineage = [(self.nested.makes_tables(), "--nested tables")];
        let target = self.lineage.apply(target, self.changed == ChangedArg::Replace, &of_lineage)?;
        self.table.apply(self.nested.apply(target)?)
    }

    /// Whether mode auto appends. Plans take mode create if no server answers.
    fn adds_files(&self, target: &Destination, source: &dyn Source, options: &LoadOptions) -> Result<bool> {
        if self.mode != ModeArg::Auto || self.ddl || self.nested.makes_tables() {
            return Ok(false);
        }
        Ok(self.asked(|control| target.as_target().adds_files(source, options, control))?)
    }

    /// Whether this is a plan that needs no server.
    fn is_planned_alone(&self) -> bool {
        let explains = self.explain && self.mode == ModeArg::Auto && !self.schema.accepts_some();
        self.ddl || explains
    }

    /// The text columns of the table, if the load keeps it.
    fn table_text(&self, text: &TextArgs, target: &Destination, options: &LoadOptions) -> Result<TableText> {
        let makes_table = matches!(self.mode, ModeArg::Create | ModeArg::Replace);
        let mut found = match makes_table || self.is_planned_alone() || !text.table_types.is_empty() {
            true => TableText::default(),
            false => TableText::find(target, options, &self.columns, self.map == MapArg::Position)?,
        };
        // A number of the condition needs the type that the sample shows, or its own if the sample shows none.
        found.names.retain(|name| !self.merge.refuses_text(name));
        found.of_empty = self.merge.types_of_empty();
        Ok(found)
    }

    /// What the report depends on.
    fn manner(&self, target: &Destination) -> report::Manner {
        report::Manner {
            verifies: self.verify,
            merges: matches!(self.mode, ModeArg::Upsert | ModeArg::Insert | ModeArg::History),
            deletes: target.has_deletes(),
            follows: self.schema.accepts_some(),
            rejects: !self.rejects.rejects.is_empty(),
        }
    }

    /// The files for lines of text that cannot be read, and for rows that the database refuses.
    fn files_of_rejects(&self, target: &Destination) -> Result<(Option<&Path>, Option<&Path>)> {
        // CrateDB's own rejected rows are NDJSON.
        let json = matches!(target, Destination::Postgres(_));
        self.text.files_of_rejects(&self.files, &self.rejects.rejects, json)
    }

    fn text_with_rejects(&self, target: &Destination) -> Result<Cow<'_, TextArgs>> {
        let (lines, _) = self.files_of_rejects(target)?;
        Ok(self.text.with_rejects(lines, self.rejects.max_rejects))
    }

    /// The order of the rows, if they need an index: to be sorted, or to read text partition by partition.
    fn order(&self, target: &Destination, is_text: bool, keeps_table: bool) -> Result<Option<Order>> {
        let by = match (&self.table.partition_by, target) {
            (Some(by), Destination::Postgres(_)) => by.parse().ok(),
            (Some(by), Destination::CrateDb(_)) => order_args::of_crate_db(by),
            (None, _) => None,
        };
        let sorts = self.order.sort_by.is_some();
        let by = by.filter(|_| sorts || (is_text && matches!(target, Destination::Postgres(_))));
        let order = self.order.order(by)?;
        if sorts && self.nested.makes_tables() {
            let what = "--sort-by with --nested tables";
            let advice = "load nested values as jsonb, or leave the option out";
            return Err(Error::usage(what, "--sort-by", advice));
        }
        Ok(match (keeps_table, target) {
            (true, Destination::Postgres(_)) => order.and(self.order.of_added()),
            _ => order,
        })
    }

    fn options(&self, target: &Destination) -> Result<LoadOptions> {
        Ok(LoadOptions {
            verify: self.verify,
            locate: self.locate,
            again: self.again,
            append_changed: self.changed == ChangedArg::Append,
            replace_changed: self.changed == ChangedArg::Replace,
            ..self.effort.options_for(target)?
        })
    }
}

/// Loads one table and prints the report.
fn load_table(
    args: &TableLoad,
    planned: &PlannedLoad<'_>,
    reading: &mut Reading,
    (index, sorting): (Option<&OrderedRows<'_>>, Option<&Sorting<'_>>),
    profile: &Profile,
    console: Console,
) -> Result<()> {
    let PlannedLoad { target, source, options, .. } = *planned;
    let sampler = report::sampled(profile)?;
    let arrange = |source: &dyn Source, load: &mut LoadArranged<'_>| match sorting {
        Some(sorting) => sorting.sort(source, load),
        None => load(source),
    };
    let loaded = load_arranged(source, target.as_target(), options, &arrange, profile, console);
    let (report, phase) = loaded.map_err(|error| target.advised(error))?;
    let sorted = sorting.and_then(|sorting| sorting.sorted.take());
    reading.ordered = index.map(Ordered::new).or(sorted);
    reading.phases.extend(profile.phases());
    let (table, manner) = (args.target.table(), args.manner(target));
    report::print(table, &report, manner, &phase, &sampler.stop(), reading, console)?;
    report::check(table, &report, manner, console).map_err(|error| target.advised(error))
}

/// Loads under a progress bar.
pub(crate) fn load_files(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    profile: &Profile,
    console: Console,
) -> Result<(LoadReport, PhaseReport)> {
    load_arranged(source, target, options, &|source, load| load(source), profile, console)
}

/// The same for rows in another order.
fn load_arranged(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    arrange: &Arrange<'_>,
    profile: &Profile,
    console: Console,
) -> Result<(LoadReport, PhaseReport)> {
    let rows = source.rows();
    let phase = profile.phase("load");
    let say = |line: &str| console.notice(line);
    let control = interrupt::control(&phase).with_notices(&say);
    let report = console
        .with_bar("load", rows, &phase, || load_in_order(source, target, options, arrange, &control))?;
    Ok((report, phase.finish()))
}
