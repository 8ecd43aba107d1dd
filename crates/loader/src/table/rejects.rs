//! Rejected rows that do not end the load.

use std::path::PathBuf;

/// Where rejected rows go, and how many a load tolerates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectOptions {
    /// The Parquet file that they are written to.
    pub path: PathBuf,
    /// The load fails if there are more rejected rows than this; `None` for no limit.
    pub most: Option<u64>,
}
