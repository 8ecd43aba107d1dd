//! Rejected records of a nested source, which are left out of all of its flat tables
//! ([`FlatRows::leaving_out`](crate::nested::flat_tables::FlatRows::leaving_out)).
//!
//! They are kept in an unnamed temporary file, unit by unit. Memory holds only where those of each unit are,
//! and those of one unit at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sawmill_loader::LoadOptions;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit, UnitKey};

use crate::records::checkpoint::Checkpoints;
use crate::rejected::file::{RejectsFile, RejectsOf};
use crate::rejected::rejects::Reject;

/// Rows of the units by which records are kept.
const UNIT_ROWS: u64 = 64 * 1024;

/// Rejected records, with the reasons.
#[derive(Debug)]
pub(crate) struct BadRecords {
    file: File,
    directory: PathBuf,
    /// Bytes of the file.
    written: u64,
    /// Where those of each unit are.
    units: BTreeMap<UnitKey, UnitRecords>,
    count: u64,
}

/// Where the records of one unit are.
#[derive(Debug)]
struct UnitRecords {
    unit: Unit,
    /// Position and length in the file, one for each time that some were found.
    stretches: Vec<(u64, usize)>,
}

impl BadRecords {
    /// An empty collection, whose file is in this directory.
    ///
    /// # Errors
    /// No file can be created in the directory.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory).map_err(|error| unkept(directory, &error))?;
        Ok(Self { file, directory: directory.to_owned(), written: 0, units: BTreeMap::new(), count: 0 })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds records of a unit, given by their rows in the row group, except those that were added before.
    fn add(&mut self, unit: &Unit, records: impl IntoIterator<Item = (u64, String)>) -> Result<()> {
        let mut there = BTreeSet::new();
        if let Some(of_unit) = self.units.get(&unit.key) {
            self.each(of_unit, |row, _| {
                there.insert(row);
            })?;
        }
        let mut bytes = Vec::new();
        for (row, why) in records {
            if there.insert(row) {
                bytes.extend_from_slice(&row.to_le_bytes());
                bytes.extend_from_slice(&(why.len() as u64).to_le_bytes());
                bytes.extend_from_slice(why.as_bytes());
                self.count += 1;
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(&bytes, self.written).map_err(|error| unkept(&self.directory, &error))?;
        let of_unit =
            self.units.entry(unit.key).or_insert_with(|| UnitRecords { unit: *unit, stretches: Vec::new() });
        of_unit.stretches.push((self.written, bytes.len()));
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Passes the records of a unit to `record`, in the order in which they were added.
    fn each(&self, of_unit: &UnitRecords, mut record: impl FnMut(u64, &str)) -> Result<()> {
        for (at, bytes) in &of_unit.stretches {
            let mut stretch = vec![0; *bytes];
            self.file.read_exact_at(&mut stretch, *at).map_err(|error| unkept(&self.directory, &error))?;
            let mut left = stretch.as_slice();
            while let Some((row, rest)) = left.split_first_chunk()
                && let Some((length, rest)) = rest.split_first_chunk()
                && let Some((why, rest)) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)
            {
                record(u64::from_le_bytes(*row), &String::from_utf8_lossy(why));
                left = rest;
            }
        }
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
        for (_, of_unit) in before.into_iter().chain(within) {
            self.each(of_unit, |row, _| {
                if wanted.contains(&row) {
                    rows.insert(row);
                }
            })?;
        }
        Ok(rows)
    }

    /// The units that have records.
    pub(crate) fn units(&self) -> impl Iterator<Item = UnitKey> {
        self.units.keys().copied()
    }

    /// Passes the records of each unit that has some to `unit`, by their rows.
    ///
    /// # Errors
    /// Errors of `unit`; the temporary file cannot be read.
    pub(crate) fn each_unit(&self, mut unit: impl FnMut(&Unit, &[Reject]) -> Result<()>) -> Result<()> {
        for of_unit in self.units.values() {
            let mut rejects = Vec::new();
            self.each(of_unit, |row, why| rejects.push(Reject { row, reason: why.to_owned() }))?;
            rejects.sort_unstable_by_key(|reject| reject.row);
            unit(&of_unit.unit, &rejects)?;
        }
        Ok(())
    }

    /// Adds the rejected records of a load, except those that were added before. Returns the load's last one,
    /// with its unit. The units are always the same ones, however the load was cut.
    ///
    /// # Errors
    /// A lost connection; the temporary file cannot be written; a record that the source lacks.
    pub(crate) fn add_recorded(
        &mut self,
        source: &dyn Source,
        checkpoints: &Checkpoints,
        id: &str,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<Option<(UnitKey, Reject)>> {
        let units = source.plan(UNIT_ROWS).into_iter().flatten();
        let units: BTreeMap<UnitKey, Unit> = units.map(|unit| (unit.key, unit)).collect();
        let mut keys: Vec<UnitKey> =
            checkpoints.count_rejects(connection, id, control)?.into_keys().collect();
        keys.sort_unstable();
        let mut last = None;
        for key in keys {
            let rejects = checkpoints.rejects(connection, id, key, control)?;
            let of = |reject: &Reject| unit_of(&units, UnitKey { first_row: reject.row, ..key });
            for run in rejects.chunk_by(|a, b| of(a) == of(b)) {
                let unit = run.first().and_then(of).and_then(|unit| units.get(&unit));
                let unit = unit.ok_or_else(of_no_unit)?;
                last = run.last().map(|reject| (unit.key, reject.clone())).or(last);
                self.add(unit, run.iter().map(|reject| (reject.row, reject.reason.clone())))?;
            }
        }
        Ok(last)
    }

    /// Writes the file of these records.
    pub(crate) fn write(&self, path: &Path, of: RejectsOf<'_>, options: &LoadOptions) -> Result<()> {
        let mut file = RejectsFile::create(path, of)?;
        let read = Read { broken_text: true, ..Read::default() };
        let mut reader = of.source.open(read, options.batch_rows);
        self.each_unit(|unit, rejects| file.unit(unit, rejects, reader.as_mut()))?;
        file.finish()
    }
}

/// Collects records by their rows in the files, one row group after the other.
pub(crate) struct Places<'a> {
    source: &'a dyn Source,
    groups: BTreeMap<(u32, u32), Unit>,
    records: BadRecords,
    /// The current row group.
    open: Option<(Unit, BTreeSet<u64>)>,
    /// All of them so far are rows of the source.
    known: bool,
}

impl<'a> Places<'a> {
    /// For a source; the records are kept in a file in this directory.
    pub(crate) fn new(source: &'a dyn Source, directory: &Path) -> Result<Self> {
        let groups = row_groups(source);
        Ok(Self { source, groups, records: BadRecords::new(directory)?, open: None, known: true })
    }

    /// Adds a row of a row group. Returns false if the source lacks it.
    pub(crate) fn add(&mut self, file: u32, row_group: u32, row: u64) -> Result<bool> {
        let Some(group) = self.groups.get(&(file, row_group)).copied() else { return Ok(false) };
        match &mut self.open {
            Some((unit, rows)) if unit.key == group.key => {
                rows.insert(row);
            }
            _ => {
                self.close()?;
                self.open = Some((group, BTreeSet::from([row])));
            }
        }
        Ok(self.known)
    }

    /// The records as the source counts its rows; none if it lacks some of them.
    pub(crate) fn into_records(mut self) -> Result<Option<BadRecords>> {
        self.close()?;
        Ok(self.known.then_some(self.records))
    }

    fn close(&mut self) -> Result<()> {
        let Some((unit, rows)) = self.open.take() else { return Ok(()) };
        let counted = counted(self.source, &unit, &rows)?;
        self.known &= counted.len() == rows.len();
        self.records.add(&unit, counted.into_iter().map(|row| (row, String::new())))
    }
}

/// Converts rows of a row group, given by their numbers in it, to the numbers that its unit gives them. Rows
/// that the source lacks are left out.
fn counted(source: &dyn Source, unit: &Unit, rows: &BTreeSet<u64>) -> Result<Vec<u64>> {
    if source.facts().counts_all_rows {
        return Ok(rows.iter().copied().filter(|row| *row < unit.rows).collect());
    }
    let all: Vec<u64> = (0..unit.rows).collect();
    let all = source.rows_in_group(unit.key, &all)?;
    Ok((0..unit.rows).zip(all).filter(|(_, row)| rows.contains(row)).map(|(at, _)| at).collect())
}

/// The directory of the temporary files of a load that writes a file of rejected rows: that file's own.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unkept(directory: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Config, format!("rejected records cannot be kept in a temporary file: {error}"))
        .at(directory.display().to_string())
        .advise("free some space there, and run the same command again")
}

/// The unit that a row of a row group is in.
pub(crate) fn unit_of<T>(units: &BTreeMap<UnitKey, T>, row: UnitKey) -> Option<UnitKey> {
    let (unit, _) = units.range(..=row).next_back()?;
    ((unit.file, unit.row_group) == (row.file, row.row_group)).then_some(*unit)
}

/// A rejected record that cannot be found again.
pub(crate) fn of_no_unit() -> Error {
    Error::new(Kind::Mismatch, "a rejected record belongs to no unit of the load")
        .advise("forget this load and start it from the beginning")
}

/// The row groups of a source, each as one unit.
pub(crate) fn row_groups(source: &dyn Source) -> BTreeMap<(u32, u32), Unit> {
    let groups = source.plan(u64::MAX).into_iter().flatten();
    groups.map(|unit| ((unit.key.file, unit.key.row_group), unit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(row_group: u32, first_row: u64, rows: u64) -> Unit {
        Unit { key: UnitKey { file: 0, row_group, first_row }, rows, bytes: 0 }
    }

    #[test]
    fn records_are_found_in_any_range_of_rows_and_count_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut records = BadRecords::new(directory.path()).unwrap();
        let refused =
            |rows: &[u64], why: &str| rows.iter().map(|row| (*row, why.to_owned())).collect::<Vec<_>>();
        records.add(&unit(0, 0, 100), refused(&[99, 7], "first")).unwrap();
        records.add(&unit(1, 0, 100), refused(&[7], "of another row group")).unwrap();
        records.add(&unit(0, 100, 50), refused(&[100, 149], "")).unwrap();
        records.add(&unit(0, 0, 100), refused(&[7, 8], "second")).unwrap();
        assert_eq!(records.count(), 6);
        for (first, rows, expected) in [
            (0, u64::MAX, vec![7, 8, 99, 100, 149]),
            (0, 100, vec![7, 8, 99]),
            (8, 1, vec![8]),
            (90, 20, vec![99, 100]),
            (101, 48, vec![]),
            (150, 10, vec![]),
        ] {
            let found = records.rows_of(&unit(0, first, rows)).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{rows} from {first}");
        }
        let mut units = Vec::new();
        records
            .each_unit(|unit, rejects| {
                let rejects = rejects.iter().map(|reject| (reject.row, reject.reason.clone()));
                units.push((unit.key.row_group, unit.key.first_row, rejects.collect::<Vec<_>>()));
                Ok(())
            })
            .unwrap();
        let first = [(7, "first".to_owned()), (8, "second".to_owned()), (99, "first".to_owned())];
        assert_eq!(units[0], (0, 0, first.to_vec()));
        assert_eq!(
            units.iter().map(|(group, row, _)| (*group, *row)).collect::<Vec<_>>(),
            [(0, 0), (0, 100), (1, 0)]
        );
        assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
    }
}
