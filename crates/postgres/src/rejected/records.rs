//! A file of rejected records, as the rows of flat tables that these records would have become.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::Schema;
use sawmill_source::{Error, Kind, ParquetFiles, Result, Source, Unit, UnitKey};

use crate::nested::flat_tables::{FlatRows, FlatTable, NumbersFromColumns, RecordNumbers, flat_tables};
use crate::rejected::bad_records::row_groups;
use crate::rejected::file;

/// Rejected records, with their numbers in the source.
pub(crate) struct RejectedRecords<'a> {
    path: PathBuf,
    file: ParquetFiles,
    tables: Vec<FlatTable>,
    source: &'a dyn Source,
    records: &'a RecordNumbers,
    groups: BTreeMap<(u32, u32), Unit>,
    /// The selected rows of the last row group, if not all are selected.
    selected: Mutex<Option<(UnitKey, Vec<u64>)>>,
}

impl<'a> RejectedRecords<'a> {
    /// Opens the file that a load of `source` into these tables has written.
    ///
    /// # Errors
    /// A file that cannot be read, that was not written by a load, or whose records belong to other tables.
    pub(crate) fn open(
        path: &Path,
        source: &'a dyn Source,
        records: &'a RecordNumbers,
        tables: &[FlatTable],
    ) -> Result<Self> {
        let file = file::open(path, source, true)?;
        let fields = file.schema().fields().iter().take(source.schema().fields().len());
        let own = flat_tables(&Schema::new(fields.cloned().collect::<Vec<_>>()))?;
        let (path, groups) = (path.to_owned(), row_groups(source));
        let rejected = Self { path, file, tables: own, source, records, groups, selected: Mutex::new(None) };
        let paths = |tables: &[FlatTable]| tables.iter().map(|table| table.path.clone()).collect::<Vec<_>>();
        match paths(tables) == paths(&rejected.tables) {
            true => Ok(rejected),
            false => Err(rejected.mismatch()),
        }
    }

    /// The number of records.
    pub(crate) fn count(&self) -> u64 {
        self.file.rows()
    }

    /// The rows of each table.
    pub(crate) fn tables(&self) -> impl Iterator<Item = FlatRows<'_>> {
        self.tables.iter().map(|table| FlatRows::numbered(&self.file, table, self))
    }

    /// The number of a record; none if the source lacks it.
    fn number(&self, file: &str, row_group: i32, row: i64) -> Result<Option<u64>> {
        let files = self.source.files();
        let Some(file) = files.iter().position(|of_source| of_source.name == file) else { return Ok(None) };
        let (Ok(row_group), Ok(row)) = (u32::try_from(row_group), u64::try_from(row)) else {
            return Ok(None);
        };
        let group = (file as u32, row_group);
        let Some(unit) = self.groups.get(&group) else { return Ok(None) };
        let at = match self.source.facts().counts_all_rows {
            true => Some(row).filter(|row| *row < unit.rows),
            false => self.among_selected(unit, row)?,
        };
        Ok(at.map(|at| self.records.of_group(group.0, group.1) + at))
    }

    /// The position of a row of a row group among the selected rows.
    fn among_selected(&self, group: &Unit, row: u64) -> Result<Option<u64>> {
        let mut selected = self.selected.lock().unwrap_or_else(PoisonError::into_inner);
        let known = selected.take().filter(|(key, _)| *key == group.key);
        let (_, rows) = match known {
            Some(known) => selected.insert(known),
            None => {
                let all: Vec<u64> = (0..group.rows).collect();
                selected.insert((group.key, self.source.rows_in_group(group.key, &all)?))
            }
        };
        Ok(rows.binary_search(&row).ok().map(|at| at as u64))
    }

    fn mismatch(&self) -> Error {
        Error::new(Kind::Mismatch, "it names rows that are not in the compared files")
            .at(self.path.display().to_string())
            .advise("name the file of rejected rows that the load of these files wrote")
    }
}

impl NumbersFromColumns for RejectedRecords<'_> {
    fn columns(&self) -> Range<usize> {
        let columns = self.source.schema().fields().len();
        columns..columns + 3
    }

    fn numbers(&self, columns: &[ArrayRef]) -> Result<Vec<u64>> {
        let [files, row_groups, rows] = columns else { return Err(self.mismatch()) };
        let (Some(files), Some(row_groups), Some(rows)) = (
            files.as_string_view_opt(),
            row_groups.as_primitive_opt::<Int32Type>(),
            rows.as_primitive_opt::<Int64Type>(),
        ) else {
            return Err(self.mismatch());
        };
        let places = files.iter().zip(row_groups.values()).zip(rows.values());
        places
            .map(|((file, row_group), row)| {
                let number = self.number(file.unwrap_or_default(), *row_group, *row)?;
                number.ok_or_else(|| self.mismatch())
            })
            .collect()
    }
}
