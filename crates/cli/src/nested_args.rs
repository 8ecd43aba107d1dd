//! What becomes of lists, structs and maps in PostgreSQL.

use clap::{Args, ValueEnum};
use sawmill_loader::Nested;

/// The layout of nested columns.
#[derive(Args, Debug, Default)]
pub(crate) struct NestedArgs {
    /// What becomes of lists, structs and maps in a new table of PostgreSQL; in one that exists its columns
    /// decide.
    #[arg(long, value_enum, default_value = "jsonb")]
    pub nested: NestedArg,
}

/// What becomes of lists, structs and maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NestedArg {
    /// One jsonb value a column.
    #[default]
    Jsonb,
    /// Arrays, and composite types that are made with the table: TABLE_COLUMN.
    Native,
}

impl From<NestedArg> for Nested {
    fn from(nested: NestedArg) -> Self {
        match nested {
            NestedArg::Jsonb => Nested::Jsonb,
            NestedArg::Native => Nested::Native,
        }
    }
}
