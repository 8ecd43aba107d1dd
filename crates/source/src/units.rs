//! Where rows come from: a schema, a plan of units, and readers that turn units into batches.
//!
//! A unit is a range of rows of one row group. It keeps its identity from the plan to the record
//! in the target that says it has arrived, so it is also the grain of resuming.

use std::cmp::Reverse;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde::Serialize;

use crate::condition::pruning::Known;
use crate::error::{Error, Kind, Result};

/// A unit's identity: stable for a source as long as its files do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct UnitKey {
    /// Position of the file in [`Source::files`].
    pub file: u32,
    /// Row group in the file.
    pub row_group: u32,
    /// First row, counted from the start of the row group; of the rows that are meant, where not all are.
    pub first_row: u64,
}

/// A column of 64-bit integers: the number of each row in its row group, counted from 0.
pub const ROW_IN_GROUP: &str = "sawmill.row_in_group";

/// A range of rows of one row group: what is committed in one transaction, alone or with other small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its identity.
    pub key: UnitKey,
    /// Number of rows.
    pub rows: u64,
    /// Its share of the row group's stored bytes.
    pub bytes: u64,
}

/// A row group of `rows` rows and `bytes` stored bytes, cut into units of at most `unit_rows` rows.
pub(crate) fn units_of(file: u32, row_group: u32, rows: u64, bytes: u64, unit_rows: u64) -> Vec<Unit> {
    let key = UnitKey { file, row_group, first_row: 0 };
    units_of_rows(Unit { key, rows, bytes }, unit_rows).collect()
}

/// Cuts the units that workers come to last, two units' worth of rows, into quarters, but not below 16 Ki rows: a worker
/// that finds nothing left waits for the others no longer than such a piece takes.
pub(crate) fn taper(runs: &mut [Vec<Unit>], unit_rows: u64) {
    const FINEST: u64 = 16 * 1024;
    let piece_rows = (unit_rows / 4).max(FINEST);
    let mut left = unit_rows.saturating_mul(2);
    // Those with the most rows are taken first (see `Schedule`).
    let rows_of = |run: &Vec<Unit>| run.iter().map(|unit| unit.rows).sum::<u64>();
    let mut order: Vec<(u64, Reverse<usize>)> =
        runs.iter().enumerate().map(|(i, run)| (rows_of(run), Reverse(i))).collect();
    order.sort_unstable();
    for run in order.into_iter().map(|(_, Reverse(i))| i) {
        let Some(run) = runs.get_mut(run).filter(|_| left > 0) else { return };
        let mut whole = run.len();
        while left > 0 && whole > 0 {
            whole -= 1;
            left = left.saturating_sub(run[whole].rows);
        }
        for unit in run.split_off(whole) {
            run.extend(units_of_rows(unit, piece_rows));
        }
    }
}

/// Row groups, each given as one unit, cut as a plan cuts them.
pub fn recut(groups: Vec<Unit>, unit_rows: u64) -> Vec<Vec<Unit>> {
    let cut = |group| units_of_rows(group, unit_rows).collect();
    let mut runs: Vec<Vec<Unit>> = groups.into_iter().map(cut).collect();
    taper(&mut runs, unit_rows);
    runs
}

/// A unit cut into units of at most `unit_rows` rows.
fn units_of_rows(unit: Unit, unit_rows: u64) -> impl Iterator<Item = Unit> {
    let Unit { key, rows, bytes } = unit;
    let unit_rows = unit_rows.max(1);
    (0..rows.div_ceil(unit_rows)).map(move |piece| {
        let before = piece * unit_rows;
        let take = unit_rows.min(rows - before);
        let share = (u128::from(bytes) * u128::from(take) / u128::from(rows)) as u64;
        Unit { key: UnitKey { first_row: key.first_row + before, ..key }, rows: take, bytes: share }
    })
}

/// One file of a source, as its identity goes into checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// What the file is called: for files of a file system the canonical path.
    pub name: String,
    /// Another one shows that the content is another; for Parquet the length and a hash of the footer. The same does not
    /// show that it is the same.
    pub fingerprint: String,
    /// What the file system says of it: as long as it is the same, so is the content. None where that is not known.
    pub stamp: Option<String>,
    /// Rows in it.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A source of rows.
pub trait Source: Sync {
    /// The schema of every batch. A 16-byte binary field that holds UUIDs carries the Arrow
    /// extension name `arrow.uuid`.
    fn schema(&self) -> &SchemaRef;

    /// The files, in a fixed order.
    fn files(&self) -> &[SourceFile];

    /// How many rows there are.
    fn rows(&self) -> u64 {
        self.files().iter().map(|file| file.rows).sum()
    }

    /// Whether a unit's rows are known before it is read. Where they are not, [`Unit::rows`] counts what the rows
    /// are made of.
    fn knows_rows(&self) -> bool {
        true
    }

    /// How columns were chosen and renamed, as part of a load's identity; empty where nothing was.
    fn mapping(&self) -> String {
        String::new()
    }

    /// Whether its rows are all those of its files that are meant, and not a number of them over all files.
    fn has_whole_files(&self) -> bool {
        true
    }

    /// All rows, cut into units of at most `unit_rows` rows, the last of them into smaller ones. Units of one inner
    /// list follow one another in the same row group, so that a reader goes from one to the next without seeking.
    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>>;

    /// Whether the units of one list of the plan stay together: they are loaded by one worker, in their order.
    fn keeps_runs(&self) -> bool {
        false
    }

    /// What is known of a column in each row group of a file without reading it, by the column's position in the
    /// schema; empty where nothing is.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not the one that was opened.
    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    /// Makes sure that the files are still those that were opened.
    ///
    /// # Errors
    /// A file was written to or replaced; its name.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// The number in its row group of the `row`-th row of a unit, counted from 0; none where it cannot be
    /// told. Only for messages: it may have to read the row group.
    fn row_in_group(&self, unit: UnitKey, row: u64) -> Option<u64> {
        Some(unit.first_row + row)
    }

    /// The same of many rows of a row group, ascending, counted as units count; where some of them cannot be told, as
    /// far as they can.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn rows_in_group(&self, unit: UnitKey, rows: &[u64]) -> Result<Vec<u64>> {
        let group = UnitKey { first_row: 0, ..unit };
        Ok(rows.iter().map_while(|row| self.row_in_group(group, *row)).collect())
    }

    /// Whether rows that were put aside are none of the source's any more.
    fn lacks_rejected(&self) -> bool {
        false
    }

    /// Whether units count all rows of their row groups, so that a unit's row is known by its number.
    fn counts_all_rows(&self) -> bool {
        true
    }

    /// A reader of batches of at most `batch_rows` rows. Each thread has its own.
    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_>;

    /// The same whose batches have one more column at their end, `ROW_IN_GROUP`, wherever they do not hold the unit's
    /// rows as they stand in the row group, one after the other.
    fn numbering_reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.reader(batch_rows)
    }

    /// The same with these columns alone, by their positions in the schema.
    fn reader_of(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(Projected { reader: self.reader(batch_rows), columns: columns.to_vec() })
    }
}

/// A reader that leaves out columns after they were read.
struct Projected<'a> {
    reader: Box<dyn UnitReader + 'a>,
    columns: Vec<usize>,
}

impl UnitReader for Projected<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.reader.start(unit)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.reader.next_batch()? else { return Ok(None) };
        batch.project(&self.columns).map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()))
    }

    fn row_in_group(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_group(in_batch)
    }
}

/// Reads one unit after the other.
pub trait UnitReader {
    /// Goes to the start of a unit; cheap when it follows the unit read last.
    fn start(&mut self, unit: &Unit) -> Result<()>;

    /// The next batch of the unit, `None` at its end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>>;

    /// The row of the row group that a row of the last batch is of; `None` where batches hold the unit's rows as
    /// they are, one after the other.
    fn row_in_group(&self, _in_batch: usize) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(row_groups: &[u64], unit_rows: u64) -> Vec<Vec<u64>> {
        let mut runs: Vec<Vec<Unit>> = (0u32..)
            .zip(row_groups)
            .map(|(group, rows)| units_of(0, group, *rows, rows * 10, unit_rows))
            .collect();
        taper(&mut runs, unit_rows);
        for (run, rows) in runs.iter().zip(row_groups) {
            let mut next = 0;
            for unit in run {
                assert_eq!(unit.key.first_row, next);
                assert_eq!(unit.bytes, unit.rows * 10);
                next += unit.rows;
            }
            assert_eq!(next, *rows, "all rows are in one unit");
        }
        runs.iter().map(|run| run.iter().map(|unit| unit.rows).collect()).collect()
    }

    #[test]
    fn what_is_taken_last_comes_in_smaller_pieces() {
        const K: u64 = 1024;
        // The later of two that are equal, and before it what is less.
        assert_eq!(plan(&[256 * K, 256 * K], 128 * K), [vec![128 * K; 2], vec![32 * K; 8]]);
        assert_eq!(plan(&[100 * K, 300 * K], 128 * K)[0], [32 * K, 32 * K, 32 * K, 4 * K]);
        assert_eq!(plan(&[100 * K, 300 * K], 128 * K)[1][..2], [128 * K, 32 * K]);
        // Few rows are few pieces, and nothing is cut where units are all that there is.
        assert_eq!(plan(&[20 * K], 16 * K), [[16 * K, 4 * K]]);
        assert_eq!(plan(&[1000, 70], 100), [vec![100; 10], vec![70]]);
        assert_eq!(plan(&[1 << 40], u64::MAX), [[1 << 40]]);
        assert!(plan(&[], 128 * K).is_empty());
    }
}
