//! What becomes of lists, structs and maps in PostgreSQL.

use clap::{Args, ValueEnum};
use sawmill_postgres::{Nested, PostgresTables};
use sawmill_source::Source;

use crate::arguments::target::Destination;
use crate::error::Error;

/// The layout of nested columns.
#[derive(Args, Debug, Default)]
pub(crate) struct NestedArgs {
    /// What becomes of lists, structs and maps in a new table of PostgreSQL; in one that exists its columns
    /// decide.
    #[arg(long, value_enum, default_value = "jsonb")]
    nested: NestedArg,
    /// Give each of the tables a primary key, and those of lists foreign keys, when all are complete.
    #[arg(long)]
    foreign_keys: bool,
}

/// What becomes of lists, structs and maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum NestedArg {
    /// One jsonb value a column.
    #[default]
    Jsonb,
    /// Arrays, and composite types that are made with the table: TABLE_COLUMN.
    Native,
    /// A table for each list, TABLE_COLUMN, with the number of the row and the place in the list; structs
    /// become columns.
    Tables,
}

impl NestedArgs {
    /// Whether nested values become tables of their own.
    pub(crate) fn makes_tables(&self) -> bool {
        self.nested == NestedArg::Tables
    }

    /// The layout of nested values in one table.
    pub(crate) fn layout(&self) -> Result<Nested, Error> {
        if self.foreign_keys && !self.makes_tables() {
            return Err(Error::usage(
                "foreign keys without several tables",
                "--foreign-keys",
                "add --nested tables",
            ));
        }
        Ok(match self.nested {
            NestedArg::Native => Nested::Native,
            NestedArg::Jsonb | NestedArg::Tables => Nested::Jsonb,
        })
    }

    /// The target with this layout.
    pub(crate) fn apply(&self, target: Destination) -> Result<Destination, Error> {
        let layout = self.layout()?;
        match (target, self.nested) {
            (Destination::Postgres(postgres), _) => {
                Ok(Destination::Postgres(Box::new(postgres.nested(layout))))
            }
            (other, NestedArg::Jsonb) => Ok(other),
            (Destination::CrateDb(_), _) => Err(Error::usage(
                "another layout of nested columns than CrateDB's arrays and objects",
                "--nested",
                "leave it out",
            )),
        }
    }

    /// The tables that are meant, where nested columns become such.
    pub(crate) fn tables<'a>(
        &self,
        target: &Destination,
        source: &'a dyn Source,
    ) -> Result<Option<PostgresTables<'a>>, Error> {
        match (target, self.nested) {
            (Destination::Postgres(postgres), NestedArg::Tables) => {
                Ok(Some(PostgresTables::new(source, postgres.as_ref().clone(), self.foreign_keys)?))
            }
            _ => Ok(None),
        }
    }
}
