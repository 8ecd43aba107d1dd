//! Records of a nested source that cannot be loaded whole into its flat tables, where such are put aside.
//!
//! A value anywhere below a record may be one that its table cannot hold, and then none of the record's rows may be in
//! any table. Tables are loaded one after the other, so these records are found before the first of them: every
//! table's rows are encoded once, without a server, and what is refused names its record. The tables are then loaded
//! from a source without these records ([`FlatRows::leaving_out`]). What is found is the source's alone, so a load
//! that was broken off finds the same again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};

use super::copy_binary::{Column, CopyEncoder, RejectingEncoder};
use super::rejects::Reject;
use super::rejects_file::{RejectsFile, places_of};
use crate::all_cores::on_all_cores;
use crate::buffers::Buffers;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::flat_tables::{FlatRows, FlatTable};
use crate::load::LoadOptions;
use crate::source::{Source, Unit, UnitKey, UnitReader};
use crate::target::{BatchEncoder, Block, Refusal};

/// Records that are put aside, with the reasons: by file and row group, and by their rows as units count them.
#[derive(Debug, Default)]
pub(crate) struct BadRecords {
    groups: BTreeMap<(u32, u32), BTreeMap<u64, String>>,
}

impl BadRecords {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.groups.values().map(|rows| rows.len() as u64).sum()
    }

    /// Those of one row group.
    pub(crate) fn of_group(&self, file: u32, row_group: u32) -> Option<&BTreeMap<u64, String>> {
        self.groups.get(&(file, row_group))
    }

    /// Encodes the rows of all tables, given with the columns that they will have, and finds records of which some
    /// part is refused.
    ///
    /// # Errors
    /// More such records than `most`; a source that cannot be read; a raised cancel flag.
    pub(super) fn find(
        source: &dyn Source,
        tables: &[(&FlatTable, Arc<Vec<Column>>)],
        options: &LoadOptions,
        most: Option<u64>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let found = Mutex::new(Self::default());
        for (table, columns) in tables {
            let rows = FlatRows::new(source, table);
            let of_lists = table.path.join("_");
            let units: Vec<Unit> = source.plan(options.unit_rows).into_iter().flatten().collect();
            let state = || {
                let encoder = CopyEncoder::new(Arc::clone(columns), Buffers::new(options.batch_bytes));
                (rows.reader(options.batch_rows), RejectingEncoder::new(encoder))
            };
            on_all_cores("records", &units, control, state, |(reader, encoder), unit, control| {
                let refused = refused_records(reader.as_mut(), encoder, unit, control)?;
                if refused.is_empty() {
                    return Ok(());
                }
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                let group = found.groups.entry((unit.key.file, unit.key.row_group)).or_default();
                for (row, why) in refused {
                    group.entry(row).or_insert_with(|| match of_lists.is_empty() {
                        true => why,
                        false => format!("{of_lists}, {why}"),
                    });
                }
                found.check(source, most)
            })?;
        }
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// An error when there are more than `most`, told by the last of them.
    fn check(&self, source: &dyn Source, most: Option<u64>) -> Result<()> {
        let count = self.count();
        if most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        let Some(((file, group), rows)) = self.groups.last_key_value() else { return Ok(()) };
        let Some((row, why)) = rows.last_key_value() else { return Ok(()) };
        let key = UnitKey { file: *file, row_group: *group, first_row: 0 };
        let name = source.files().get(*file as usize).map(|file| file.name.as_str()).unwrap_or_default();
        let row = source.row_in_group(key, *row).unwrap_or(*row);
        Err(Error::new(Kind::Value, format!("{count} rows cannot be loaded, the last one: {why}"))
            .at(format!("{name}, row group {group}, row {row}"))
            .advise("correct them in the source, or raise --max-rejects"))
    }

    /// For each row group that has some, a unit of all its rows, and those that are put aside.
    pub(super) fn by_group(&self, source: &dyn Source) -> Vec<(Unit, Vec<Reject>)> {
        let groups = source.plan(u64::MAX).into_iter().flatten();
        let rejects = |unit: Unit| {
            let rows = self.of_group(unit.key.file, unit.key.row_group)?;
            let reject = |(row, reason): (&u64, &String)| Reject { row: *row, reason: reason.clone() };
            Some((unit, rows.iter().map(reject).collect()))
        };
        groups.filter_map(rejects).collect()
    }

    /// Writes the file of these records.
    pub(super) fn write(&self, path: &Path, source: &dyn Source, options: &LoadOptions) -> Result<()> {
        let mut file = RejectsFile::create(path, source)?;
        let mut reader = source.reader(options.batch_rows);
        for (unit, rejects) in self.by_group(source) {
            file.unit(&unit, &rejects, reader.as_mut())?;
        }
        file.finish()
    }

    /// The records that a file of rejected rows names.
    ///
    /// # Errors
    /// A file that cannot be read, that no load has written, or that was written for other files than those of
    /// `source`.
    pub(super) fn of_file(path: &Path, source: &dyn Source) -> Result<Self> {
        let strange = || {
            Error::new(Kind::Mismatch, "it names rows that are not in the files that are compared")
                .at(path.display().to_string())
                .advise("give the file of rejected rows that the load of these files has written")
        };
        let mut named: BTreeMap<(u32, u32), BTreeSet<u64>> = BTreeMap::new();
        for batch in places_of(path)? {
            add_places(&batch, source, &mut named).ok_or_else(strange)?;
        }
        let mut records = Self::default();
        for unit in source.plan(u64::MAX).into_iter().flatten() {
            let Some(rows) = named.remove(&(unit.key.file, unit.key.row_group)) else { continue };
            let group = records.groups.entry((unit.key.file, unit.key.row_group)).or_default();
            let counted: Vec<u64> = match source.counts_all_rows() {
                true => rows.iter().copied().filter(|row| *row < unit.rows).collect(),
                false => {
                    let all: Vec<u64> = (0..unit.rows).collect();
                    let all = source.rows_in_group(unit.key, &all)?;
                    (0..unit.rows).zip(all).filter(|(_, row)| rows.contains(row)).map(|(at, _)| at).collect()
                }
            };
            if counted.len() != rows.len() {
                return Err(strange());
            }
            group.extend(counted.into_iter().map(|row| (row, String::new())));
        }
        match named.is_empty() {
            true => Ok(records),
            false => Err(strange()),
        }
    }
}

/// Adds the rows that a batch of a file of rejected rows names; none where it names a file that is not the source's.
fn add_places(
    batch: &RecordBatch,
    source: &dyn Source,
    named: &mut BTreeMap<(u32, u32), BTreeSet<u64>>,
) -> Option<()> {
    let files = batch.column(0).as_string_view_opt()?;
    let groups = batch.column(1).as_primitive_opt::<Int32Type>()?;
    let rows = batch.column(2).as_primitive_opt::<Int64Type>()?;
    for row in 0..batch.num_rows() {
        let file = source.files().iter().position(|file| file.name == files.value(row))?;
        let group = named.entry((file as u32, groups.value(row) as u32)).or_default();
        group.insert(rows.value(row) as u64);
    }
    Some(())
}

/// The records of a unit that rows of the table were refused of, and why, as units count them.
fn refused_records(
    reader: &mut dyn UnitReader,
    encoder: &mut RejectingEncoder,
    unit: &Unit,
    control: &Control<'_>,
) -> Result<Vec<(u64, String)>> {
    let mut records = Vec::new();
    reader.start(unit)?;
    while let Some(batch) = reader.next_batch()? {
        control.check()?;
        let mut refused = Vec::new();
        let mut keep = |block: Block| {
            refused.extend(block.marks.map(|marks| marks.refused).unwrap_or_default());
            Ok(())
        };
        // Rows are counted from the beginning of the batch then.
        encoder.begin_unit(unit);
        encoder.encode(&batch, &mut keep).map_err(|refusal| match refusal {
            Refusal::Stopped(error) => error,
            Refusal::Value { what, .. } => Error::new(Kind::Value, what),
        })?;
        encoder.end_unit(&mut keep)?;
        for (row, why) in refused {
            let record = reader.row_in_group(row as usize).ok_or_else(|| {
                Error::new(Kind::Source, "a row of a list's table belongs to no row of the source")
            })?;
            records.push((record, why));
        }
    }
    Ok(records)
}
