//! The shared state of a load's writers, and the places in the source of rows that the server refuses.

use sawmill_pgwire::{Server, WireError, copy_line, from_server, is_about_rows};
use sawmill_source::{Unit, UnitKey};
use tokio_postgres::error::SqlState;

use crate::encode::canonical_row::CanonicalRow;
use crate::partition::tables::is_of_partition;
use crate::records::checkpoint::Checkpoints;
use crate::table::planned_columns::PlannedColumns;
use crate::write::unit_group::UnitGroup;

/// The shared state of a load's writers.
#[derive(Debug)]
pub(crate) struct WriterPlan {
    pub server: Server,
    pub load_id: String,
    /// Takes the lock of the load's writers in a transaction.
    pub lock: String,
    pub checkpoints: Checkpoints,
    /// `COPY table (columns) FROM STDIN (FORMAT binary)`.
    pub copy: String,
    /// Whether units have as many rows as planned. If not, only reading a unit shows its number of rows.
    pub rows_planned: bool,
    /// The n-th row of a unit is the n-th row of that part of the file: no row in between is left out.
    pub rows_of_files: bool,
    /// The rows of a row group are counted in the order of their partitions.
    pub by_partition: bool,
    /// The table's columns that rows are encoded for.
    pub planned: PlannedColumns,
    /// Number of columns.
    pub columns: usize,
    /// How a row is hashed.
    pub canonical: CanonicalRow,
    /// The most rows of a unit, and of a transaction with several units.
    pub unit_rows: u64,
    /// Names of the source's files, for errors.
    pub files: Vec<String>,
}

impl WriterPlan {
    /// Where a row is in the source. Rows are counted from 0 in their row group.
    pub(crate) fn place(&self, key: UnitKey, row: u64) -> String {
        let file = self.files.get(key.file as usize).map(String::as_str).unwrap_or_default();
        let of_those = match (self.by_partition, self.rows_of_files) {
            (true, _) => " in the order of partitions",
            (false, true) => "",
            (false, false) => " of those that are loaded",
        };
        format!("{file}, row group {}, row {row}{of_those}", key.row_group)
    }
}

impl WriterPlan {
    /// Adds the row to an error about a row of the source. For constraints that the server checks at the end,
    /// such as foreign keys, it names all rows of the transaction.
    pub(crate) fn locate(&self, error: WireError, group: &UnitGroup, under_way: Option<&Unit>) -> WireError {
        let error = match error {
            WireError::Server(error) if is_about_rows(&error) && !is_of_partition(&error) => error,
            other => return other,
        };
        let line = copy_line(&error).and_then(|line| (line as u64).checked_sub(1));
        let ends = |from: &Unit, to: &Unit| {
            let last = to.key.first_row + to.rows.max(1) - 1;
            ((from.key, from.key.first_row), (to.key, last))
        };
        let (place, rows) = match line.and_then(|line| group.unit_of(line, under_way)) {
            Some((unit, row)) if self.rows_planned && row < unit.rows => {
                let row = unit.key.first_row + row;
                (self.place(unit.key, row), Some(((unit.key, row), (unit.key, row))))
            }
            Some((unit, _)) => (self.rows_of(unit, unit), Some(ends(unit, unit))),
            None => {
                let all = Self::first_and_last(group, under_way);
                (self.rows_of_all(group, under_way), all.map(|(first, last)| ends(first, last)))
            }
        };
        let located = from_server(&error, &place);
        let located = match rows.filter(|_| self.rows_planned) {
            Some((first, last)) => located.of_rows(first, last),
            None => located,
        };
        // The table lacks a partition for the row: no constraint has a name.
        let is_unrouted = error.code() == Some(&SqlState::CHECK_VIOLATION)
            && error.as_db_error().is_some_and(|db| db.constraint().is_none());
        match (located.advice().is_empty(), is_unrouted) {
            (false, _) => located,
            (true, true) => located.advise(
                "create a partition for the row (CREATE TABLE ... PARTITION OF ... FOR VALUES ...), and run the same command \
                 again; or correct the row in the source",
            ),
            (true, false) => located.advise("correct the row in the source, or reject such rows with --rejects"),
        }
        .into()
    }

    /// The rows of all units of a transaction.
    pub(crate) fn rows_of_all(&self, group: &UnitGroup, under_way: Option<&Unit>) -> String {
        let all = Self::first_and_last(group, under_way);
        all.map(|(first, last)| self.rows_of(first, last)).unwrap_or_default()
    }

    fn first_and_last<'u>(group: &'u UnitGroup, under_way: Option<&'u Unit>) -> Option<(&'u Unit, &'u Unit)> {
        let mut units = group.units.iter().map(|arrived| &arrived.unit).chain(under_way);
        let first = units.next()?;
        Some((first, units.last().unwrap_or(first)))
    }

    /// The rows from the first one of a unit to the last one of another.
    pub(crate) fn rows_of(&self, from: &Unit, to: &Unit) -> String {
        let first = self.place(from.key, from.key.first_row);
        let last = to.key.first_row + to.rows.max(1) - 1;
        match (from.key.file, from.key.row_group) == (to.key.file, to.key.row_group) {
            true => format!("{first} or one up to row {last}"),
            false => format!("{first} or one up to {}", self.place(to.key, last)),
        }
    }
}
