//! The records that a target keeps of a load and of its units.

use sawmill_source::Mapping;

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
    /// What it takes of its files, and how it reads them; `None` if files are not remembered one by one.
    pub mapping: Option<Mapping>,
    /// How it was run.
    pub facts: LoadFacts,
}

impl LoadRecord {
    /// Whether it takes the same rows and columns of a file, even if it reads text otherwise.
    pub fn takes(&self, mapping: &Mapping) -> bool {
        self.mapping.as_ref().is_some_and(|own| own.takes_the_same(mapping))
    }

    /// Whether a load of other rows or columns may have taken other rows of a file than this one.
    pub(super) fn may_be_part_beside(&self, mapping: &Mapping) -> bool {
        self.mapping.as_ref().is_some_and(|own| own.may_be_parts(mapping))
    }

    /// The mapping as the target's records hold it.
    pub fn mapping_text(&self) -> String {
        self.mapping.as_ref().map(Mapping::to_text).unwrap_or_default()
    }

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
