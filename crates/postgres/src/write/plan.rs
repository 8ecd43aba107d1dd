//! What the writers of a load share: how units are copied, grouped and recorded, and where their rows go.

use std::sync::Arc;

use sawmill_loader::{Arrived, TableName};
use sawmill_pgwire::{Server, WireError, copy_line, from_server, is_about_rows};
use sawmill_source::{Error, Kind, Result, Unit, UnitKey};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use crate::encode::canonical_row::CanonicalRow;
use crate::partition::survey::Partitions;
use crate::partition::tables::is_of_partition;
use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue::{Link, find};
use crate::table::part_tables::Numbers;
use crate::table::planned_columns::PlannedColumns;

/// The shared state of a load's writers.
#[derive(Debug)]
pub(crate) struct WriterPlan {
    pub server: Server,
    pub load_id: String,
    /// Takes the lock of the load's writers in a transaction.
    pub lock: String,
    pub checkpoints: Checkpoints,
    /// What a connection makes before it copies.
    pub before_copy: Option<String>,
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

/// How the part tables of a load are created and filled.
pub(crate) struct PartPlan {
    /// The table whose partitions the parts become.
    pub parent: TableName,
    /// The OID of the table that they will be attached to.
    pub parent_oid: u32,
    /// The columns' names for SQL.
    pub columns: String,
    /// `CREATE TABLE` of a part.
    pub create: Box<dyn Fn(&TableName) -> String + Send + Sync>,
    /// The partitions that parts become: each part gets all rows of one.
    pub partitions: Arc<Partitions>,
    /// The parts' numbers.
    pub numbers: Numbers,
}

/// Where a connection's rows go.
pub(crate) enum Destination {
    /// The table that all connections share, by this COPY.
    Shared(Statement),
    /// Part tables of the connection's own, one after the other.
    Parts(Arc<PartPlan>),
}

/// The table that a transaction copies into.
pub(crate) struct OpenTable {
    pub copy: Statement,
    /// The part table that the transaction has created, if any.
    pub part: Option<OpenPart>,
}

/// A part table that takes rows.
pub(crate) struct OpenPart {
    pub oid: u32,
    /// The partition that it becomes.
    pub partition: u32,
    /// The number of rows, rejected ones included, with which it is complete.
    complete: u64,
}

impl Destination {
    /// The partition of a unit, if connections fill part tables.
    pub(crate) fn partition_of(&self, unit: &Unit) -> Option<u32> {
        let Self::Parts(plan) = self else { return None };
        plan.partitions.share_of(unit.key).map(|share| share.partition)
    }

    /// Begins a transaction that copies rows, into a part table if they belong to a `partition`. With
    /// `savepoints` it copies behind savepoints. `lock` is the statement that takes the lock of writers.
    pub(crate) fn begin(
        &self,
        partition: Option<u32>,
        savepoints: bool,
        lock: &str,
        link: Link<'_>,
    ) -> Result<OpenTable> {
        // A deferred constraint would fail the commit, which does not say which row it was.
        // The snapshot of another isolation level is older than the lock that COPY waits for, so that the comparison
        // of the columns with the plan would miss what another session has changed until then.
        let constraints = if savepoints { "; SET CONSTRAINTS ALL IMMEDIATE" } else { "" };
        let begin = &format!("BEGIN ISOLATION LEVEL READ COMMITTED; {lock}{constraints}");
        match self {
            Self::Shared(copy) => {
                link.batch(begin)?;
                Ok(OpenTable { copy: copy.clone(), part: None })
            }
            Self::Parts(plan) => {
                let format = if savepoints { "FORMAT binary" } else { "FORMAT binary, FREEZE" };
                let partition = partition.ok_or_else(|| {
                    Error::new(Kind::Changed, "a unit belongs to no partition of the table")
                        .at(format!("table {}, {}", plan.parent, link.place()))
                        .advise("forget the load (sawmill load forget) and start it from the beginning")
                })?;
                plan.begin(partition, begin, format, link)
            }
        }
    }
}

impl PartPlan {
    /// Begins a transaction that creates and fills a part table.
    fn begin(&self, partition: u32, begin: &str, format: &str, link: Link<'_>) -> Result<OpenTable> {
        let name = self.parent.part(self.numbers.next());
        let (create, check) =
            ((self.create)(&name), self.partitions.add_check(&name, partition, self.parent_oid));
        let complete = self.partitions.rows_of(partition).unwrap_or(0);
        link.batch(&format!("{begin}; {create}; {check}"))?;
        let Some(found) = find(link, &name)? else {
            return Err(Error::new(Kind::Server, "the table that was just created is missing")
                .at(format!("table {name}, {}", link.place())));
        };
        let copy = format!("COPY {} ({}) FROM STDIN ({format})", name.quoted(), self.columns);
        let copy = link.prepare(&copy)?;
        Ok(OpenTable { copy, part: Some(OpenPart { oid: found.oid, partition, complete }) })
    }
}

impl OpenTable {
    /// The partition that the table becomes.
    pub(crate) fn partition(&self) -> Option<u32> {
        self.part.as_ref().map(|part| part.partition)
    }

    /// Whether it is time to commit the transaction.
    pub(crate) fn is_full(&self, group: &UnitGroup, plan: &WriterPlan) -> bool {
        match &self.part {
            Some(part) => group.planned_rows() >= part.complete,
            None => group.is_full(plan.unit_rows),
        }
    }

    /// Whether the transaction may be committed: a partition only with all of its rows.
    pub(crate) fn is_whole(&self, group: &UnitGroup) -> bool {
        self.part.as_ref().is_none_or(|part| group.planned_rows() == part.complete)
    }
}

/// The statement that records units, prepared on a connection.
pub(crate) struct UnitRecorder {
    insert: Statement,
    load_id: String,
    /// How long the user lets statements wait for locks.
    lock_timeout: String,
}

impl UnitRecorder {
    pub(crate) fn new(plan: &WriterPlan, link: Link<'_>) -> Result<Self> {
        // PostgreSQL's nested arrays are rectangular and unnest to scalars, so each unit's counts are sent as
        // text.
        let insert = format!(
            "INSERT INTO {} (load_id, file, row_group, first_row, rows, content_sum, non_null, part_oid) \
             SELECT $1::text, unit.file, unit.row_group, unit.first_row, unit.rows, unit.content_sum, \
                    unit.non_null::bigint[], $8::bigint \
             FROM unnest($2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) \
                  AS unit (file, row_group, first_row, rows, content_sum, non_null) \
             WHERE {} AND pg_catalog.set_config('lock_timeout', coalesce(nullif($9::text, '0'), '{}'), true) <> '' \
             RETURNING pg_catalog.set_config('lock_timeout', $9::text, true)",
            plan.checkpoints.units_table(),
            plan.planned.are_there("$8::bigint"),
            // A process that has stopped holds the records of its transaction for ever.
            plan.server.waits_for().as_millis().clamp(1, i32::MAX as u128)
        );
        let (insert, load_id) = (link.prepare(&insert)?, plan.load_id.clone());
        Ok(Self { insert, load_id, lock_timeout: link.value("SELECT current_setting('lock_timeout')", &[])? })
    }

    /// Records units in the open transaction, and the OID of the part table that holds them, if there is one.
    /// Returns false and records nothing if the table's columns no longer match the plan.
    pub(crate) async fn record(
        &self,
        client: &Client,
        units: &[Arrived],
        part: Option<u32>,
    ) -> Result<bool, tokio_postgres::Error> {
        let keys = || units.iter().map(|arrived| arrived.unit.key);
        let tallies = || units.iter().map(|arrived| &arrived.tally);
        let files: Vec<i32> = keys().map(|key| key.file as i32).collect();
        let row_groups: Vec<i32> = keys().map(|key| key.row_group as i32).collect();
        let first_rows: Vec<i64> = keys().map(|key| key.first_row as i64).collect();
        let rows: Vec<i64> = tallies().map(|tally| tally.rows as i64).collect();
        let sums: Vec<String> = tallies().map(|tally| tally.content_sum.to_string()).collect();
        let counts: Vec<String> = tallies().map(|tally| array(&tally.non_null)).collect();
        let part = part.map(i64::from);
        let recorded = client
            .execute(
                &self.insert,
                &[
                    &self.load_id,
                    &files,
                    &row_groups,
                    &first_rows,
                    &rows,
                    &sums,
                    &counts,
                    &part,
                    &self.lock_timeout,
                ],
            )
            .await?;
        Ok(recorded == units.len() as u64)
    }
}

/// The error for a record that another process holds for longer than the patience, with that process.
pub(crate) fn held_record(error: Error, plan: &WriterPlan, link: Link<'_>) -> Error {
    if !error.what().ends_with("[55P03]") {
        return error;
    }
    let sql = "SELECT a.pid, concat_ws(', ', nullif(a.application_name, ''), a.state), coalesce(extract(epoch FROM now() - a.state_change), 0)::bigint \
               FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid) \
               WHERE l.relation = pg_catalog.to_regclass($1) AND l.mode = 'RowExclusiveLock' AND l.granted \
               AND a.pid <> pg_catalog.pg_backend_pid() ORDER BY a.xact_start LIMIT 1";
    let held: Result<Option<(i32, String, i64)>> = link.first(sql, &[&plan.checkpoints.units_table()]);
    let Ok(Some((pid, program, seconds))) = held else { return error };
    let what = format!(
        "process {pid} of the server ({program}) holds the record of a unit, and has done nothing for {seconds} s: {}",
        error.what()
    );
    Error::new(error.kind(), what).at(error.place()).advise(format!(
        "end it with SELECT pg_terminate_backend({pid}), or on the server's machine if it was stopped (kill -CONT {pid}, or \
         kill -KILL {pid}, which restarts the server); then run the same command again"
    ))
}

/// Numbers as a PostgreSQL array literal.
fn array(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

/// Limits of a transaction with several units; its last unit may exceed them. After a lost connection or a
/// value that cannot be loaded, the units of the open transaction are sent again, so they are kept few.
const MAX_ROWS: u64 = 64 << 10;
const MAX_BYTES: u64 = 8 << 20;
const MAX_UNITS: usize = 512;

/// The units of the open transaction.
#[derive(Default)]
pub(crate) struct UnitGroup {
    pub units: Vec<Arrived>,
    /// Rows that were sent and not rejected.
    pub rows: u64,
    bytes: u64,
}

impl UnitGroup {
    /// Adds a unit whose rows took `bytes` bytes.
    pub(crate) fn add(&mut self, unit: Arrived, bytes: u64) {
        self.rows += unit.tally.rows;
        self.bytes += bytes;
        self.units.push(unit);
    }

    /// Whether it is time to commit the units. No unit has more than `unit_rows` rows.
    pub(crate) fn is_full(&self, unit_rows: u64) -> bool {
        let most = MAX_ROWS.min(unit_rows);
        // Planned rows also count, since a unit may have no rows in a flat table.
        self.rows.max(self.planned_rows()) >= most || self.bytes >= MAX_BYTES || self.units.len() >= MAX_UNITS
    }

    /// Rows of the units as planned, rejected ones included.
    pub(crate) fn planned_rows(&self) -> u64 {
        self.units.iter().map(|arrived| arrived.unit.rows).sum()
    }

    /// Finds the unit of the n-th row that was sent, counted from 0, and the row's number in it. Rows after
    /// the group's belong to the unit `under_way`.
    pub(crate) fn unit_of<'u>(&'u self, row: u64, under_way: Option<&'u Unit>) -> Option<(&'u Unit, u64)> {
        let mut row = row;
        for Arrived { unit, tally } in &self.units {
            match row.checked_sub(tally.rows) {
                None => return Some((unit, row)),
                Some(behind) => row = behind,
            }
        }
        under_way.map(|unit| (unit, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawmill_loader::Tally;
    use sawmill_source::UnitKey;

    fn unit(file: u32, rows: u64) -> Unit {
        Unit { key: UnitKey { file, row_group: 0, first_row: 0 }, rows, bytes: 0 }
    }

    fn group(units: &[u64]) -> UnitGroup {
        let mut group = UnitGroup::default();
        for (file, rows) in (0..).zip(units) {
            group
                .add(Arrived { unit: unit(file, *rows), tally: Tally { rows: *rows, ..Tally::empty(0) } }, 1);
        }
        group
    }

    #[test]
    fn a_group_is_full_with_as_many_rows_as_one_unit_may_have() {
        assert!(!group(&[40, 59]).is_full(100));
        assert!(group(&[40, 60]).is_full(100));
        assert!(group(&[1000]).is_full(100));
        assert!(!group(&[60_000]).is_full(1 << 20));
        assert!(group(&[60_000, 6000]).is_full(1 << 20));
        assert!(group(&[1; MAX_UNITS]).is_full(1 << 20));
    }

    #[test]
    fn a_row_that_was_sent_is_found_in_its_unit() {
        let (group, last) = (group(&[3, 0, 2]), unit(9, 5));
        let found = |row| group.unit_of(row, Some(&last)).map(|(unit, row)| (unit.key.file, row));
        assert_eq!([0, 2, 3, 4].map(found), [(0, 0), (0, 2), (2, 0), (2, 1)].map(Some));
        assert_eq!(found(6), Some((9, 1)));
        assert_eq!(group.unit_of(5, None).map(|(unit, _)| unit.key.file), None);
    }
}
