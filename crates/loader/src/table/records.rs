//! What is on record of the loads into a table, and what is left of them when they are taken back.

use serde::Serialize;

/// One load, as its records in the target say.
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
    /// When it was complete; none as long as rows are missing.
    pub completed: Option<String>,
    /// Units that are in.
    pub units: u64,
    /// Rows that are in.
    pub rows: u64,
    /// Whether somebody is at it now.
    pub running: bool,
    /// What it is recorded by.
    pub load_id: String,
}

/// A file of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStatus {
    /// Its name.
    pub name: String,
    /// Rows of it that are in.
    pub rows: u64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Records of loads into the table.
    pub loads: u64,
    /// The unfinished table of a load in mode create.
    pub staging_dropped: bool,
    /// The table itself.
    pub table_dropped: bool,
}
