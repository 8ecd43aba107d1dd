//! Records of the loads into a table, and what forgetting them removes.

use serde::Serialize;

/// A load according to the target's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadStatus {
    /// The table, with its schema.
    pub table: String,
    /// The mode: create, append, truncate, replace or upsert.
    pub mode: String,
    /// The files, in order.
    pub files: Vec<FileStatus>,
    /// When it began, UTC, RFC 3339.
    pub begun: String,
    /// When it was completed; `None` while rows are missing.
    pub completed: Option<String>,
    /// Committed units.
    pub units: u64,
    /// Committed rows.
    pub rows: u64,
    /// Batches that an audit counted in the table when the load was completed; `None` where rows are not
    /// accounted for by batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audited_batches: Option<u64>,
    /// Whether a process is working on it now.
    pub running: bool,
    /// Its identifier in the records.
    pub load_id: String,
}

/// A file of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStatus {
    /// Its name.
    pub name: String,
    /// Its committed rows.
    pub rows: u64,
}

/// What forgetting a load removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Records of loads into the table.
    pub loads: u64,
    /// The unfinished table of a load in mode create.
    pub staging_dropped: bool,
    /// The table itself.
    pub table_dropped: bool,
}
