//! The arguments that say what becomes of values and rows that the database does not take as they are.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sawmill_cratedb::Timestamps;
use sawmill_loader::RejectOptions;
use sawmill_pgcopy::{Enums, Nanoseconds, Nul, ValueOptions};

use crate::arguments::target::Destination;
use crate::error::Error;

/// What timestamps finer than the database's become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimestampsArg {
    /// A value that is no whole microsecond (CrateDB: millisecond) is an error.
    Error,
    /// What is finer is cut.
    Truncate,
    /// CrateDB: TEXT in ISO 8601.
    Text,
    /// CrateDB: BIGINT of the file's units.
    Bigint,
}

/// What text with 0x00 becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NulArg {
    /// It is an error.
    Error,
    /// The 0x00 is left out.
    Strip,
}

/// What columns of a few values that come again and again become in a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EnumsArg {
    /// text.
    Text,
    /// A type of the column's values, made with the table as TABLE_COLUMN; the column is read for it before the load.
    Enum,
}

/// How values are taken.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueArgs {
    /// What timestamps become that are finer than the database's [default: error].
    #[arg(long, value_enum)]
    timestamps: Option<TimestampsArg>,
    /// What text with 0x00 becomes, which PostgreSQL cannot store [default: error].
    #[arg(long, value_enum)]
    nul: Option<NulArg>,
    /// What columns annotated as ENUM, and Arrow dictionaries of strings, become in a new table of PostgreSQL
    /// [default: text].
    #[arg(long, value_enum)]
    enums: Option<EnumsArg>,
}

/// What happens to rows that cannot be loaded.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Values")]
pub(crate) struct RejectArgs {
    /// Put rows that cannot be loaded aside in this file, with their place and the reason, and load the others:
    /// Parquet with the columns of the source, for CrateDB NDJSON. With --nested tables these are whole records,
    /// of which some row cannot be loaded into its table. Over staged partitions a primary key needs --key-after then.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// End the load when more rows than this cannot be loaded [default: any number may be].
    #[arg(long, value_name = "N", requires = "rejects")]
    max_rejects: Option<u64>,
}

impl ValueArgs {
    /// The destination with these rules.
    pub(crate) fn of(&self, destination: Destination) -> Result<Destination, Error> {
        Ok(match destination {
            Destination::Postgres(postgres) => {
                let nanoseconds = match self.timestamps {
                    None | Some(TimestampsArg::Error) => Nanoseconds::Error,
                    Some(TimestampsArg::Truncate) => Nanoseconds::Truncate,
                    Some(TimestampsArg::Text | TimestampsArg::Bigint) => {
                        let advice = "give error or truncate";
                        return Err(Error::usage("this is for CrateDB", "--timestamps", advice));
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
                Destination::Postgres(Box::new(postgres.values(ValueOptions { nanoseconds, nul, enums })))
            }
            Destination::CrateDb(_) if self.nul.is_some() => {
                return Err(Error::usage(
                    "CrateDB stores 0x00 as it is",
                    "--nul",
                    "leave the option out, or load PostgreSQL",
                ));
            }
            Destination::CrateDb(_) if self.enums.is_some() => {
                let advice = "leave the option out, or load PostgreSQL";
                return Err(Error::usage("CrateDB has no enumerations", "--enums", advice));
            }
            Destination::CrateDb(crate_db) => {
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
    /// The destination, with a place for rows that it does not take.
    pub(crate) fn of(&self, destination: Destination) -> Destination {
        let rejects = self.rejects.clone().map(|path| RejectOptions { path, most: self.max_rejects });
        match destination {
            Destination::Postgres(postgres) => Destination::Postgres(Box::new(postgres.rejects(rejects))),
            Destination::CrateDb(crate_db) => Destination::CrateDb(Box::new(crate_db.rejects(rejects))),
        }
    }
}
