//! The records that a target keeps of loads and units, and what they say of a source's files.

use std::collections::{BTreeSet, HashSet};

use sawmill_source::{Mapping, Result, Source};

use crate::engine::load::LoadOptions;
use crate::engine::note::Note;
use crate::engine::verification::{Tally, Verification};
use crate::identity::RecordedFiles;
use crate::table::mode::Mode;
use crate::table::records::LoadFacts;
use crate::table::schema_change::ColumnChanges;

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
    /// The record of a load of this source that begins.
    pub fn new(
        id: &str,
        mode: Mode,
        source: &dyn Source,
        options: &LoadOptions,
        changes: ColumnChanges,
    ) -> Self {
        let facts =
            LoadFacts { order: source.facts().order, ..LoadFacts::new(options.command.as_deref(), changes) };
        Self {
            id: id.to_owned(),
            mode: mode.name().to_owned(),
            unit_rows: options.unit_rows.max(1),
            files: RecordedFiles::new(source.files()),
            facts: facts.leaving_out(options, source.files()),
            ..Self::default()
        }
    }

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

impl<'l> Loads<'l> {
    /// Sorts the loads on record by what they took of their files, and by whether it is in the table. Those whose files
    /// are not remembered one by one do not count.
    pub fn new(
        loads: impl IntoIterator<Item = &'l LoadRecord>,
        mapping: &Mapping,
        is_here: impl Fn(&LoadRecord) -> bool,
    ) -> Self {
        let mut sorted = Self::default();
        for load in loads.into_iter().filter(|load| load.mapping.is_some()) {
            match (is_here(load), load.takes(mapping)) {
                (true, true) => sorted.here.push(load),
                (true, false) => sorted.otherwise.push(load),
                (false, true) => sorted.elsewhere.push(load),
                (false, false) => {}
            }
        }
        sorted
    }
}

/// The target's knowledge of an appended source's files; files are identified by position.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Files that earlier loads completed and that are unchanged.
    pub already: Vec<AlreadyLoaded>,
    /// The files of each interrupted earlier load, in its order; these loads are finished first.
    pub unfinished: Vec<Vec<u32>>,
    /// Files with changed content, whose rows are to be replaced.
    pub replaced: Vec<u32>,
    /// The other files.
    pub new: Vec<u32>,
    /// The comparison of [`already`](Self::already) with the target, if requested and possible.
    pub verified: Option<Verification>,
    /// Remarks about them for the user.
    pub notes: Vec<Note>,
}

impl Remembered {
    /// A file may be both on record and begun with other content.
    pub(super) fn count_replaced_once(&mut self) {
        self.replaced.sort_unstable();
        self.replaced.dedup();
        self.already.retain(|already| self.replaced.binary_search(&already.file).is_err());
    }

    /// The work on a source whose other files are new. `already` are loaded, `unfinished` are interrupted loads.
    pub(super) fn with_the_rest(
        source: &dyn Source,
        unfinished: Vec<Vec<u32>>,
        already: &BTreeSet<u32>,
    ) -> Self {
        let taken: BTreeSet<u32> = unfinished.iter().flatten().chain(already).copied().collect();
        let all = 0..source.files().len() as u32;
        Self { unfinished, new: all.filter(|file| !taken.contains(file)).collect(), ..Self::default() }
    }

    /// Whether rows are to be loaded.
    pub fn has_work(&self) -> bool {
        !(self.new.is_empty() && self.unfinished.is_empty() && self.replaced.is_empty())
    }

    /// The totals of the files that are already loaded.
    pub fn loaded(&self, columns: usize) -> Tally {
        let mut loaded = Tally::empty(columns);
        self.already.iter().for_each(|file| loaded.add(&file.tally));
        loaded
    }

    /// Verifies the files by a comparison of all loaded rows with the whole table, or with those of its rows that are
    /// not `rows_of_others`.
    ///
    /// # Errors
    /// The two differ.
    pub(super) fn verify(&mut self, all: Verification, place: &str) -> Result<()> {
        let Verification { columns, target, rows_of_others, .. } = all.into_result(place)?;
        let loaded = self.loaded(columns.len());
        self.verified = Some(Verification {
            rejected: self.already.iter().map(|file| file.rejected).sum(),
            rows_of_others: rows_of_others + target.rows.saturating_sub(loaded.rows),
            ..Verification::new(columns, loaded.clone(), loaded)
        });
        Ok(())
    }
}

/// The names and fingerprints of the files whose rows complete loads have brought into a table: of all loads, or of those
/// that take the rows and columns of `mapping`.
pub(crate) fn loaded_files(loads: &[LoadRecord], mapping: Option<&Mapping>) -> HashSet<(String, String)> {
    let adds =
        |load: &&LoadRecord| load.complete && load.mapping.is_some() && load.mode != Mode::Upsert.name();
    let meant = loads.iter().filter(adds).filter(|load| mapping.is_none_or(|mapping| load.takes(mapping)));
    let files = meant.flat_map(|load| load.files.names.iter().zip(&load.files.fingerprints));
    files.map(|(name, print)| (name.clone(), print.clone())).collect()
}

/// A file that the target holds.
#[derive(Clone, Debug)]
pub struct AlreadyLoaded {
    /// Its position in the source.
    pub file: u32,
    /// Totals of its loaded rows.
    pub tally: Tally,
    /// Its rejected rows.
    pub rejected: u64,
    /// Number of units that it was loaded in.
    pub units: u64,
}
