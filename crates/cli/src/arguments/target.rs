//! Where rows go: arguments of the sub-commands that connect to a server.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use sawmill_cratedb::{CrateDb, CrateServer, refused_column_name};
use sawmill_loader::{Forgotten, LoadOptions, Mode, RejectOptions, TableName, Target, Verification};
use sawmill_pgwire::Server;
use sawmill_postgres::{Postgres, Strategy, TableKind, forget, verify};
use sawmill_source::{Control, Source};

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::size_arg;
use crate::arguments::words::words;
use crate::error::{Error, Result};
use crate::screen::phases;

/// Where the table is. Both are required, except by a sub-command with its own arguments.
#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The server: postgres://user@host/database or crate://host:4200.
    ///
    /// PostgreSQL: postgres://user:password@host:port/database or host=... dbname=... user=...; missing parts come from
    /// a service (service=NAME, PGSERVICE), from PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE and the like, and from
    /// ~/.pgpass. CrateDB: crate://user:password@host:4200,host2:4200/schema, or crates:// for TLS.
    #[arg(long, value_name = "URL", required = true)]
    to: Option<String>,
    /// The table: NAME or SCHEMA.NAME. Put a part that contains dots in double quotes.
    #[arg(long, value_name = "NAME", required = true)]
    table: Option<String>,
}

/// A table of PostgreSQL or CrateDB.
pub(crate) enum Destination {
    Postgres(Box<Postgres>),
    CrateDb(Box<CrateDb>),
}

impl Destination {
    pub(crate) fn as_target(&self) -> &dyn Target {
        match self {
            Self::Postgres(postgres) => postgres.as_ref(),
            Self::CrateDb(crate_db) => crate_db.as_ref(),
        }
    }

    /// The same with other options of its database.
    pub(crate) fn with(
        self,
        postgres: impl FnOnce(Postgres) -> Postgres,
        crate_db: impl FnOnce(CrateDb) -> CrateDb,
    ) -> Self {
        match self {
            Self::Postgres(of) => postgres(*of).into(),
            Self::CrateDb(of) => Self::CrateDb(Box::new(crate_db(*of))),
        }
    }

    /// Changes an option that CrateDB lacks.
    pub(crate) fn with_postgres(self, postgres: impl FnOnce(Postgres) -> Postgres) -> Self {
        self.with(postgres, |crate_db| crate_db)
    }

    /// Sets what happens to the table.
    pub(crate) fn mode(self, mode: Mode) -> Self {
        self.with(|postgres| postgres.mode(mode), |crate_db| crate_db.mode(mode))
    }

    /// Appends to the table that a load with these options has made, without the options that only a new table has.
    pub(crate) fn appending(self) -> Self {
        self.mode(Mode::Append).with(
            |postgres| postgres.kind(TableKind::default()).strategy(Strategy::Auto),
            |crate_db| {
                crate_db.with(|options| (options.primary_key, options.partition_by) = (Vec::new(), None))
            },
        )
    }

    /// Rejects an option that only PostgreSQL has.
    pub(crate) fn refuse_for_crate_db(&self, given: bool, option: &str) -> Result<()> {
        match self {
            Self::CrateDb(_) if given => {
                Err(Error::usage("not available for CrateDB", option, "leave the option out"))
            }
            _ => Ok(()),
        }
    }

    /// The error with advice that this target can follow: CrateDB does not locate rows.
    pub(crate) fn advised(&self, error: Error) -> Error {
        let advice = "load with --mode replace, which loads everything from the beginning";
        match self {
            Self::Postgres(_) => error,
            Self::CrateDb(_) => error.advise_instead_of(&["--locate"], advice),
        }
    }

    /// Rejects new names of columns that CrateDB does not take.
    pub(crate) fn check_new_names(&self, renames: &[(String, String)]) -> Result<()> {
        let Self::CrateDb(_) = self else { return Ok(()) };
        for (old, new) in renames {
            if let Some((why, proposal)) = refused_column_name(new) {
                let what = format!("CrateDB does not take the name: {new:?} {why}");
                return Err(Error::usage(what, "--rename", format!("use --rename '{old}={proposal}'")));
            }
        }
        Ok(())
    }

    /// Writes at most `most` rejected rows to this file; a comparison leaves its rows out.
    pub(crate) fn rejects(self, file: Option<&Path>, most: Option<u64>) -> Self {
        let rejects = file.map(|path| RejectOptions { path: path.to_owned(), most });
        self.with(|postgres| postgres.rejects(rejects.clone()), |crate_db| crate_db.rejects(rejects.clone()))
    }

    /// Whether rows of the source may delete rows of the table.
    pub(crate) fn has_deletes(&self) -> bool {
        matches!(self, Self::Postgres(postgres) if postgres.has_deletes())
    }

    pub(crate) fn ddl(&self, source: &dyn Source, control: &Control<'_>) -> Result<String> {
        Ok(match self {
            Self::Postgres(postgres) => postgres.ddl(source, control)?,
            Self::CrateDb(crate_db) => crate_db.ddl(source)?,
        })
    }

    pub(crate) fn forget(&self, control: &Control<'_>) -> Result<Forgotten> {
        Ok(match self {
            Self::Postgres(postgres) => forget(postgres, false, control)?,
            Self::CrateDb(crate_db) => crate_db.forget(false, control)?,
        })
    }

    pub(crate) fn verify(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Verification> {
        Ok(match self {
            Self::Postgres(postgres) => verify(source, postgres, options, control)?,
            Self::CrateDb(crate_db) => crate_db.verify(source, options, control)?,
        })
    }
}

impl From<Postgres> for Destination {
    fn from(postgres: Postgres) -> Self {
        Self::Postgres(Box::new(postgres))
    }
}

impl TargetArgs {
    /// The table with the options of its database.
    pub(crate) fn destination(&self, crate_options: &CrateArgs, effort: &EffortArgs) -> Result<Destination> {
        let to = self.server()?;
        if CrateServer::understands(to) {
            let table = sawmill_cratedb::table_name(self.table())?;
            let options = crate_options.options(effort.batch_rows());
            let crate_db = CrateDb::new(to.parse::<CrateServer>()?, table).options(options);
            return Ok(Destination::CrateDb(Box::new(crate_db)));
        }
        crate_options.refuse_for_postgres()?;
        if !to.trim().is_empty() && !to.contains(['/', '=']) {
            let advice = "write postgres://HOST/DATABASE for PostgreSQL or crate://HOST:4200 for CrateDB";
            return Err(Error::usage("the address has no scheme, and is not keyword=value", "--to", advice));
        }
        Ok(postgres(to, self.table())?.patience(effort.patience()).into())
    }

    /// The server as the user wrote it.
    pub(crate) fn server(&self) -> Result<&str> {
        self.to.as_deref().ok_or_else(|| Error::usage("no server", "--to", "give its address"))
    }

    /// The table as the user wrote it.
    pub(crate) fn table(&self) -> &str {
        self.table.as_deref().unwrap_or_default()
    }
}

/// A table of PostgreSQL, from a URL and a name.
pub(crate) fn postgres(url: &str, table: &str) -> Result<Postgres> {
    Ok(Postgres::new(url.parse::<Server>()?, table.parse::<TableName>()?))
}

/// How many connections to open, and how long to wait on them.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// Connections to use in parallel; -2 means one for every two cores [default: one for each core, 2 to 8].
    ///
    /// 1 is enough for a PostgreSQL role that may have one connection.
    #[arg(long = "connections", alias = "degree", value_name = "N", allow_negative_numbers = true, value_parser = degree)]
    pub(crate) degree: Option<NonZeroUsize>,
    /// How long to wait before asking a silent server whether it still works, such as 90s, 5m or 1h. A CrateDB cluster
    /// may take as long to come back [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = sawmill_profile::parse_duration)]
    pub(crate) patience: Option<Duration>,
}

/// Parallelism, memory and retries of a load.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(crate) struct EffortArgs {
    #[command(flatten)]
    connections: ConnectionArgs,
    /// Rows of a unit, which one transaction commits; the last units are smaller.
    #[arg(long, default_value = "262144", value_parser = phases::count)]
    unit_rows: u64,
    /// How often to reconnect after a lost connection.
    #[arg(long, default_value_t = 8)]
    retries: u32,
    /// Rows to decode at a time, and rows of a request to CrateDB [default: 4096, CrateDB 20000].
    #[arg(long, value_parser = phases::count)]
    batch_rows: Option<u64>,
    /// Bytes of encoded rows to send at a time, such as 512KiB or 8MiB [default: 256KiB, CrateDB 8MiB].
    #[arg(long, value_parser = size_arg::bytes, allow_hyphen_values = true)]
    batch_bytes: Option<u64>,
}

/// Parses a number of connections: `4`, or `-2` for the number of cores divided by two, at least one.
fn degree(text: &str) -> Result<NonZeroUsize, String> {
    let number: isize = text.parse().map_err(|_| "give a number such as 4 or -2".to_owned())?;
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let wanted = if number < 0 { (cores() / number.unsigned_abs()).max(1) } else { number.unsigned_abs() };
    NonZeroUsize::new(wanted).ok_or_else(|| "give 1 or more, or -1 or less".to_owned())
}

/// Rows to decode at a time by default.
const DECODED_ROWS: usize = 4096;

impl EffortArgs {
    /// Takes these connections where they are given.
    pub(crate) fn replace_connections(&mut self, given: ConnectionArgs) {
        self.connections = ConnectionArgs {
            degree: given.degree.or(self.connections.degree),
            patience: given.patience.or(self.connections.patience),
        };
    }

    /// The number of connections, if given.
    pub(crate) fn degree(&self) -> Option<NonZeroUsize> {
        self.connections.degree
    }

    /// Rows of a batch, if given.
    pub(crate) fn batch_rows(&self) -> Option<usize> {
        self.batch_rows.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// How long to wait for an answer.
    pub(crate) fn patience(&self) -> Duration {
        self.connections.patience.unwrap_or(LoadOptions::default().patience)
    }

    /// Bytes of a batch, if given.
    fn batch_bytes(&self) -> Option<usize> {
        self.batch_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// The options for a table: a request to CrateDB holds several decoded batches.
    pub(crate) fn options_for(&self, destination: &Destination) -> Result<LoadOptions> {
        let options = self.options()?;
        Ok(match destination {
            Destination::Postgres(_) => options,
            Destination::CrateDb(_) => LoadOptions {
                batch_rows: options.batch_rows.min(DECODED_ROWS),
                batch_bytes: self.batch_bytes().unwrap_or(CrateDb::BATCH_BYTES),
                ..options
            },
        })
    }

    pub(crate) fn options(&self) -> Result<LoadOptions> {
        /// Keeps transactions reasonably short, and the plan of a file small.
        const UNIT_ROWS: std::ops::RangeInclusive<u64> = 1..=1 << 24;
        if !UNIT_ROWS.contains(&self.unit_rows) {
            let what = format!("units of {} rows", self.unit_rows);
            return Err(Error::usage(what, "--unit-rows", format!("give 1 to {}", UNIT_ROWS.end())));
        }
        /// Bounds the rows that are decoded into memory at a time.
        const BATCH_ROWS: std::ops::RangeInclusive<usize> = 1..=1 << 20;
        if let Some(rows) = self.batch_rows().filter(|rows| !BATCH_ROWS.contains(rows)) {
            let advice = format!("give 1 to {}", BATCH_ROWS.end());
            return Err(Error::usage(format!("batches of {rows} rows"), "--batch-rows", advice));
        }
        /// A connection holds several such batches; a message of PostgreSQL is at most 1 GiB long.
        const MAX_BATCH_BYTES: usize = 1 << 30;
        if let Some(bytes) = self.batch_bytes().filter(|bytes| *bytes > MAX_BATCH_BYTES) {
            let what = format!("batches of {bytes} bytes");
            return Err(Error::usage(what, "--batch-bytes", "give 1GiB or less"));
        }
        let degree = self.connections.degree.map_or_else(default_degree, NonZeroUsize::get);
        let default = LoadOptions::default();
        Ok(LoadOptions {
            degree,
            unit_rows: self.unit_rows,
            retries: self.retries,
            patience: self.patience(),
            batch_rows: self.batch_rows().unwrap_or(default.batch_rows),
            batch_bytes: self.batch_bytes().unwrap_or(default.batch_bytes),
            ..default
        })
    }
}

/// One connection for each core: at least two, to keep the server busy while rows are decoded, and at most
/// eight, beyond which they wait for each other in the server.
pub(crate) fn default_degree() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(2, 8)
}

words!(
    /// What happens to the table. Whether mode auto appends is asked later, by `adds_files`.
    ModeArg => Mode {
        /// Create the table if it is missing, and append new files to a table that a load of some of these files has
        /// made. Any other table needs mode append.
        Auto as Create,
        /// Create the table, which must not exist. It appears when it is complete.
        Create,
        /// Append to an existing table; columns are matched by name.
        Append,
        /// Empty an existing table first. Not available for CrateDB.
        Truncate,
        /// Replace an existing table by a new one when that is complete.
        Replace,
        /// Update the rows of an existing table that have the same --key, and insert the others. Not available
        /// for CrateDB.
        Upsert,
        /// Insert the rows whose --key an existing table lacks; its own rows stay. Not available for CrateDB.
        Insert as Upsert,
        /// Keep all versions of a row. If a row with a known --key has other values, Sawmill sets valid_to of the current
        /// version and inserts the row as the new one. Creates a missing table. Not available for CrateDB.
        History as Upsert,
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degree_is_a_number_or_a_fraction_of_the_cores() {
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(degree("3").unwrap().get(), 3);
        assert_eq!(degree("-1").unwrap().get(), cores);
        assert_eq!(degree("-100000").unwrap().get(), 1);
        assert!(degree("0").is_err() && degree("two").is_err() && degree("").is_err());
    }
}
