//! How to create a new table.

use clap::Args;
use sawmill_loader::LoadOptions;
use sawmill_postgres::{PartitionBy, Postgres, Strategy, Survey, TableKind};
use sawmill_profile::{Profile, format_counted};
use sawmill_source::Source;
use serde::Serialize;

use crate::arguments::given::Given;
use crate::arguments::order_args::for_crate_db;
use crate::arguments::target::Destination;
use crate::arguments::words::words;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// Keys, indexes and storage of a new table.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "New table")]
pub(crate) struct TableArgs {
    #[command(flatten)]
    given: Given,
    /// Columns of the new table's primary key.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// Partition the new table: month(COLUMN), day(COLUMN), hour(COLUMN), year(COLUMN) or list(COLUMN).
    /// PostgreSQL also: hash(COLUMN, N). CrateDB also: COLUMN, or an expression such as
    /// date_trunc('month', COLUMN).
    #[arg(long, value_name = "BY")]
    pub partition_by: Option<String>,
    /// How connections fill the new table. PostgreSQL only [default: auto].
    #[arg(long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Add the primary key after all rows are loaded, which is faster. PostgreSQL only.
    #[arg(long, requires = "primary_key")]
    key_after: bool,
    /// Build an index on these columns after all rows are loaded. May be repeated. PostgreSQL only.
    #[arg(long, value_name = "COLUMNS")]
    index: Vec<String>,
    /// Create an unlogged table: faster, but a crash of the server empties it. PostgreSQL only.
    #[arg(long)]
    unlogged: bool,
    /// The tablespace of the table and its indexes. PostgreSQL only.
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
    /// How long to wait for a lock that another session holds, such as 30s or 5min, before the load fails.
    /// While it waits, it reports who holds the lock. PostgreSQL only [default: the server's setting, usually
    /// no limit].
    #[arg(long, value_name = "TIME")]
    lock_timeout: Option<String>,
    /// Set a server parameter on each connection, such as maintenance_work_mem=1GB. May be repeated.
    /// PostgreSQL only.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

words!(
    /// How connections fill a new table.
    StrategyArg => Strategy {
        /// Choose automatically and report the choice.
        Auto,
        /// All connections copy into one table.
        Direct,
        /// Each connection copies into its own tables, which become partitions of the table. With --partition-by.
        Staged,
    }
);

/// The target with the partitions that the source needs.
pub(crate) fn partitioned(
    postgres: Postgres,
    by: &str,
    source: &dyn Source,
    console: Console,
) -> Result<Postgres> {
    let by: PartitionBy = by.parse()?;
    let phase = Profile::new().phase("partitions");
    let control = interrupt::control(&phase);
    let survey = || postgres.partitioned(&by, source, &control);
    Ok(console.with_bar("partitions", source.rows(), &phase, survey)?)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("give NAME=VALUE, such as maintenance_work_mem=1GB".to_owned()),
    }
}

/// The partitions that a load would create.
#[derive(Serialize)]
pub(crate) struct PartitionsPlan {
    by: String,
    survey: Survey,
    partitions: Vec<PlannedPartition>,
}

/// One of them.
#[derive(Serialize)]
struct PlannedPartition {
    table: String,
    bound: String,
    /// `None` if only the server can tell.
    rows: Option<u64>,
}

impl PartitionsPlan {
    /// `None` if the table has no partitions.
    pub(crate) fn new(postgres: &Postgres) -> Option<Self> {
        let partitions = postgres.partitions()?;
        let planned = postgres.partition_list().into_iter();
        let planned = planned.map(|(table, bound, rows)| PlannedPartition { table, bound, rows });
        let (by, survey) = (partitions.by().to_string(), partitions.found());
        Some(Self { by, survey, partitions: planned.collect() })
    }

    /// The plan for people.
    pub(crate) fn lines(&self) -> String {
        let looked = match self.partitions.iter().all(|partition| partition.rows.is_some()) {
            true => format!(
                "; by their statistics, {} of {} row groups lie in one partition; of the others the column was read",
                phases::thousands(self.survey.row_groups_known),
                phases::thousands(self.survey.row_groups)
            ),
            false => String::new(),
        };
        let mut rows = vec![["partition", "rows", "bound"].map(str::to_owned)];
        for partition in &self.partitions {
            let count = partition.rows.map_or_else(|| "?".to_owned(), phases::thousands);
            rows.push([partition.table.clone(), count, partition.bound.clone()]);
        }
        let count = format_counted(self.partitions.len() as u64, "partition");
        format!("{count} by {}{looked}\n{}", self.by, phases::table(&rows))
    }
}

impl TableArgs {
    /// The target with the partitions that the source needs, if partitions were asked for.
    pub(crate) fn partitioned(
        &self,
        target: Destination,
        source: &dyn Source,
        console: Console,
    ) -> Result<Destination> {
        match (target, &self.partition_by) {
            (Destination::Postgres(postgres), Some(by)) => {
                Ok(partitioned(*postgres, by, source, console)?.into())
            }
            (target, _) => Ok(target),
        }
    }

    /// Checks that the table to which files are added has the partitions that were asked for.
    pub(crate) fn refuse_other_partitions(&self, target: &Destination, options: &LoadOptions) -> Result<()> {
        let (Destination::Postgres(postgres), Some(by)) = (target, &self.partition_by) else {
            return Ok(());
        };
        let by: PartitionBy = by.parse()?;
        Ok(interrupt::during(|control| postgres.refuse_other_partitions(&by, options, control))?)
    }

    /// The target with these options. Options of the other database are errors.
    pub(crate) fn apply(&self, target: Destination) -> Result<Destination> {
        let given = self.given.first_of::<Self>(&["--primary-key", "--partition-by"]);
        if let (Destination::CrateDb(_), Some(option)) = (&target, given) {
            let what = format!("{option} is available for PostgreSQL only");
            return Err(Error::usage(what, "--to", "leave the option out"));
        }
        let names = |columns: &String| columns.split(',').map(|name| name.trim().to_owned()).collect();
        let kind = TableKind {
            unlogged: self.unlogged,
            primary_key: self.primary_key.clone(),
            key_after: self.key_after,
            indexes: self.index.iter().map(names).collect(),
            tablespace: self.tablespace.clone(),
        };
        let timeout = self.lock_timeout.iter().map(|time| ("lock_timeout", time.as_str()));
        let settings = timeout.chain(self.set.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Ok(target.with(
            |postgres| {
                let postgres =
                    postgres.kind(kind).strategy(self.strategy.map(Into::into).unwrap_or_default());
                settings.fold(postgres, |postgres, (name, value)| postgres.setting(name, value))
            },
            |crate_db| {
                let by = self.partition_by.as_deref().map(for_crate_db);
                let key = self.primary_key.clone();
                crate_db.with(|options| (options.primary_key, options.partition_by) = (key, by))
            },
        ))
    }
}
