//! How to load values and rows that the database does not accept as they are.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sawmill_cratedb::Timestamps;
use sawmill_loader::RejectOptions;
use sawmill_pgcopy::{Enums, Nanoseconds, Nul, ValueOptions, Zone};

use crate::arguments::target::Destination;
use crate::error::Error;

/// How to load timestamps with a finer unit than the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimestampsArg {
    /// Treat a value that is not a whole microsecond (CrateDB: millisecond) as an error.
    Error,
    /// Cut off the finer digits.
    Truncate,
    /// CrateDB: TEXT in ISO 8601.
    Text,
    /// CrateDB: BIGINT in the file's unit.
    Bigint,
}

/// How to load text that contains 0x00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NulArg {
    /// Treat it as an error.
    Error,
    /// Remove 0x00.
    Strip,
}

/// The type for columns of a few repeated values in a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EnumsArg {
    /// The type text.
    Text,
    /// An enum type, created with the table as TABLE_COLUMN. The column is read for its values before the
    /// load.
    Enum,
}

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
    #[arg(long, value_name = "ZONE")]
    timezone: Option<Zone>,
}

/// How to treat rows that cannot be loaded.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct RejectArgs {
    /// Write rows that cannot be loaded to this file, with their place and the reason, and load the others.
    ///
    /// The name says which: FILE.csv takes the raw lines of text that cannot be read (for PostgreSQL also
    /// FILE.ndjson); FILE.parquet takes the rows that PostgreSQL refuses, with the columns of the source, and
    /// FILE.ndjson those that CrateDB refuses. For both, give the option twice.
    /// With staged partitions, a primary key needs --key-after. With --nested tables, only lines of text that
    /// cannot be read are left out.
    #[arg(long, value_name = "FILE")]
    rejects: Vec<PathBuf>,
    /// Fail the load when it rejects more rows than this [default: no limit; 100000 lines of text].
    #[arg(long, value_name = "N", requires = "rejects")]
    max_rejects: Option<u64>,
}

impl ValueArgs {
    /// The destination with these conversions.
    pub(crate) fn of(&self, destination: Destination) -> Result<Destination, Error> {
        Ok(match destination {
            Destination::Postgres(postgres) => {
                let nanoseconds = match self.timestamps {
                    None | Some(TimestampsArg::Error) => Nanoseconds::Error,
                    Some(TimestampsArg::Truncate) => Nanoseconds::Truncate,
                    Some(TimestampsArg::Text | TimestampsArg::Bigint) => {
                        let advice = "give error or truncate";
                        return Err(Error::usage(
                            "text and bigint are available for CrateDB only",
                            "--timestamps",
                            advice,
                        ));
                    }
                };
                let nul = match self.nul {
                    None | Some(NulArg::Error) => Nul::Error,
                    Some(NulArg::Strip) => Nul::Strip,
                };
                let enums = match self.enums {
                    None | Some(EnumsArg::Text) => Enums::Text,
                    Some(EnumsArg::Enum) => Enums::Enum,
                };
                let values = ValueOptions { nanoseconds, nul, enums, timezone: self.timezone };
                Destination::Postgres(Box::new(postgres.values(values)))
            }
            Destination::CrateDb(crate_db) => {
                let refused = [
                    (self.nul.is_some(), "--nul", "CrateDB stores 0x00 as it is"),
                    (self.enums.is_some(), "--enums", "CrateDB has no enumerations"),
                    (self.timezone.is_some(), "--timezone", "CrateDB stores timestamps as they are"),
                ];
                if let Some((_, option, what)) = refused.into_iter().find(|(is_given, ..)| *is_given) {
                    return Err(Error::usage(what, option, "leave the option out, or load PostgreSQL"));
                }
                let timestamps = match self.timestamps {
                    None | Some(TimestampsArg::Error) => Timestamps::Error,
                    Some(TimestampsArg::Truncate) => Timestamps::Truncate,
                    Some(TimestampsArg::Text) => Timestamps::Text,
                    Some(TimestampsArg::Bigint) => Timestamps::Bigint,
                };
                Destination::CrateDb(Box::new(crate_db.timestamps(timestamps)))
            }
        })
    }
}

impl RejectArgs {
    /// The files, and the most rows that each takes.
    pub(crate) fn files(&self) -> (&[PathBuf], Option<u64>) {
        (&self.rejects, self.max_rejects)
    }

    /// The destination with `file` for rejected rows.
    pub(crate) fn of(&self, destination: Destination, file: Option<&Path>) -> Result<Destination, Error> {
        let rejects = file.map(|path| RejectOptions { path: path.to_owned(), most: self.max_rejects });
        Ok(match destination {
            Destination::Postgres(postgres) => {
                check_extension(file, "PostgreSQL", "Parquet", &["parquet", "pq"])?;
                Destination::Postgres(Box::new(postgres.rejects(rejects)))
            }
            Destination::CrateDb(crate_db) => {
                check_extension(file, "CrateDB", "NDJSON", &["ndjson", "jsonl"])?;
                Destination::CrateDb(Box::new(crate_db.rejects(rejects)))
            }
        })
    }
}

/// Rejects an extension that promises another format; a name without one promises none.
fn check_extension(
    file: Option<&Path>,
    database: &str,
    format: &str,
    extensions: &[&str],
) -> Result<(), Error> {
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
