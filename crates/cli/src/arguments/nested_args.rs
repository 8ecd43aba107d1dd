//! How lists, structs and maps are stored in PostgreSQL.

use clap::Args;
use sawmill_postgres::{Nested, PostgresTables};
use sawmill_source::Source;

use crate::arguments::target::Destination;
use crate::arguments::words::words;
use crate::error::{Error, Result};

/// The layout of nested columns.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Nested columns")]
pub(crate) struct NestedArgs {
    /// How a new table of PostgreSQL stores lists, structs and maps. In an existing table its columns decide.
    #[arg(long, value_enum, default_value = "jsonb")]
    nested: NestedArg,
    /// Give each table a primary key, and tables of lists a foreign key, once all tables are complete.
    #[arg(long)]
    foreign_keys: bool,
}

words!(
    /// How lists, structs and maps are stored.
    #[derive(Default)]
    NestedArg => Nested {
        /// One jsonb column for each nested column.
        #[default]
        Jsonb,
        /// Arrays and composite types; the types are created with the table, as TABLE_COLUMN.
        Native,
        /// A table for each list, TABLE_COLUMN, with the row's number and the position in the list; structs
        /// become columns.
        Tables as Jsonb,
    }
);

impl NestedArgs {
    /// Whether lists become tables of their own.
    pub(crate) fn makes_tables(&self) -> bool {
        self.nested == NestedArg::Tables
    }

    /// The layout of nested values in one table.
    pub(crate) fn layout(&self) -> Result<Nested> {
        if self.foreign_keys && !self.makes_tables() {
            let advice = "add --nested tables";
            return Err(Error::usage("--foreign-keys without --nested tables", "--foreign-keys", advice));
        }
        Ok(self.nested.into())
    }

    /// The target with this layout.
    pub(crate) fn apply(&self, target: Destination) -> Result<Destination> {
        let layout = self.layout()?;
        if matches!(target, Destination::CrateDb(_)) && self.nested != NestedArg::Jsonb {
            let what = "CrateDB stores nested columns as arrays and objects only";
            return Err(Error::usage(what, "--nested", "leave it out"));
        }
        Ok(target.with_postgres(|postgres| postgres.nested(layout)))
    }

    /// The tables of the load, if lists become tables.
    pub(crate) fn tables<'a>(
        &self,
        target: &Destination,
        source: &'a dyn Source,
    ) -> Result<Option<PostgresTables<'a>>> {
        match (target, self.nested) {
            (Destination::Postgres(postgres), NestedArg::Tables) => {
                Ok(Some(PostgresTables::new(source, postgres.as_ref().clone(), self.foreign_keys)?))
            }
            _ => Ok(None),
        }
    }
}
