//! The mode of a load: how it changes its table.

use serde::Serialize;

/// How a load treats its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The table must not exist. Rows go to a staging table in the same schema, which takes the final name
    /// once it is complete: no client ever sees a partly filled table.
    #[default]
    Create,
    /// The table exists; columns are matched by name. Rows become visible as their units are committed.
    Append,
    /// The table exists and keeps its definition; the load removes its rows first. Columns are
    /// matched by name. Rows become visible as their units are committed. PostgreSQL only.
    Truncate,
    /// The load fills a staging table, which then replaces the existing table, if any, in one step.
    Replace,
    /// The table exists and has a unique key. Rows go to a staging table; then, in one step, rows with an
    /// existing key overwrite the columns of the old row, and the others are added. PostgreSQL only.
    Upsert,
}

impl Mode {
    /// Its name in options and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Append => "append",
            Self::Truncate => "truncate",
            Self::Replace => "replace",
            Self::Upsert => "upsert",
        }
    }

    /// Whether rows go to a staging table first; otherwise they go directly into the existing table.
    pub fn gathers(self) -> bool {
        matches!(self, Self::Create | Self::Replace | Self::Upsert)
    }

    /// Whether the staging table takes the final name, so that the table's columns are the source's.
    pub fn makes_the_table(self) -> bool {
        matches!(self, Self::Create | Self::Replace)
    }
}
