//! Remarks on a load.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// A remark on a load for the user. It displays and serializes as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Rows were rejected: where they are.
    Rejected(String),
    /// What a verification did not compare, and why.
    Unverified(String),
    /// Files with rejected rows, which were therefore not compared.
    BesideRejected(String),
    /// The table has other rows than the records say, and was not compared; the files match the records.
    OtherRows(String),
    /// A column of the table is not the one that earlier loads filled, and was not compared.
    MovedColumn(String),
    /// What this run loaded was verified, but not the rows of earlier runs.
    PartlyVerified(String),
    /// The table has fewer rows than the records say, and the load went on.
    Missing(String),
    /// The route that rows take into a partitioned table, and why.
    Route(String),
    /// Any other remark.
    Remark(String),
}

/// Why the table was not compared, although the files were compared with the records of their loads.
impl Note {
    /// Its columns have changed between loads.
    pub fn other_columns() -> Self {
        let what = "whose columns have changed since (sawmill verify compares whole tables)";
        Self::Unverified(format!("{FILES_ALONE}, {what}"))
    }

    /// This column is another one than its loads have filled.
    pub fn moved_column(name: &str) -> Self {
        Self::MovedColumn(format!(
            "not verified: column {name:?} of the table is another one than earlier loads filled (dropped or renamed, and added \
             again); sawmill verify shows whether it has the files' values; --mode replace loads everything from the beginning"
        ))
    }

    /// It lacks these columns of the files.
    pub fn left_out(columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        Self::Unverified(format!(
            "not verified: the table lacks {columns} of the files, which earlier loads left out; --mode replace loads \
             everything from the beginning"
        ))
    }

    /// Its rows are not those on record.
    pub fn other_rows() -> Self {
        Self::OtherRows(format!("{FILES_ALONE}, which has other rows than those on record"))
    }

    /// Its rows could not be counted.
    pub fn uncounted() -> Self {
        Self::Unverified(format!("{FILES_ALONE}, of which this user may not read all rows"))
    }
}

/// What a comparison with the records leaves open.
const FILES_ALONE: &str =
    "not verified: the files were compared with the records of their loads, but not with the table";

impl Deref for Note {
    type Target = str;

    fn deref(&self) -> &str {
        let (Self::Rejected(text)
        | Self::Unverified(text)
        | Self::BesideRejected(text)
        | Self::OtherRows(text)
        | Self::MovedColumn(text)
        | Self::PartlyVerified(text)
        | Self::Missing(text)
        | Self::Route(text)
        | Self::Remark(text)) = self;
        text
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Remark(text)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}
