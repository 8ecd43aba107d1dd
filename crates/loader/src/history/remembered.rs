//! Recognises files that the target already holds, one by one, not by the list that names them.

use std::collections::{BTreeSet, HashSet};

use sawmill_source::{Mapping, Result, Source};

use crate::engine::content_sum::Tally;
use crate::engine::note::Note;
use crate::engine::verification::Verification;
use crate::history::record::LoadRecord;
use crate::table::mode::Mode;

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
    pub fn verify(&mut self, all: Verification, place: &str) -> Result<()> {
        let Verification { columns, target, rows_of_others, .. } = all.into_result(place)?;
        let loaded = self.loaded(columns.len());
        self.verified = Some(Verification {
            rejected: self.already.iter().map(|file| file.rejected).sum(),
            rows_of_others: rows_of_others + target.rows.saturating_sub(loaded.rows),
            ..Verification::new(columns, loaded.clone(), loaded)
        });
        Ok(())
    }

    /// Notes that the table was not compared, because its columns have changed between loads.
    pub fn note_other_columns(&mut self) {
        let what = "not verified: the files were compared with the records of their loads, but not with the table, whose columns \
                    have changed since (sawmill verify compares whole tables)";
        self.notes.push(Note::Unverified(what.to_owned()));
    }

    /// Notes that the table was not compared, because this column of it is another one than its loads have filled.
    pub fn note_moved_column(&mut self, name: &str) {
        let what = format!(
            "not verified: column {name:?} of the table is another one than earlier loads filled (dropped or renamed, and added \
             again); sawmill verify shows whether it has the files' values; --mode replace loads everything from the beginning"
        );
        self.notes.push(Note::MovedColumn(what));
    }

    /// Notes that the table was not compared, because it lacks these columns of the files.
    pub fn note_left_out(&mut self, columns: &[&str]) {
        let what = format!(
            "not verified: the table lacks {} of the files, which earlier loads left out; --mode replace loads everything from \
             the beginning",
            columns.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
        );
        self.notes.push(Note::Unverified(what));
    }

    /// Notes that the table was not compared, because its rows are not those on record.
    pub fn note_other_rows(&mut self) {
        let what = "not verified: the files were compared with the records of their loads, but not with the table, which has \
                    other rows than those on record";
        self.notes.push(Note::OtherRows(what.to_owned()));
    }

    /// Notes that the table was not compared, because its rows could not be counted.
    pub fn note_uncounted(&mut self) {
        let what = "not verified: the files were compared with the records of their loads, but not with the table, of which this \
                    user may not read all rows";
        self.notes.push(Note::Unverified(what.to_owned()));
    }
}

/// The names and fingerprints of the files whose rows complete loads have brought into a table: of all loads, or of those
/// that take the rows and columns of `mapping`.
pub fn loaded_files(loads: &[&LoadRecord], mapping: Option<&Mapping>) -> HashSet<(String, String)> {
    let adds =
        |load: &&&LoadRecord| load.complete && load.mapping.is_some() && load.mode != Mode::Upsert.name();
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
