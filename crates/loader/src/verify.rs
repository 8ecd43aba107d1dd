//! The comparison of what was loaded with what is in the target.

use serde::Serialize;

use crate::content_sum::Tally;
use crate::error::{Error, Kind, Result};

/// Both sides of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Names of the compared columns, in the order of the tallies' counts.
    pub columns: Vec<String>,
    /// What the source holds.
    pub source: Tally,
    /// What the target holds.
    pub target: Tally,
    /// Columns whose values differ; empty when all agree, and when they were not looked at one by one.
    pub differing: Vec<String>,
}

impl Verification {
    /// Whether rows, sums and counts agree.
    pub fn matches(&self) -> bool {
        self.source == self.target
    }

    /// The difference as an error, with the columns by name.
    pub(crate) fn into_result(self, table: &str) -> Result<Self> {
        if self.matches() {
            return Ok(self);
        }
        let mut what = String::from("the table does not hold what the files hold");
        if self.source.rows != self.target.rows {
            what += &format!(": {} rows instead of {}", self.target.rows, self.source.rows);
        }
        let counts = self.source.non_null.iter().zip(&self.target.non_null);
        for (name, (source, target)) in self.columns.iter().zip(counts) {
            if source != target {
                what += &format!("; column {name:?}: {target} values instead of {source}");
            }
        }
        if !self.differing.is_empty() {
            what += &format!("; values differ in {}", self.differing.join(", "));
        }
        if self.source.rows == self.target.rows && self.source.content_sum != self.target.content_sum {
            what +=
                &format!("; content sum {} instead of {}", self.target.content_sum, self.source.content_sum);
        }
        Err(Error::new(Kind::Mismatch, what)
            .at(table)
            .advise("somebody else wrote to the table, or a trigger changed rows; load it again"))
    }
}
