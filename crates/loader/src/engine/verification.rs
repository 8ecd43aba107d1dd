//! Compares the loaded rows with the target's content.

use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result};
use serde::Serialize;

use crate::engine::content_sum::Tally;

/// Where the two sides of a verification differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Located {
    /// Units of the source with rows that the target lacks.
    pub units: Vec<LocatedUnit>,
    /// Rows of the target that are not in the source.
    pub rows_of_none: u64,
}

/// A unit with rows that the target lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocatedUnit {
    /// The file's name.
    pub file: String,
    /// The row group in the file.
    pub row_group: u32,
    /// The first row, counted from 0 in the row group.
    pub first_row: u64,
    /// The last row, counted likewise.
    pub last_row: u64,
    /// How many of its rows the target lacks.
    pub missing: u64,
    /// The first of them, counted from 0 in the row group.
    pub first_missing: Vec<u64>,
}

impl std::fmt::Display for LocatedUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, row_group, first_row, last_row, missing, first_missing } = self;
        let rows: Vec<String> = first_missing.iter().map(u64::to_string).collect();
        let more = if (rows.len() as u64) < *missing { " and more" } else { "" };
        write!(
            f,
            "{file}, row group {row_group}, rows {first_row} to {last_row}: {missing} not in the table ({}{more})",
            rows.join(", ")
        )
    }
}

/// Both sides of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Names of the compared columns, in the order of the totals' counts.
    pub columns: Vec<String>,
    /// The source's rows, without rejected ones.
    pub source: Tally,
    /// The target's rows.
    pub target: Tally,
    /// Rejected rows of the source, if the comparison leaves them out.
    #[serde(rename = "put_aside", skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Other rows of the target: they were there before the source's rows, or came later, and were not compared with
    /// the source.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_of_others: u64,
    /// Columns of the target that the source lacks; the comparison does not cover them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// Columns whose values differ; empty if all agree, or if columns were not compared one by one.
    pub differing: Vec<String>,
    /// Where the sides differ, if they do and the caller asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub located: Option<Located>,
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

impl Verification {
    /// The comparison of two sums over these columns.
    pub fn new(columns: Vec<String>, source: Tally, target: Tally) -> Self {
        Self { columns, source, target, ..Self::default() }
    }

    /// Adds the later verification of further rows of the same table, among whose other rows are these.
    pub(crate) fn add(&mut self, other: Self) {
        self.rows_of_others = other.rows_of_others.saturating_sub(self.target.rows);
        self.source.add(&other.source);
        self.target.add(&other.target);
        self.rejected += other.rejected;
        self.differing.extend(other.differing);
    }

    /// Whether rows, sums and counts agree.
    pub fn matches(&self) -> bool {
        self.source == self.target
    }

    /// Returns the difference as an error that names the columns.
    pub fn into_result(self, table: &str) -> Result<Self> {
        if self.matches() {
            return Ok(self);
        }
        let mut what = String::from("the table does not hold what the files hold");
        if self.source.rows != self.target.rows {
            what += &format!(": {} instead of {}", format_counted(self.target.rows, "row"), self.source.rows);
        }
        let counts = self.source.non_null.iter().zip(&self.target.non_null);
        for (name, (source, target)) in self.columns.iter().zip(counts) {
            if source != target {
                what +=
                    &format!("; column {name:?}: {} instead of {source}", format_counted(*target, "value"));
            }
        }
        if !self.differing.is_empty() {
            what += &format!("; values differ in {}", self.differing.join(", "));
        }
        if self.source.rows == self.target.rows && self.source.content_sum != self.target.content_sum {
            what +=
                &format!("; content sum {} instead of {}", self.target.content_sum, self.source.content_sum);
        }
        if let Some(Located { units, rows_of_none }) = &self.located {
            const NAMED: usize = 20;
            for unit in units.iter().take(NAMED) {
                what += &format!("; {unit}");
            }
            if units.len() > NAMED {
                what += &format!("; and {}", format_counted((units.len() - NAMED) as u64, "more unit"));
            }
            if *rows_of_none > 0 {
                what +=
                    &format!("; the table has {} that the files lack", format_counted(*rows_of_none, "row"));
            }
        }
        Err(Error::new(Kind::Mismatch, what)
            .at(table)
            .advise("another client wrote to the table, or a trigger changed rows: --locate shows where (sawmill verify); --mode \
                     replace loads it from the beginning"))
    }
}
