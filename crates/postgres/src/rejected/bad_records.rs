//! Rejected rows of a source, which are left out when a table is compared with it.
//!
//! They are kept in an unnamed temporary file, unit by unit. Memory holds only their places in the file, and
//! the rows of one unit at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sawmill_source::{Error, Kind, Result, Source, Unit, UnitKey};

use crate::records::checkpoint::Records;
use crate::rejected::rejects::Reject;

/// Rows of the units by which records are kept.
const UNIT_ROWS: u64 = 64 * 1024;

/// Rejected records, by their rows.
#[derive(Debug)]
pub(crate) struct BadRecords {
    file: File,
    directory: PathBuf,
    /// Bytes of the file.
    written: u64,
    /// Where the file holds the rows of each unit: a position and a length for each batch of them.
    units: BTreeMap<UnitKey, Vec<(u64, usize)>>,
}

impl BadRecords {
    /// An empty collection, whose file is in this directory.
    ///
    /// # Errors
    /// No file can be created in the directory.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory).map_err(|error| unkept(directory, &error))?;
        Ok(Self { file, directory: directory.to_owned(), written: 0, units: BTreeMap::new() })
    }

    /// Adds records of a unit, given by their rows in the row group.
    pub(crate) fn add(&mut self, unit: UnitKey, rows: impl IntoIterator<Item = u64>) -> Result<()> {
        let bytes: Vec<u8> = rows.into_iter().flat_map(u64::to_le_bytes).collect();
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(&bytes, self.written).map_err(|error| unkept(&self.directory, &error))?;
        self.units.entry(unit).or_default().push((self.written, bytes.len()));
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// The rows of the records in a unit, which may be another range of rows than the one with which they
    /// were added.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn rows_of(&self, unit: &Unit) -> Result<BTreeSet<u64>> {
        let wanted = unit.key.first_row..unit.key.first_row.saturating_add(unit.rows);
        let at = |row| UnitKey { first_row: row, ..unit.key };
        // The unit that begins there or before, and those that begin within.
        let before = self.units.range(at(0)..=unit.key).next_back();
        let within =
            self.units.range(at(wanted.start.saturating_add(1))..at(wanted.end.max(wanted.start + 1)));
        let mut rows = BTreeSet::new();
        for (at, bytes) in before.into_iter().chain(within).flat_map(|(_, stretches)| stretches) {
            let mut stretch = vec![0; *bytes];
            self.file.read_exact_at(&mut stretch, *at).map_err(|error| unkept(&self.directory, &error))?;
            let (found, _) = stretch.as_chunks();
            rows.extend(found.iter().map(|row| u64::from_le_bytes(*row)).filter(|row| wanted.contains(row)));
        }
        Ok(rows)
    }

    /// Adds records of a row group by their rows in the file. Returns whether all of them are rows of the source.
    ///
    /// # Errors
    /// The temporary file cannot be written; the source cannot be read.
    pub(crate) fn add_group(
        &mut self,
        source: &dyn Source,
        group: &Unit,
        rows: &BTreeSet<u64>,
    ) -> Result<bool> {
        let counted = counted(source, group, rows)?;
        let are_known = counted.len() == rows.len();
        self.add(group.key, counted)?;
        Ok(are_known)
    }

    /// Adds the rejected records of a load. The units are always the same ones, however the load was cut.
    ///
    /// # Errors
    /// A lost connection; the temporary file cannot be written; a record that the source lacks.
    pub(crate) fn add_recorded(
        &mut self,
        source: &dyn Source,
        records: &Records<'_>,
        id: &str,
    ) -> Result<()> {
        let units: BTreeSet<UnitKey> =
            source.plan(UNIT_ROWS).into_iter().flatten().map(|unit| unit.key).collect();
        for key in records.rejecting_units(id)? {
            let rejects = records.rejects(id, key)?;
            let of = |reject: &Reject| unit_of(&units, UnitKey { first_row: reject.row, ..key });
            for run in rejects.chunk_by(|a, b| of(a) == of(b)) {
                let unit = run.first().and_then(of).ok_or_else(of_no_unit)?;
                self.add(unit, run.iter().map(|reject| reject.row))?;
            }
        }
        Ok(())
    }
}

/// Converts numbers of rows in a row group to their numbers in its unit. Leaves out rows that the source
/// lacks.
fn counted(source: &dyn Source, unit: &Unit, rows: &BTreeSet<u64>) -> Result<Vec<u64>> {
    if source.facts().counts_all_rows {
        return Ok(rows.iter().copied().filter(|row| *row < unit.rows).collect());
    }
    let all: Vec<u64> = (0..unit.rows).collect();
    let all = source.rows_in_group(unit.key, &all)?;
    Ok((0..unit.rows).zip(all).filter(|(_, row)| rows.contains(row)).map(|(at, _)| at).collect())
}

fn unkept(directory: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Config, format!("rejected records cannot be kept in a temporary file: {error}"))
        .at(directory.display().to_string())
        .advise("free some space there, and run the same command again")
}

/// The unit that a row of a row group is in.
fn unit_of(units: &BTreeSet<UnitKey>, row: UnitKey) -> Option<UnitKey> {
    let unit = units.range(..=row).next_back()?;
    ((unit.file, unit.row_group) == (row.file, row.row_group)).then_some(*unit)
}

/// A rejected record that cannot be found again.
fn of_no_unit() -> Error {
    Error::new(Kind::Mismatch, "a rejected record belongs to no unit of the load")
        .advise("forget this load and start it from the beginning")
}

/// Rejected rows that the source has lost.
pub(crate) fn gone(row_group: u32) -> Error {
    Error::new(Kind::Changed, "rejected rows are no longer in the source")
        .at(format!("row group {row_group}"))
        .advise("restore the file and run the same command again")
}

/// The row groups of a source, each as one unit.
pub(crate) fn row_groups(source: &dyn Source) -> BTreeMap<(u32, u32), Unit> {
    let groups = source.plan(u64::MAX).into_iter().flatten();
    groups.map(|unit| ((unit.key.file, unit.key.row_group), unit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(row_group: u32, first_row: u64) -> UnitKey {
        UnitKey { file: 0, row_group, first_row }
    }

    #[test]
    fn records_are_found_in_any_range_of_rows() {
        let directory = tempfile::tempdir().unwrap();
        let mut records = BadRecords::new(directory.path()).unwrap();
        records.add(key(0, 0), [99, 7]).unwrap();
        records.add(key(1, 0), [7]).unwrap();
        records.add(key(0, 100), [100, 149]).unwrap();
        records.add(key(0, 0), [7, 8]).unwrap();
        for (first, rows, expected) in [
            (0, u64::MAX, vec![7, 8, 99, 100, 149]),
            (0, 100, vec![7, 8, 99]),
            (8, 1, vec![8]),
            (90, 20, vec![99, 100]),
            (101, 48, vec![]),
            (150, 10, vec![]),
        ] {
            let found = records.rows_of(&Unit { key: key(0, first), rows, bytes: 0 }).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{rows} from {first}");
        }
        assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
    }
}
