//! The arguments that say how a new table is made.

use clap::{Args, ValueEnum};
use sawmill_loader::{Strategy, TableKind};

use crate::error::Error;
use crate::phases;
use crate::target::Destination;

/// Keys, indexes and storage of a new table.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "New table")]
pub(crate) struct TableArgs {
    /// Columns of the new table's primary key.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// Partition the new table by a column, or by date_trunc('month', COLUMN) and the like. CrateDB.
    #[arg(long, value_name = "COLUMN")]
    pub partition_by: Option<String>,
    /// The way to the new table. PostgreSQL [default: auto].
    #[arg(long, value_enum)]
    strategy: Option<StrategyArg>,
    /// Rows of a worker's own table in the staged strategy, which are committed at once [default: 4M].
    #[arg(long, value_name = "ROWS", value_parser = phases::count)]
    part_rows: Option<u64>,
    /// Add the primary key when all rows are in, which takes less time. PostgreSQL.
    #[arg(long, requires = "primary_key")]
    key_after: bool,
    /// Build an index over these columns when all rows are in; may be given again. PostgreSQL.
    #[arg(long, value_name = "COLUMNS")]
    index: Vec<String>,
    /// Make an unlogged table: faster, but a crash of the server empties it. PostgreSQL.
    #[arg(long)]
    unlogged: bool,
    /// Where the table and its keys are stored. PostgreSQL.
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
    /// Set a parameter of the server on each connection, such as maintenance_work_mem=1GB; may be given again.
    /// PostgreSQL.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

/// The way to a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Whichever is better; what was chosen is told.
    Auto,
    /// All connections copy into one table.
    Direct,
    /// Each connection copies into tables of its own, which become children of the table (INHERIT).
    Staged,
}

impl From<StrategyArg> for Strategy {
    fn from(strategy: StrategyArg) -> Self {
        match strategy {
            StrategyArg::Auto => Self::Auto,
            StrategyArg::Direct => Self::Direct,
            StrategyArg::Staged => Self::Staged,
        }
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("give NAME=VALUE, such as maintenance_work_mem=1GB".to_owned()),
    }
}

impl TableArgs {
    /// The target with these options; what its database does not know is refused.
    pub(crate) fn apply(&self, target: Destination) -> Result<Destination, Error> {
        match target {
            Destination::Postgres(postgres) => {
                if self.partition_by.is_some() {
                    return Err(Error::usage(
                        "--partition-by is for CrateDB",
                        "--to",
                        "give crate://host:4200, or leave the option out",
                    ));
                }
                let names =
                    |columns: &String| columns.split(',').map(|name| name.trim().to_owned()).collect();
                let mut postgres = postgres.kind(TableKind {
                    unlogged: self.unlogged,
                    primary_key: self.primary_key.clone(),
                    key_after: self.key_after,
                    indexes: self.index.iter().map(names).collect(),
                    tablespace: self.tablespace.clone(),
                });
                postgres = postgres.strategy(self.strategy.map(Into::into).unwrap_or_default());
                postgres = postgres.part_rows(self.part_rows.unwrap_or(sawmill_loader::Postgres::PART_ROWS));
                for (name, value) in &self.set {
                    postgres = postgres.setting(name, value);
                }
                Ok(Destination::Postgres(Box::new(postgres)))
            }
            Destination::CrateDb(crate_db) => {
                let given = [
                    ("--strategy", self.strategy.is_some()),
                    ("--part-rows", self.part_rows.is_some()),
                    ("--key-after", self.key_after),
                    ("--index", !self.index.is_empty()),
                    ("--unlogged", self.unlogged),
                    ("--tablespace", self.tablespace.is_some()),
                    ("--set", !self.set.is_empty()),
                ];
                if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                    let what = format!("{option} is for PostgreSQL");
                    return Err(Error::usage(what, "--to", "leave the option out"));
                }
                let crate_db = crate_db.primary_key(self.primary_key.clone());
                Ok(Destination::CrateDb(Box::new(crate_db.partition_by(self.partition_by.clone()))))
            }
        }
    }
}
