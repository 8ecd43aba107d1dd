//! Which rows of the source a table lacks, and how many of its rows are none of the source's.
//!
//! Both sides are compared by a 64-bit hash of each row's bytes, the same bytes that content sums are taken of. The
//! hashes of the table are held sorted, each with its number, [`LoadOptions::locate_rows`] of them at most: a larger table
//! is gone through in several passes, each of which takes an equal part of all possible hashes, reads both sides and passes over
//! what is of another part. Two different rows have the same hash with a probability of one in 2^64.

use std::collections::BTreeMap;
use std::sync::Arc;

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Located, LocatedUnit, Refusal, TableName};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_pgwire::{Connection, KnownServer};
use sawmill_source::{Control, Error, Kind, Result, Source, Unit, UnitKey};
use xxhash_rust::xxh3::xxh3_64;

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::{RejectingEncoder, marked_rows};
use crate::encode::summing::SummingEncoder;
use crate::nested::flat_tables::RecordNumbers;
use crate::rejected::bad_records::BadRecords;
use crate::table::columns;
use crate::verify::read_back::read_rows;
use crate::verify::tuples::Tuples;

/// Rows of a unit that are named.
const NAMED: usize = 5;

/// What is compared.
pub(crate) struct Locating<'a> {
    pub source: &'a dyn Source,
    pub server: &'a KnownServer,
    pub table: &'a TableName,
    pub columns: &'a Arc<Vec<Column>>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    /// Rows that were put aside, which are in their place when they are not in the table.
    pub put_aside: Option<(&'a dyn Source, &'a Arc<Vec<Column>>)>,
    /// Rows of the source that are meant to be missing.
    pub refused: Option<&'a BadRecords>,
    /// The records that rows are of, which are named in their place.
    pub records: Option<&'a Arc<RecordNumbers>>,
}

/// One of the equal parts of all hashes.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pass: u64,
    passes: u64,
}

impl Part {
    pub(crate) fn has(self, hash: u64) -> bool {
        (u128::from(hash) * u128::from(self.passes)) >> 64 == u128::from(self.pass)
    }
}

/// Hashes of a table's rows, and how many rows of each have not been found in the source.
struct Hashes {
    sorted: Vec<u64>,
    left: Vec<u32>,
}

impl Hashes {
    fn of(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        let left =
            all.chunk_by(|a, b| a == b).map(|same| u32::try_from(same.len()).unwrap_or(u32::MAX)).collect();
        all.dedup();
        Self { sorted: all, left }
    }

    /// Takes one row of this hash away; false where there is none left.
    fn take(&mut self, hash: u64) -> bool {
        let Ok(place) = self.sorted.binary_search(&hash) else { return false };
        let there = self.left[place] > 0;
        self.left[place] -= u32::from(there);
        there
    }
}

/// A unit's rows that are missing: their number, and the first of them.
#[derive(Default)]
struct Missing {
    rows: u64,
    first: Vec<u64>,
}

impl Missing {
    fn add(&mut self, row: u64) {
        self.rows += 1;
        self.first.push(row);
        if self.first.len() > 4 * NAMED {
            self.keep_first();
        }
    }

    fn keep_first(&mut self) {
        self.first.sort_unstable();
        // Of a record several rows may be missing.
        self.first.dedup();
        self.first.truncate(NAMED);
    }
}

impl Locating<'_> {
    /// Compares the two sides; `rows` is what the table held when it was compared as a whole, and decides how many
    /// passes there are.
    pub(crate) fn run(&self, rows: u64, control: &Control<'_>) -> Result<Located> {
        let connection = self.server.connect(control)?;
        connection.batch(control, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let rows = rows + self.put_aside.map_or(0, |(source, _)| source.rows());
        let passes = rows.div_ceil(self.options.locate_rows.max(1)).max(1);
        let mut missing: BTreeMap<UnitKey, Missing> = BTreeMap::new();
        let mut rows_of_none = 0;
        for pass in 0..passes {
            let part = Part { pass, passes };
            let mut hashes = self.table_hashes(&connection, part, control)?;
            if let Some((source, columns)) = self.put_aside {
                self.source_hashes(source, columns, control, |_, _, hash| {
                    hashes.extend(hash.filter(|hash| part.has(*hash)));
                })?;
            }
            let mut hashes = Hashes::of(hashes);
            self.source_hashes(self.source, self.columns, control, |unit, row, hash| {
                // Rows that cannot be encoded have no hash. They count once, in the first pass, unless they are put
                // aside as well, all of them.
                let lacks = match hash {
                    None => pass == 0 && self.put_aside.is_none(),
                    Some(hash) => part.has(hash) && !hashes.take(hash),
                };
                if lacks {
                    missing.entry(unit).or_default().add(row);
                }
            })?;
            rows_of_none += hashes.left.iter().map(|left| u64::from(*left)).sum::<u64>();
        }
        connection.batch(control, "COMMIT")?;
        Ok(Located { units: self.units(missing), rows_of_none })
    }

    fn units(&self, mut missing: BTreeMap<UnitKey, Missing>) -> Vec<LocatedUnit> {
        let files = self.source.files();
        let mut units: Vec<Unit> = self.source.plan(self.unit_rows).into_iter().flatten().collect();
        units.sort_unstable_by_key(|unit| unit.key);
        let located = units.into_iter().filter_map(|unit| {
            let mut missing = missing.remove(&unit.key)?;
            missing.keep_first();
            Some(LocatedUnit {
                file: files.get(unit.key.file as usize).map(|file| file.name.clone()).unwrap_or_default(),
                row_group: unit.key.row_group,
                first_row: unit.key.first_row,
                last_row: unit.key.first_row + unit.rows.max(1) - 1,
                missing: missing.rows,
                first_missing: missing.first,
            })
        });
        located.collect()
    }

    /// Hashes of the table's rows that are of this part.
    fn table_hashes(&self, connection: &Connection, part: Part, control: &Control<'_>) -> Result<Vec<u64>> {
        let sql = format!(
            "COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)",
            columns::list(self.columns),
            self.table.quoted()
        );
        let canonical = CanonicalRow::of(self.columns, true);
        let mut tuples = Tuples::new(self.columns.len(), canonical, false).hashing(part);
        let reading = read_rows(connection, &sql, &mut tuples);
        connection.wait_for(control, reading)?;
        Ok(tuples.into_hashes())
    }

    /// Goes through a source: unit, row in its row group, and the row's hash where it can be encoded.
    fn source_hashes(
        &self,
        source: &dyn Source,
        columns: &Arc<Vec<Column>>,
        control: &Control<'_>,
        mut found: impl FnMut(UnitKey, u64, Option<u64>),
    ) -> Result<()> {
        let mut reader = source.reader(self.options.batch_rows);
        let buffers = Buffers::new(self.options.batch_bytes);
        let mut encoder = RejectingEncoder::new(SummingEncoder::new(Arc::clone(columns), buffers));
        let mut canonical = CanonicalRow::of(columns, true);
        if let Some(records) = self.records {
            encoder = encoder.of_records(records);
        }
        for unit in source.plan(self.unit_rows).into_iter().flatten() {
            let refused = self.refused.map(|records| records.rows_of(&unit)).transpose()?.unwrap_or_default();
            let mut found = |row: u64, hash: Option<u64>| {
                if !refused.contains(&row) {
                    found(unit.key, row, hash);
                }
            };
            let mut rows = |block: Block| {
                let Some(marks) = &block.marks else { return Ok(()) };
                let row = |row: u32| unit.key.first_row + u64::from(row);
                for (refused, _) in &marks.refused {
                    found(row(*refused), None);
                }
                let mut start = 0;
                for mark in marked_rows(&block) {
                    let end = mark.end as usize;
                    found(row(mark.row), Some(xxh3_64(canonical.row(&block.bytes[start..end]))));
                    start = end;
                }
                Ok(())
            };
            reader.start(&unit)?;
            encoder.begin_unit(&unit);
            while let Some(batch) = reader.next_batch()? {
                control.check()?;
                encoder.encode(&batch, &mut rows).map_err(|refusal| match refusal {
                    Refusal::Stopped(error) => error,
                    Refusal::Value { what, .. } => Error::new(Kind::Value, what),
                })?;
            }
            encoder.end_unit(&mut rows)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_is_of_one_part_and_rows_are_counted_as_often_as_they_are_there() {
        for hash in [0, 1, u64::MAX / 3, u64::MAX / 2, u64::MAX] {
            let parts = (0..3).filter(|pass| Part { pass: *pass, passes: 3 }.has(hash)).count();
            assert_eq!(parts, 1);
        }
        let mut hashes = Hashes::of(vec![7, 3, 7]);
        assert_eq!([3, 7, 7, 7, 5].map(|hash| hashes.take(hash)), [true, true, true, false, false]);
    }
}
