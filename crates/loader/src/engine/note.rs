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
