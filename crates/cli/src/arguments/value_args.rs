//! How to load values and rows that the database does not accept as they are.

use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_cratedb::Timestamps;
use sawmill_pgcopy::{Enums, Nanoseconds, Nul, ValueOptions, Zone};

use crate::arguments::target::Destination;
use crate::arguments::words::words;
use crate::error::{Error, Result};

words!(
    /// How to load timestamps with a finer unit than the database's.
    TimestampsArg => Timestamps {
        /// Treat a value that is not a whole microsecond (CrateDB: millisecond) as an error.
        Error,
        /// Cut off the finer digits.
        Truncate,
        /// CrateDB: TEXT in ISO 8601.
        Text,
        /// CrateDB: BIGINT in the file's unit.
        Bigint,
    }
);
words!(
    /// How to load text that contains 0x00.
    NulArg => Nul {
        /// Treat it as an error.
        Error,
        /// Remove 0x00.
        Strip,
    }
);
words!(
    /// The type for columns of a few repeated values in a new table.
    EnumsArg => Enums {
        /// The type text.
        Text,
        /// An enum type, created with the table as TABLE_COLUMN. The column is read for its values before the
        /// load.
        Enum,
    }
);

/// How to load values.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueArgs {
    /// How to load timestamps with a finer unit than the database's [default: error].
    #[arg(long, value_enum)]
    timestamps: Option<TimestampsArg>,
    /// How to load text that contains 0x00, which PostgreSQL cannot store [default: error].
    #[arg(long, value_enum)]
    nul: Option<NulArg>,
    /// The type for columns annotated as ENUM and for Arrow dictionaries of strings, in a new table of
    /// PostgreSQL [default: text].
    #[arg(long, value_enum)]
    enums: Option<EnumsArg>,
    /// Load timestamps without a zone into columns with one as local times of this zone, and the reverse: Europe/Vienna,
    /// +02:00 or UTC. PostgreSQL only.
    ///
    /// As in PostgreSQL, a time that a change of the clocks repeats is the second one, and one that it skips has the
    /// offset before.
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    timezone: Option<Zone>,
}

/// How to treat rows that cannot be loaded.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct RejectArgs {
    /// Write rows that cannot be loaded to this file, with their place and the reason, and load the others.
    ///
    /// The extension says which. FILE.csv takes the raw lines of unreadable text, for PostgreSQL also FILE.ndjson.
    /// FILE.parquet takes the rows that PostgreSQL refuses, with the columns of the source. FILE.ndjson takes the
    /// rows that CrateDB refuses. For both, give the option twice.
    /// With staged partitions, a primary key needs --key-after. With --nested tables, only lines of text that
    /// cannot be read are left out.
    #[arg(long, value_name = "FILE")]
    pub rejects: Vec<PathBuf>,
    /// Fail the load when it rejects more rows than this [default: no limit; 100000 lines of text].
    #[arg(long, value_name = "N", requires = "rejects")]
    pub max_rejects: Option<u64>,
}

impl ValueArgs {
    /// The destination with these conversions.
    pub(crate) fn apply(&self, destination: Destination) -> Result<Destination> {
        let refused = |what: &str, option: &str, advice: &str| Err(Error::usage(what, option, advice));
        let other = "leave the option out, or load PostgreSQL";
        let nanoseconds = match (&destination, self.timestamps) {
            (Destination::CrateDb(_), _) if self.nul.is_some() => {
                return refused("CrateDB stores 0x00 as it is", "--nul", other);
            }
            (Destination::CrateDb(_), _) if self.enums.is_some() => {
                return refused("CrateDB has no enumerations", "--enums", other);
            }
            (Destination::CrateDb(_), _) if self.timezone.is_some() => {
                return refused("CrateDB stores timestamps as they are", "--timezone", other);
            }
            (Destination::Postgres(_), Some(TimestampsArg::Text | TimestampsArg::Bigint)) => {
                let what = "text and bigint are available for CrateDB only";
                return refused(what, "--timestamps", "give error or truncate");
            }
            (_, Some(TimestampsArg::Truncate)) => Nanoseconds::Truncate,
            _ => Nanoseconds::Error,
        };
        let nul = self.nul.map(Into::into).unwrap_or_default();
        let enums = self.enums.map(Into::into).unwrap_or_default();
        let timestamps = self.timestamps.map(Into::into).unwrap_or_default();
        let values = ValueOptions { nanoseconds, nul, enums, timezone: self.timezone };
        Ok(destination.with(
            |postgres| postgres.values(values),
            |crate_db| crate_db.with(|options| options.timestamps = timestamps),
        ))
    }
}

impl RejectArgs {
    /// The destination with `file` for rejected rows.
    pub(crate) fn apply(&self, destination: Destination, file: Option<&Path>) -> Result<Destination> {
        let (database, format, extensions) = match destination {
            Destination::Postgres(_) => ("PostgreSQL", "Parquet", ["parquet", "pq"]),
            Destination::CrateDb(_) => ("CrateDB", "NDJSON", ["ndjson", "jsonl"]),
        };
        check_extension(file, database, format, &extensions)?;
        Ok(destination.rejects(file, self.max_rejects))
    }
}

/// Rejects an extension that promises another format; a name without one promises none.
fn check_extension(file: Option<&Path>, database: &str, format: &str, extensions: &[&str]) -> Result<()> {
    let Some(path) = file else { return Ok(()) };
    let Some(extension) = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()) else {
        return Ok(());
    };
    if extensions.contains(&extension.as_str()) {
        return Ok(());
    }
    let what = format!("rows that {database} rejects are written as {format}, not .{extension}");
    let named = path.with_extension(extensions.first().copied().unwrap_or_default());
    Err(Error::usage(what, "--rejects", format!("name the file {}", named.display())))
}
