//! Finds the rows of the source that a table lacks, and counts the table's rows that are not in the source.
//!
//! Both sides are compared by a 64-bit hash of each row's bytes, the same bytes that content sums are
//! computed from. The hashes of the table are kept sorted, each with its count, at most
//! [`LoadOptions::locate_rows`] of them. A larger table takes several passes: each covers an equal range of
//! all hashes, reads both sides and skips the rows of other ranges. Two different rows have the same hash
//! with a probability of one in 2^64.

use std::collections::BTreeMap;
use std::sync::Arc;

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Located, LocatedUnit, Refusal, TableName};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_pgwire::KnownServer;
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit, UnitKey};
use xxhash_rust::xxh3::xxh3_64;

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::encoders::{RejectingEncoder, SummingEncoder, marked_rows};
use crate::nested::flat_tables::RecordNumbers;
use crate::rejected::bad_records::BadRecords;
use crate::table::catalogue::Link;
use crate::types::sent_as_text::selected;
use crate::verify::sums::read_rows;
use crate::verify::tuples::Tuples;

/// The most missing rows of a unit that are named.
const NAMED: usize = 5;

/// The source and table to compare, and how.
pub(crate) struct Locating<'a> {
    pub source: &'a dyn Source,
    pub server: &'a KnownServer,
    pub table: &'a TableName,
    pub columns: &'a Arc<Vec<Column>>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    /// Rejected rows, which are rightly not in the table.
    pub rejected: Option<LeftOut<'a>>,
    /// Rows of the source that the table rightly lacks.
    pub refused: Option<&'a BadRecords>,
    /// The records that rows belong to, which are named instead of rows.
    pub records: Option<&'a Arc<RecordNumbers>>,
}

/// Rejected rows.
#[derive(Clone, Copy)]
pub(crate) struct LeftOut<'a> {
    pub source: &'a dyn Source,
    pub columns: &'a Arc<Vec<Column>>,
    /// Those that cannot be encoded in the compared source.
    pub replaced: Option<&'a BadRecords>,
}

/// One of several equal ranges of all hashes.
#[derive(Clone, Copy)]
pub(crate) struct HashRange {
    pass: u64,
    passes: u64,
}

impl HashRange {
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
    fn new(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        let left =
            all.chunk_by(|a, b| a == b).map(|same| u32::try_from(same.len()).unwrap_or(u32::MAX)).collect();
        all.dedup();
        Self { sorted: all, left }
    }

    /// Removes one row with this hash; false if none is left.
    fn take(&mut self, hash: u64) -> bool {
        let Ok(place) = self.sorted.binary_search(&hash) else { return false };
        let there = self.left[place] > 0;
        self.left[place] -= u32::from(there);
        there
    }
}

/// A unit's missing rows: their number, and the first of them.
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
        // Several rows of a record may be missing.
        self.first.dedup();
        self.first.truncate(NAMED);
    }
}

impl Locating<'_> {
    /// Compares the two sides. `rows` is the number of the table's rows when it was compared as a whole, and
    /// decides the number of passes.
    pub(crate) fn run(&self, rows: u64, control: &Control<'_>) -> Result<Located> {
        self.on(Link::new(&self.server.connect(control)?, control), rows)
    }

    /// The same on a connection on which no transaction is open.
    pub(crate) fn on(&self, link: Link<'_>, rows: u64) -> Result<Located> {
        let control = link.control;
        link.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let rows = rows + self.rejected.map_or(0, |rejected| rejected.source.rows());
        let passes = rows.div_ceil(self.options.locate_rows.max(1)).max(1);
        let mut missing: BTreeMap<UnitKey, Missing> = BTreeMap::new();
        let mut rows_of_none = 0;
        for pass in 0..passes {
            let range = HashRange { pass, passes };
            let mut hashes = self.table_hashes(link, "", range)?;
            if let Some(LeftOut { source, columns, replaced }) = self.rejected {
                self.source_hashes((source, replaced), columns, control, |_, _, hash| {
                    hashes.extend(hash.filter(|hash| range.has(*hash)));
                })?;
            }
            let mut hashes = Hashes::new(hashes);
            self.source_hashes((self.source, self.refused), self.columns, control, |unit, row, hash| {
                // Rows that cannot be encoded have no hash. They are counted in the first pass, unless there
                // is a file of rejected rows, which holds all of them.
                let lacks = match hash {
                    None => pass == 0 && self.rejected.is_none(),
                    Some(hash) => range.has(hash) && !hashes.take(hash),
                };
                if lacks {
                    missing.entry(unit).or_default().add(row);
                }
            })?;
            rows_of_none += hashes.left.iter().map(|left| u64::from(*left)).sum::<u64>();
        }
        link.batch("COMMIT")?;
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

    /// The first row of the source that equals one that this clause selects from the table: its unit, and its number in the
    /// row group.
    pub(crate) fn place_of(&self, link: Link<'_>, clause: &str) -> Result<Option<(UnitKey, u64)>> {
        let wanted = self.table_hashes(link, clause, HashRange { pass: 0, passes: 1 })?;
        let mut place = None;
        if wanted.is_empty() {
            return Ok(place);
        }
        self.source_hashes((self.source, self.refused), self.columns, link.control, |unit, row, hash| {
            if hash.is_some_and(|hash| wanted.contains(&hash)) {
                place.get_or_insert((unit, row));
            }
        })?;
        Ok(place)
    }

    /// The hashes in this range of the table's rows that a clause selects.
    fn table_hashes(&self, link: Link<'_>, clause: &str, range: HashRange) -> Result<Vec<u64>> {
        let sql = format!(
            "COPY (SELECT {} FROM {} {clause}) TO STDOUT (FORMAT binary)",
            selected(self.columns),
            self.table.quoted()
        );
        let canonical = CanonicalRow::new(self.columns, true);
        let mut tuples = Tuples::new(self.columns.len(), canonical, false).hashing(range);
        let reading = read_rows(link.connection, &sql, &mut tuples);
        link.connection.wait_for(link.control, reading)?;
        Ok(tuples.into_hashes())
    }

    /// Reads a source, without refused rows, and passes on each row's unit, its number in the row group, and its hash if
    /// it can be encoded.
    fn source_hashes(
        &self,
        (source, refused): (&dyn Source, Option<&BadRecords>),
        columns: &Arc<Vec<Column>>,
        control: &Control<'_>,
        mut found: impl FnMut(UnitKey, u64, Option<u64>),
    ) -> Result<()> {
        let read = Read { broken_text: true, ..Read::default() };
        let mut reader = source.open(read, self.options.batch_rows);
        let buffers = Buffers::new(self.options.batch_bytes);
        let mut encoder = RejectingEncoder::new(SummingEncoder::new(Arc::clone(columns), buffers));
        let mut canonical = CanonicalRow::new(columns, true);
        if let Some(records) = self.records {
            encoder = encoder.of_records(records);
        }
        for unit in source.plan(self.unit_rows).into_iter().flatten() {
            let refused = refused.map(|records| records.rows_of(&unit)).transpose()?.unwrap_or_default();
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
    fn each_hash_is_in_one_range_and_rows_are_counted_as_often_as_they_are_there() {
        for hash in [0, 1, u64::MAX / 3, u64::MAX / 2, u64::MAX] {
            let parts = (0..3).filter(|pass| HashRange { pass: *pass, passes: 3 }.has(hash)).count();
            assert_eq!(parts, 1);
        }
        let mut hashes = Hashes::new(vec![7, 3, 7]);
        assert_eq!([3, 7, 7, 7, 5].map(|hash| hashes.take(hash)), [true, true, true, false, false]);
    }
}
