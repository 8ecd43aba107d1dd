//! The records that a target keeps of a load and of its units.

use crate::engine::content_sum::Tally;
use crate::identity::RecordedFiles;
use crate::table::mode::Mode;
use crate::table::records::LoadFacts;

/// The record of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadRecord {
    /// Its identifier.
    pub id: String,
    /// Its mode, by [`Mode::name`](crate::Mode::name).
    pub mode: String,
    /// Its table's OID, which the table keeps when it is renamed; 0 if the server numbers no tables.
    pub table_oid: u32,
    /// Maximum rows of its units.
    pub unit_rows: u64,
    /// Its files.
    pub files: RecordedFiles,
    /// Whether all of its units are committed.
    pub complete: bool,
    /// The sum of the table's earlier rows, if rows are appended and will be verified.
    pub before: Option<Tally>,
    /// The selection of rows and columns that its files are loaded with. Empty if files are not remembered one
    /// by one.
    pub mapping: String,
    /// How it was run.
    pub facts: LoadFacts,
}

impl LoadRecord {
    /// Whether its units have rows of several files.
    pub fn mixes_files(&self) -> bool {
        !self.facts.order.is_empty()
    }

    /// Whether the load made its table.
    pub fn made_the_table(&self) -> bool {
        [Mode::Create, Mode::Replace].iter().any(|mode| mode.name() == self.mode)
    }
}

/// The record of a committed unit.
#[derive(Clone, Debug, Default)]
pub struct RecordedUnit {
    /// Its rows that the target has.
    pub tally: Tally,
    /// Its rejected rows.
    pub rejected: u64,
    /// The sum of the rejected rows that can be encoded, if the target records it.
    pub refused: Option<Tally>,
}

/// The loads on record, in the order in which they began.
#[derive(Default)]
pub struct Loads<'l> {
    /// Loads of the same rows and columns into the table.
    pub here: Vec<&'l LoadRecord>,
    /// Loads of other rows or columns into the table.
    pub otherwise: Vec<&'l LoadRecord>,
    /// Loads of the same rows and columns into another table that had its name.
    pub elsewhere: Vec<&'l LoadRecord>,
}
