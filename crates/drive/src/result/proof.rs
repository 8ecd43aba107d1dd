//! The result of looking for the rows that the run wrote.

use sawmill_profile::format_grouped;
use serde::{Deserialize, Serialize};

use crate::work::target::TextRows;

/// Maximum number of examples of wrong rows.
pub(crate) const EXAMPLES: usize = 10;

/// The rows of one table after the run, compared with what the server acknowledged; or a check of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The table, or the name of the check.
    pub table: String,
    /// This is a check of the plan: a statement that should return no rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
    /// Rows that the check returned.
    pub broken: u64,
    /// Rows that the run tried to write.
    pub written: u64,
    /// Rows whose write (and not later deletion) the server acknowledged.
    pub acknowledged: u64,
    /// Acknowledged rows that were found with the right values.
    pub found: u64,
    /// Acknowledged rows that were not found.
    pub lost: u64,
    /// Rows that were found with other values than the generator makes.
    pub different: u64,
    /// Rows whose write had no effect: the server refused it, its transaction was not committed, or it was not sent.
    pub failed: u64,
    /// Failed or deleted rows that were found nevertheless.
    pub failed_but_found: u64,
    /// Rows whose outcome is unknown: the connection was lost or the time ran out after the statement was sent.
    pub unknown: u64,
    /// Unknown rows that were found, with the right values.
    pub unknown_found: u64,
    /// Rows that were found and that the run never wrote.
    pub foreign: u64,
    /// Rows that were found more than once.
    pub doubled: u64,
    /// Updates that the server acknowledged.
    pub updates: u64,
    /// Acknowledged updates that are missing from their rows.
    pub lost_updates: u64,
    /// Updates that rows have although they were never sent.
    pub unsent_updates: u64,
    /// Reads of single rows during the run that did not show what was acknowledged before they began.
    #[serde(default)]
    pub wrong_reads: u64,
    /// Rows whose values were not compared, because custom statements have written them, or may have.
    pub not_checked: u64,
    /// The first operation whose statement writes the table and does not say what (`writes`).
    pub undeclared: Option<String>,
    /// Whether the table was replaced: someone dropped it during the run, and made another of the same name. Only
    /// PostgreSQL shows that.
    pub replaced: bool,
    /// Why the run could not look for the rows, such as a server that is gone. The counts then cover only the parts of
    /// the run that did look.
    pub unchecked: Option<String>,
    /// Examples of lost, different or unexpected rows, by number; at most ten.
    pub examples: Vec<String>,
    /// Rows that were read back for this.
    pub read_back: u64,
}

impl Proof {
    /// Whether every acknowledged row was found exactly once with its values, and only unknown rows besides.
    pub fn holds(&self) -> bool {
        self.unchecked.is_none() && self.violations().is_empty()
    }

    /// The subject: `table orders`, `check "balances"`.
    pub fn place(&self) -> String {
        if self.check { format!("check {:?}", self.table) } else { format!("table {}", self.table) }
    }

    /// The result of a check of the plan: the rows that its statement returned, or why there are none.
    pub(crate) fn of_check(name: &str, rows: sawmill_source::Result<TextRows>) -> Self {
        let check = Self { table: name.to_owned(), check: true, ..Self::default() };
        let shown = |row: &Vec<Option<String>>| {
            let fields = row.iter().map(|field| field.as_deref().unwrap_or("NULL"));
            format!("returns {}", fields.collect::<Vec<_>>().join(", "))
        };
        match rows {
            Ok(rows) => Self {
                broken: rows.len() as u64,
                examples: rows.iter().take(EXAMPLES).map(shown).collect(),
                ..check
            },
            Err(error) => Self { unchecked: Some(error.to_string()), ..check },
        }
    }

    /// Adds the findings of another part of the run about its rows.
    pub(crate) fn add(&mut self, one: &Self) {
        macro_rules! sums {
            ($($count:ident),*) => { $(self.$count += one.$count;)* };
        }
        sums!(broken, written, acknowledged, found, lost, different, failed, failed_but_found, unknown);
        sums!(unknown_found, foreign, doubled, updates, lost_updates, unsent_updates, wrong_reads);
        sums!(not_checked, read_back);
        self.undeclared = self.undeclared.take().or_else(|| one.undeclared.clone());
        self.replaced |= one.replaced;
        self.unchecked = self.unchecked.take().or_else(|| one.unchecked.clone());
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(one.examples.iter().take(room).cloned());
    }

    /// The violations in words: `3 acknowledged rows are lost`.
    pub fn violations(&self) -> Vec<String> {
        let all = [
            (self.broken, "rows are not as the check says"),
            (self.lost, "acknowledged rows are lost"),
            (self.lost_updates, "acknowledged updates are lost"),
            (self.unsent_updates, "updates are there without being sent"),
            (self.wrong_reads, "reads are not of what was acknowledged"),
            (self.different, "rows are there with other values"),
            (self.failed_but_found, "rows are there that the server refused or deleted"),
            (self.doubled, "rows are there more than once"),
            (self.foreign, "rows are there that this run did not write"),
        ];
        let found = all.into_iter().filter(|(rows, _)| *rows > 0);
        let one = |what: &str| what.replace("s are ", " is ");
        let in_words = |(count, what): (u64, &str)| match count {
            1 => format!("1 {}", one(what)),
            _ => format!("{} {what}", format_grouped(count)),
        };
        found.map(in_words).collect()
    }
}
