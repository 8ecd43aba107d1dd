//! Sources of rows: a schema, a plan of units, and readers that decode units into batches.
//!
//! A unit is a range of rows of one row group. It has the same identity in the plan and in the target's
//! record of its arrival, so a load resumes unit by unit.

use std::cmp::Reverse;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_profile::{Error, Kind, Result};
use serde::Serialize;

use crate::columns::mapping::Mapping;
use crate::condition::pruning::Known;

pub use sawmill_profile::UnitKey;

/// The name of a column of 64-bit integers: the number of each row in its row group, counted from 0.
pub const ROW_IN_GROUP: &str = "sawmill.row_in_group";

/// A range of rows of one row group. One transaction commits a unit, or several small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its identity.
    pub key: UnitKey,
    /// Number of rows.
    pub rows: u64,
    /// Its share of the row group's stored bytes.
    pub bytes: u64,
}

impl Unit {
    /// A row group as one unit.
    pub(crate) fn of_group(file: u32, row_group: u32, rows: u64, bytes: u64) -> Self {
        Self { key: UnitKey { file, row_group, first_row: 0 }, rows, bytes }
    }
}

/// Divides the units that workers load last, two units' worth of rows, into quarters of at least 16 Ki rows:
/// at the end a worker then waits for the others no longer than one of these pieces takes. If there are fewer rows than
/// in four units, all of them are divided, into eighths of at least 16 Ki rows, unless they fit one quarter.
fn taper(runs: &mut [Vec<Unit>], unit_rows: u64) {
    const FINEST: u64 = 16 * 1024;
    let all = runs.iter().flatten().fold(0u64, |all, unit| all.saturating_add(unit.rows));
    let quarter = (unit_rows / 4).max(FINEST);
    let (mut left, piece_rows) = match all > quarter && all / 4 < unit_rows {
        true => (all, all.div_ceil(8).clamp(FINEST, quarter)),
        false => (unit_rows.saturating_mul(2), quarter),
    };
    // Workers load the runs with the most rows first (see `Schedule`).
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

/// Divides row groups, each given as one unit, as a plan does.
pub fn recut(groups: Vec<Unit>, unit_rows: u64) -> Vec<Vec<Unit>> {
    let mut runs = cut(groups, unit_rows);
    taper(&mut runs, unit_rows);
    runs
}

/// Divides row groups into units of at most `unit_rows` rows.
pub(crate) fn cut(groups: Vec<Unit>, unit_rows: u64) -> Vec<Vec<Unit>> {
    groups.into_iter().map(|group| units_of_rows(group, unit_rows).collect()).collect()
}

/// Checks that at least one file is given, and no file twice; their names are in order.
///
/// # Errors
/// No file, or the first that is given twice.
pub(crate) fn check_given<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    if let Some((twice, _)) = names.clone().zip(names.clone().skip(1)).find(|(name, next)| name == next) {
        let advice = "name it once; directories and patterns may include it as well";
        return Err(Error::new(Kind::Config, "the file is given twice").at(twice).advise(advice));
    }
    match names.count() {
        0 => Err(Error::new(Kind::Config, "no file to load").advise("name one file or more")),
        _ => Ok(()),
    }
}

/// Divides a unit into units of at most `unit_rows` rows.
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

/// A file of a source: its identity, as recorded in checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Its name: for files of a file system, the canonical path.
    pub name: String,
    /// Differs only if the content differs: for Parquet the length and a hash of the footer. Equal
    /// fingerprints do not prove equal content.
    pub fingerprint: String,
    /// The file system's metadata: while it is unchanged, so is the content. `None` if unknown.
    pub stamp: Option<String>,
    /// Number of rows.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The columns that it has itself, with the types that it has them in; `None` if these are the source's.
    #[serde(skip)]
    pub columns: Option<SchemaRef>,
}

/// A source's statements about all its rows. A source over another one copies the other's, and changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The number of rows.
    pub rows: u64,
    /// Whether the number of a unit's rows is known before it is read. If not, [`Unit::rows`] counts the
    /// source rows that they are made from.
    pub knows_rows: bool,
    /// What decides the rows of its files, a part of a load's identity.
    pub mapping: Mapping,
    /// The order of the rows over all files, a part of a load's identity: a unit then has rows of any files, and the
    /// number of the first. Empty for rows in the order of the files.
    pub order: String,
    /// Whether it has all (matching) rows of each of its files, and not only a number of rows over all files.
    pub whole_files: bool,
    /// Whether one worker must load the units of an inner list of the plan, in their order.
    pub keeps_runs: bool,
    /// Whether units count all rows of their row groups, so that a row's position in a unit determines its
    /// number.
    pub counts_all_rows: bool,
    /// Whether a fingerprint is a hash of all bytes of its file, so that equal ones prove equal content.
    pub hashes_content: bool,
    /// Decoded bytes of a row, the mean of the row group where it is largest; 0 if unknown.
    pub row_bytes: u64,
}

impl Facts {
    /// The facts of a source that has all rows of its files, in any order of units.
    pub fn of_files(files: &[SourceFile], mapping: &Mapping) -> Self {
        Self {
            rows: files.iter().map(|file| file.rows).sum(),
            knows_rows: true,
            mapping: mapping.clone(),
            order: String::new(),
            whole_files: true,
            keeps_runs: false,
            counts_all_rows: true,
            hashes_content: false,
            row_bytes: 0,
        }
    }

    /// Which rows and columns it has, how it reads them, and in which order rows come.
    pub fn arrangement(&self) -> String {
        format!("{}{}", self.mapping.to_text(), self.order)
    }
}

/// Where a row is in the files of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// Its number in its row group, where all rows count, from 0.
    pub row: u64,
    /// Its place, if people know it by something other than that number, such as a line.
    pub name: Option<String>,
}

/// The columns and rows that a reader reads. A source over another one passes it on, and changes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read<'c> {
    /// These columns, given by their positions in the schema; `None` for all.
    pub columns: Option<&'c [usize]>,
    /// Adds [`ROW_IN_GROUP`] as the last column of a batch whose rows do not follow one another in the row group.
    pub numbered: bool,
    /// Text that is not UTF-8 comes as bytes, in a batch whose column then is binary: what encodes the batch finds the
    /// rows. Otherwise it is an error.
    pub broken_text: bool,
}

/// A source of rows. No method that a source implements has a default: one over another source has to answer each
/// question, and cannot hide the other's answer by accident. The methods with a body only call those.
pub trait Source: Sync {
    /// Returns the schema of every batch. A 16-byte binary field that contains UUIDs has the Arrow extension
    /// name `arrow.uuid`.
    fn schema(&self) -> &SchemaRef;

    /// Returns the files, in a fixed order.
    fn files(&self) -> &[SourceFile];

    /// Returns the statements about all rows.
    fn facts(&self) -> Facts;

    /// Returns all rows as units of at most `unit_rows` rows, the last of them smaller. The units of an inner
    /// list follow one another in the same row group, so that a reader continues from one to the next without
    /// seeking.
    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>>;

    /// Returns the statistics of a column in each row group of a file without reading it. The column is
    /// given by its position in the schema. Empty if nothing is known.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not the one that was opened.
    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>>;

    /// Checks that the files are still those that were opened.
    ///
    /// # Errors
    /// A file that was written to or replaced, with its name.
    fn check_unchanged(&self) -> Result<()>;

    /// Returns where rows of a row group are. The rows ascend and are counted as units count them; the answer ends
    /// before the first row whose place cannot be determined. `named`: with their names for messages, for which it
    /// reads text. It may have to read the row group.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>>;

    /// Returns a reader of batches of at most `batch_rows` rows. Each thread uses its own reader.
    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_>;

    /// Returns the number of rows.
    fn rows(&self) -> u64 {
        self.facts().rows
    }

    /// Returns the name of a unit's file, for messages; for rows of several files in another order, of all files.
    fn name_of(&self, file: u32) -> String {
        let files = self.files();
        let name = files.get(file as usize).map(|file| file.name.clone()).unwrap_or_default();
        match self.facts().order.is_empty() || files.len() < 2 {
            true => name,
            false => format!("{name} and {} others", files.len() - 1),
        }
    }

    /// Returns where a row is, counted as units count, for messages; `None` if it cannot be determined.
    fn place_of_row(&self, group: UnitKey, row: u64) -> Option<RowPlace> {
        self.locate(group, &[row], true).ok()?.pop()
    }

    /// Returns the numbers of rows in their row group, as [`locate`](Self::locate).
    ///
    /// # Errors
    /// A file that cannot be read.
    fn rows_in_group(&self, group: UnitKey, rows: &[u64]) -> Result<Vec<u64>> {
        Ok(self.locate(group, rows, false)?.into_iter().map(|place| place.row).collect())
    }

    /// Returns a reader of all columns.
    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.open(Read::default(), batch_rows)
    }

    /// Returns a reader of only these columns, given by their positions in the schema.
    fn reader_of(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.open(Read { columns: Some(columns), ..Read::default() }, batch_rows)
    }
}

/// The places of rows whose units count all rows of their row group.
pub fn counted_places(rows: &[u64]) -> Vec<RowPlace> {
    rows.iter().map(|row| RowPlace { row: *row, name: None }).collect()
}

/// A reader that drops columns after reading them.
struct Projected<'a> {
    reader: Box<dyn UnitReader + 'a>,
    columns: Vec<usize>,
}

impl UnitReader for Projected<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.reader.start(unit)
    }

    fn expect(&mut self, unit: &Unit) {
        self.reader.expect(unit);
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.reader.next_batch()? else { return Ok(None) };
        batch.project(&self.columns).map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()))
    }

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}

impl Read<'_> {
    /// Restricts `reader`, for a source that cannot number rows or read fewer columns.
    pub fn of<'a>(self, reader: Box<dyn UnitReader + 'a>) -> Box<dyn UnitReader + 'a> {
        match self.columns {
            _ if self.numbered => Box::new(NotNumbered),
            Some(columns) => Box::new(Projected { reader, columns: columns.to_vec() }),
            None => reader,
        }
    }
}

/// The reader of a source whose rows are not numbered: it starts no unit.
struct NotNumbered;

impl UnitReader for NotNumbered {
    fn start(&mut self, _unit: &Unit) -> Result<()> {
        Err(Error::new(Kind::Source, "the rows of this source are not numbered"))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
}

/// Reads one unit after the other.
pub trait UnitReader: Send {
    /// Moves to the start of a unit; cheap if it follows the unit read last.
    fn start(&mut self, unit: &Unit) -> Result<()>;

    /// A unit that a reader of this source will probably start next: its bytes may be requested ahead.
    fn expect(&mut self, _unit: &Unit) {}

    /// Returns the next batch of the unit, `None` at its end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>>;

    /// Returns the row, counted as units count, that a row of the last batch was made from; `None` if the rows of
    /// batches are the rows of the unit, one after the other.
    fn row_in_unit(&self, _in_batch: usize) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(row_groups: &[u64], unit_rows: u64) -> Vec<Vec<u64>> {
        let groups = (0u32..).zip(row_groups);
        let groups = groups.map(|(group, rows)| Unit::of_group(0, group, *rows, rows * 10));
        let runs = recut(groups.collect(), unit_rows);
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
    fn the_units_loaded_last_are_smaller() {
        const K: u64 = 1024;
        // Between two equal row groups the later is loaded last; a smaller one is loaded after both.
        assert_eq!(plan(&[256 * K, 256 * K], 128 * K), [vec![128 * K; 2], vec![32 * K; 8]]);
        assert_eq!(plan(&[100 * K, 412 * K], 128 * K)[0], [32 * K, 32 * K, 32 * K, 4 * K]);
        assert_eq!(plan(&[100 * K, 412 * K], 128 * K)[1][..3], [128 * K, 128 * K, 32 * K]);
        // Fewer rows than four units become eighths: the workers end with almost the same number of rows.
        assert_eq!(plan(&[200 * K], 256 * K), [vec![25 * K; 8]]);
        assert_eq!(plan(&[512 * K], 256 * K), [vec![64 * K; 8]]);
        assert_eq!(
            plan(&[128 * K, 256 * K], 256 * K),
            [vec![48 * K, 48 * K, 32 * K], [vec![48 * K; 5], vec![16 * K]].concat()]
        );
        assert_eq!(plan(&[64 * K], 256 * K), [[64 * K]]);
        // Few rows become few pieces, and units that are already small stay whole.
        assert_eq!(plan(&[20 * K], 16 * K), [[16 * K, 4 * K]]);
        assert_eq!(plan(&[1000, 70], 100), [vec![100; 10], vec![70]]);
        assert_eq!(plan(&[1 << 40], u64::MAX), [[1 << 40]]);
        assert!(plan(&[], 128 * K).is_empty());
    }
}
