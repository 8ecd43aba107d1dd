//! What happens to the table of a load.

use serde::Serialize;

/// What happens to the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The table must not exist. Rows gather in a table of another name in the same schema, which gets
    /// its final name in the moment it is complete: nobody sees a half-filled table.
    #[default]
    Create,
    /// The table exists; columns are matched by name. Rows are seen as their units are committed.
    Append,
    /// The table exists and keeps its definition; what it holds is removed when the load begins. Columns are
    /// matched by name. Rows are seen as their units are committed. PostgreSQL alone.
    Truncate,
    /// A new table is filled out of sight and then put in the place of the one that exists, if any, in one
    /// step.
    Replace,
    /// The table exists, with a unique key. Rows gather in a table out of sight; in one step those whose key is
    /// there take the place of the old values of their columns, and the others are added. PostgreSQL alone.
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

    /// Whether rows gather in a table out of sight; otherwise they go into the one that is there.
    pub fn gathers(self) -> bool {
        matches!(self, Self::Create | Self::Replace | Self::Upsert)
    }

    /// Whether the table that gathers takes the name in the end, so that its columns are the source's.
    pub fn makes_the_table(self) -> bool {
        matches!(self, Self::Create | Self::Replace)
    }
}
