//! Rows that cannot be loaded, where they do not end the load.

use std::path::PathBuf;

/// Where rows go that cannot be loaded, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectOptions {
    /// The Parquet file that they are written to.
    pub path: PathBuf,
    /// The load ends when there are more than this; `None` for any number.
    pub most: Option<u64>,
}
