//! The arguments that say where rows go and how, shared by the sub-commands that talk to a server.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use sawmill_loader::{LoadOptions, Mode, Postgres, Server, TableName};

use crate::error::Error;
use crate::phases;

/// Where the table is. Both are required, but for a sub-command that has arguments of its own.
#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The server: postgres://user:password@host:port/database or host=... dbname=... user=...;
    /// what is left out comes from PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE and ~/.pgpass.
    #[arg(long, value_name = "URL", required = true)]
    to: Option<String>,
    /// The table: NAME or SCHEMA.NAME, in double quotes where a part has dots in it.
    #[arg(long, value_name = "NAME", required = true)]
    table: Option<String>,
}

impl TargetArgs {
    pub(crate) fn postgres(&self) -> Result<Postgres, Error> {
        let to = self.to.as_deref().ok_or_else(|| Error::usage("no server", "--to", "give its address"))?;
        postgres(to, self.table())
    }

    /// The table as the user names it.
    pub(crate) fn table(&self) -> &str {
        self.table.as_deref().unwrap_or_default()
    }
}

/// A table of a server, both as a user names them.
pub(crate) fn postgres(url: &str, table: &str) -> Result<Postgres, Error> {
    Ok(Postgres::new(url.parse::<Server>()?, table.parse::<TableName>()?))
}

/// How much is done at the same time, and how much is held in memory for it.
#[derive(Args, Debug)]
pub(crate) struct EffortArgs {
    /// Connections that work at the same time [default: one for each core, 2 to 8].
    #[arg(long)]
    degree: Option<NonZeroUsize>,
    /// Rows of a unit: what is committed in one transaction.
    #[arg(long, default_value = "131072", value_parser = phases::count)]
    unit_rows: u64,
    /// How often a lost connection is tried again.
    #[arg(long, default_value_t = 8)]
    retries: u32,
}

impl EffortArgs {
    pub(crate) fn options(&self) -> Result<LoadOptions, Error> {
        /// Rows that fit one transaction of sensible length; also keeps the plan of a file small.
        const UNIT_ROWS: std::ops::RangeInclusive<u64> = 1..=1 << 24;
        if !UNIT_ROWS.contains(&self.unit_rows) {
            let what = format!("units of {} rows", self.unit_rows);
            return Err(Error::usage(what, "--unit-rows", format!("give 1 to {}", UNIT_ROWS.end())));
        }
        let degree = self.degree.map_or_else(default_degree, NonZeroUsize::get);
        Ok(LoadOptions { degree, unit_rows: self.unit_rows, retries: self.retries, ..LoadOptions::default() })
    }
}

/// One connection for each core, two at least to keep the server busy while rows are decoded, and
/// eight at most: beyond that they wait for each other in the server.
pub(crate) fn default_degree() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(2, 8)
}

/// What happens to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// The table must not exist; it appears when it is complete.
    Create,
    /// The table exists; columns are matched by name.
    Append,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Create => Mode::Create,
            ModeArg::Append => Mode::Append,
        }
    }
}
