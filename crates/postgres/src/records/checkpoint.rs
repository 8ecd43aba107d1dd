//! The records of loads on the server: the tables `loads` and `units` in schema `_sawmill`, or in another
//! one.
//!
//! A unit's record is written in the transaction that copies the unit's rows, so either both exist or
//! neither. A load's record holds what its units refer to: the files, the table and the size of units. While
//! a load runs it holds an advisory lock, so that it does not run twice at once. If the lock fails, the
//! primary key of `units` still lets only one of two transactions commit a unit.
//!
//! A crash of the server empties unlogged tables. So `units_unlogged`, which the same crash empties, records
//! the units of loads into such tables: records and rows exist together, or neither does.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::time::{Duration, Instant};

use sawmill_loader::{LoadFacts, LoadRecord, RecordedFiles, RecordedUnit, Tally, check_name, quote};
use sawmill_pgwire::Connection;
use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Mapping, Result, Unit, UnitKey};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::records::parts::writers_of;
use crate::table::catalogue::{FromRow, Link, Parameters};

/// How long a new run waits until the server notices that a killed predecessor is gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The table of units, and the one of units in unlogged tables.
pub(crate) const UNITS: &str = "units";
pub(crate) const UNITS_UNLOGGED: &str = "units_unlogged";

/// The tables of records in a schema.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    pub(crate) schema: String,
    /// The load's table is unlogged.
    pub unlogged: bool,
}

/// The records, as one connection reads and writes them.
#[derive(Clone, Copy)]
pub(crate) struct Records<'c> {
    checkpoints: &'c Checkpoints,
    pub link: Link<'c>,
}

impl Deref for Records<'_> {
    type Target = Checkpoints;

    fn deref(&self) -> &Checkpoints {
        self.checkpoints
    }
}

impl Checkpoints {
    /// The tables in a schema.
    ///
    /// # Errors
    /// An invalid name, or the name of a schema that the server reserves.
    pub(crate) fn new(schema: &str) -> Result<Self> {
        let own = schema.starts_with("pg_") || schema == "information_schema";
        let checked = check_name(schema);
        match checked.err().or(own.then(|| "schema names of this form are reserved by the server".to_owned()))
        {
            None => Ok(Self { schema: schema.to_owned(), unlogged: false }),
            Some(what) => Err(Error::new(Kind::Config, what)
                .at(format!("schema {schema:?} for the records of loads"))
                .advise("choose another name")),
        }
    }

    /// The records of a load into an unlogged table, or into a logged one.
    pub(crate) fn of_unlogged(self, unlogged: bool) -> Self {
        Self { unlogged, ..self }
    }

    /// The table that the load's units are recorded in.
    pub(crate) fn units_table(&self) -> String {
        self.table(if self.unlogged { UNITS_UNLOGGED } else { UNITS })
    }

    /// The units of all loads.
    pub(crate) fn all_units(&self) -> String {
        let (units, unlogged) = (self.table(UNITS), self.table(UNITS_UNLOGGED));
        format!("(SELECT * FROM {units} UNION ALL SELECT * FROM {unlogged})")
    }

    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}.{}", quote(&self.schema), quote(name))
    }

    /// The query for one unit, by load, file, row group and first row.
    pub(crate) fn select_unit(&self) -> String {
        format!(
            "SELECT rows, content_sum, non_null FROM {} u \
             WHERE load_id = $1 AND file = $2 AND row_group = $3 AND first_row = $4",
            self.all_units()
        )
    }

    /// The records over a connection.
    pub(crate) fn on<'c>(&'c self, link: Link<'c>) -> Records<'c> {
        Records { checkpoints: self, link }
    }
}

impl Records<'_> {
    /// A sum of rows, from the columns of a record.
    pub(crate) fn tally(&self, sum: (i64, String, Vec<i64>)) -> Result<Tally> {
        tally(self.link.place(), sum)
    }

    /// Takes a load's lock in the open transaction, unless another run holds it.
    pub(crate) fn try_lock(&self, id: &str) -> Result<bool> {
        self.link.value("SELECT pg_try_advisory_xact_lock($1)", &[&advisory_key(id)])
    }

    /// Takes the lock of a load for as long as the connection lives. Only one run can hold it.
    pub(crate) fn lock(&self, id: &str) -> Result<()> {
        let (lock, end) = ("SELECT pg_try_advisory_lock($1)", Instant::now() + PATIENCE);
        match self.wait_for_lock(lock, id, end)? {
            true => Ok(()),
            false => Err(self.busy("the same load is already running", "wait until it ends, or stop it")),
        }
    }

    pub(super) fn busy(&self, what: impl Into<String>, advice: &str) -> Error {
        Error::new(Kind::Busy, what).at(self.link.place()).advise(advice)
    }

    /// Holds the locks of all loads into a table, by its name, until the transaction ends. A load that ran
    /// during the transaction would load rows and then lose their records.
    pub(crate) fn lock_target(&self, target: &str) -> Result<()> {
        let loads = self.table("loads");
        let sql = format!("SELECT load_id FROM {loads} WHERE target = $1 OR {}", self.is_of_lists());
        let end = Instant::now() + PATIENCE;
        for id in self.link.list::<String>(&sql, &[&target])? {
            if !self.wait_to_lock_until(end, &id)? {
                return Err(Error::new(Kind::Busy, "a load into the table is running")
                    .at(format!("table {target}, {}", self.link.place()))
                    .advise("wait until it ends, or stop it; then run the same command again"));
            }
        }
        Ok(())
    }

    /// Takes a load's lock in the open transaction. Waits a while for a run that was killed, and for its commits; false if
    /// another run holds it.
    pub(crate) fn wait_to_lock(&self, id: &str) -> Result<bool> {
        self.wait_to_lock_until(Instant::now() + PATIENCE, id)
    }

    /// Holds one lock of the server for each load: the load's own lock keeps new writers out.
    fn wait_to_lock_until(&self, end: Instant, id: &str) -> Result<bool> {
        let writers = writers_of(id);
        let is_free = self.wait_for_lock("SELECT pg_try_advisory_xact_lock($1)", id, end)?
            && self.wait_for_lock("SELECT pg_try_advisory_lock($1)", &writers, end)?;
        Ok(is_free && self.link.value("SELECT pg_advisory_unlock($1)", &[&advisory_key(&writers)])?)
    }

    /// Tries to take the advisory lock of a load by the statement `lock` until `end`. Returns whether it was
    /// granted.
    pub(super) fn wait_for_lock(&self, lock: &str, id: &str, end: Instant) -> Result<bool> {
        loop {
            if self.link.value(lock, &[&advisory_key(id)])? {
                return Ok(true);
            }
            if Instant::now() > end {
                return Ok(false);
            }
            self.link.control.sleep(Duration::from_millis(200))?;
        }
    }

    /// The records of the loads `l` that a condition selects.
    pub(crate) fn loads(&self, condition: &str, parameters: Parameters<'_>) -> Result<Vec<LoadRecord>> {
        let sql = format!(
            "SELECT load_id, mode, table_oid, unit_rows, completed IS NOT NULL, files, fingerprints, stamps, \
             before_rows, before_sum, before_non_null, mapping, facts FROM {} l WHERE {condition}",
            self.table("loads")
        );
        self.link.rows(&sql, parameters)
    }

    /// Reads a load's record.
    pub(crate) fn find(&self, id: &str) -> Result<Option<LoadRecord>> {
        Ok(self.loads("load_id = $1", &[&id])?.pop())
    }

    /// Writes a load's record.
    pub(crate) fn begin(&self, record: &LoadRecord, target: &str, database: Option<&str>) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (load_id, target, mode, table_oid, unit_rows, files, fingerprints, before_rows, \
             before_sum, before_non_null, stamps, mapping, database, facts, table_file) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
             $12, $13, $14, pg_catalog.pg_relation_filenode($4::bigint::oid))",
            self.table("loads")
        );
        let before = record.before.as_ref();
        self.link.execute(
            &sql,
            &[
                &record.id,
                &target,
                &record.mode,
                &i64::from(record.table_oid),
                &(record.unit_rows as i64),
                &record.files.names,
                &record.files.fingerprints,
                &before.map(|tally| tally.rows as i64),
                &before.map(|tally| tally.content_sum.to_string()),
                &before.map(|tally| signed(&tally.non_null)),
                &record.files.stamps,
                &record.mapping_text(),
                &database,
                &record.facts.to_text(),
            ],
        )?;
        Ok(())
    }

    /// The columns of its table that a load fills; `None` before they are known.
    pub(crate) fn columns(&self, id: &str) -> Result<Option<Vec<String>>> {
        self.link.value(&format!("SELECT columns FROM {} WHERE load_id = $1", self.table("loads")), &[&id])
    }

    /// Sets a column of a load's record.
    pub(crate) fn set(&self, id: &str, column: &str, value: &(dyn ToSql + Sync)) -> Result<()> {
        let sql = format!("UPDATE {} SET {column} = $2 WHERE load_id = $1", self.table("loads"));
        self.link.execute(&sql, &[&id, value]).map(drop)
    }

    /// Checks, in the open transaction, that the recorded units of a load add up to `total`: that the server
    /// has lost none that it had confirmed.
    pub(crate) fn refuse_lost(&self, id: &str, total: &Tally) -> Result<()> {
        let mut there = Tally::empty(total.non_null.len());
        self.units(id)?.values().for_each(|tally| there.add(tally));
        if there == *total {
            return Ok(());
        }
        let unlogged = if self.unlogged { "; a crash empties an unlogged table" } else { "" };
        Err(Error::new(
            Kind::Changed,
            format!(
                "the recorded units have {} with content sum {}, but the server had confirmed {} with content sum {}: \
                 it has lost commits, in a crash or a fail-over{unlogged}",
                format_counted(there.rows, "row"),
                there.content_sum,
                format_counted(total.rows, "row"),
                total.content_sum
            ),
        )
        .at(self.link.place())
        .advise("run the same command again: it loads what is missing"))
    }

    /// Whether the rows of a load's table are in another file than when the load began.
    pub(crate) fn is_rewritten(&self, id: &str) -> Result<bool> {
        let sql = format!(
            "SELECT coalesce(table_file <> pg_catalog.pg_relation_filenode(table_oid::oid), false) FROM {} \
             WHERE load_id = $1",
            self.table("loads")
        );
        self.link.value(&sql, &[&id])
    }

    /// Marks a load as complete.
    pub(crate) fn complete(&self, id: &str, total: &Tally, facts: &LoadFacts) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET completed = now(), rows = $2, content_sum = $3, non_null = $4, facts = $5 WHERE load_id = $1",
            self.table("loads")
        );
        let (rows, sum, counts) = (total.rows as i64, total.content_sum.to_string(), signed(&total.non_null));
        match self.link.execute(&sql, &[&id, &rows, &sum, &counts, &facts.to_text()])? {
            1 => Ok(()),
            _ => Err(Error::new(Kind::Changed, "the record of the load no longer exists")
                .at(self.link.place())
                .advise("sawmill load forget removed it while the load ran: load again")),
        }
    }

    /// Moves the records of a complete load to another ID and keeps them there, since the same files are
    /// loaded again.
    pub(crate) fn keep_under_another_id(&self, id: &str) -> Result<()> {
        let earlier = format!(
            "SELECT $1 || '#' || count(*) + 1 FROM {} WHERE starts_with(load_id, $1 || '#')",
            self.table("loads")
        );
        self.move_to(id, &self.link.value::<String>(&earlier, &[&id])?)
    }

    /// Moves the records of a load to another ID, in the caller's transaction.
    pub(crate) fn move_to(&self, id: &str, other: &str) -> Result<()> {
        let (loads, lasts) = (
            self.table("loads"),
            "target, mode, table_oid, unit_rows, files, fingerprints, begun, completed, rows, content_sum, non_null, \
             before_rows, before_sum, before_non_null, stamps, mapping, table_file, parts, keys_refused, columns, database, facts",
        );
        let copy = format!(
            "INSERT INTO {loads} (load_id, {lasts}) SELECT $2, {lasts} FROM {loads} WHERE load_id = $1"
        );
        self.link.execute(&copy, &[&id, &other])?;
        let mut tables = vec![self.table(UNITS), self.table(UNITS_UNLOGGED)];
        tables.extend(self.rejects_tables()?);
        for table in tables {
            self.link
                .execute(&format!("UPDATE {table} SET load_id = $2 WHERE load_id = $1"), &[&id, &other])?;
        }
        self.delete(id).map(drop)
    }

    /// Renames the units of a load whose rows have other places in their files now.
    pub(crate) fn move_units(&self, id: &str, units: &BTreeMap<UnitKey, Unit>) -> Result<()> {
        // Rows only move to the front: in this order no unit takes the key of another one.
        for (was, now) in units.iter().filter(|(was, now)| **was != now.key) {
            let (file, row_group, first_row) = key_columns(*was);
            for table in [UNITS, UNITS_UNLOGGED] {
                let sql = format!(
                    "UPDATE {} SET first_row = $5 WHERE load_id = $1 AND file = $2 AND row_group = $3 AND first_row = $4",
                    self.table(table)
                );
                let now = now.key.first_row as i64;
                self.link.execute(&sql, &[&id, &file, &row_group, &first_row, &now])?;
            }
        }
        Ok(())
    }

    /// Removes the records of all other loads whose rows are in a table.
    pub(crate) fn delete_of_table(&self, oid: u32, but: &str) -> Result<()> {
        let sql = format!(
            "DELETE FROM {} WHERE table_oid = $1 AND load_id <> $2 AND mode <> 'upsert'",
            self.table("loads")
        );
        self.link.execute(&sql, &[&i64::from(oid), &but]).map(drop)
    }

    /// Removes a load's record with its units.
    pub(crate) fn delete(&self, id: &str) -> Result<u64> {
        self.link.execute(&format!("DELETE FROM {} WHERE load_id = $1", self.table("loads")), &[&id])
    }

    /// The OIDs of the tables that loads of several tables fill or have filled, for loads into a table.
    pub(crate) fn tables_of_lists(&self, target: &str) -> Result<Vec<u32>> {
        let sql = format!("SELECT table_oid::oid FROM {} WHERE {}", self.table("loads"), self.is_of_lists());
        self.link.list(&sql, &[&target])
    }

    /// The condition that a load is one of several tables of a load into the table `$1`: its ID begins with
    /// the ID of that load, up to the `/`.
    fn is_of_lists(&self) -> String {
        format!(
            "split_part(load_id, '/', 1) || '/' IN (SELECT load_id FROM {} WHERE target = $1)",
            self.table("loads")
        )
    }

    /// Removes the records of all loads into a table, by its name, and into the tables that belong to it.
    pub(crate) fn delete_target(&self, target: &str) -> Result<u64> {
        let sql = format!("DELETE FROM {} WHERE target = $1 OR {}", self.table("loads"), self.is_of_lists());
        self.link.execute(&sql, &[&target])
    }

    /// The unfinished loads into a table, by its name; the latest comes last.
    pub(crate) fn unfinished(&self, target: &str) -> Result<Vec<LoadRecord>> {
        self.loads("target = $1 AND completed IS NULL ORDER BY begun", &[&target])
    }

    /// All committed units of a load.
    pub(crate) fn units(&self, id: &str) -> Result<HashMap<UnitKey, Tally>> {
        let sql = format!(
            "SELECT rows, content_sum, non_null, file, row_group, first_row FROM {} u WHERE load_id = $1",
            // The table may have become unlogged, or logged, since the units were recorded.
            self.all_units()
        );
        let units = self.link.rows::<(i64, String, Vec<i64>, i32, i32, i64)>(&sql, &[&id])?.into_iter();
        let unit = |(rows, sum, counts, file, group, first)| {
            Ok((unit_key(file, group, first), self.tally((rows, sum, counts))?))
        };
        units.map(unit).collect()
    }

    /// The same units with their rejected rows.
    pub(crate) fn units_with_rejects(&self, id: &str) -> Result<HashMap<UnitKey, RecordedUnit>> {
        let (units, mut rejects) = (self.units(id)?, self.count_rejects(id)?);
        let with_rejects = |(key, tally): (UnitKey, Tally)| {
            let rejected = rejects.remove(&key).unwrap_or(0);
            (key, RecordedUnit { tally, rejected, refused: None })
        };
        Ok(units.into_iter().map(with_rejects).collect())
    }

    /// Whether a load has committed no rows and rejected none.
    pub(crate) fn holds_nothing(&self, id: &str) -> Result<bool> {
        Ok(self.units(id)?.is_empty() && self.count_rejects(id)?.is_empty())
    }

    /// A unit, if it was committed.
    pub(crate) fn unit(&self, id: &str, key: UnitKey) -> Result<Option<Tally>> {
        let (file, row_group, first_row) = key_columns(key);
        let unit = self.link.first(&self.select_unit(), &[&id, &file, &row_group, &first_row])?;
        unit.map(|sum| self.tally(sum)).transpose()
    }
}

/// A load's record, from the columns that [`Records::loads`] selects.
impl FromRow for LoadRecord {
    fn read(connection: &Connection, row: &Row) -> Result<Self> {
        let (oid, unit_rows): (i64, i64) = (connection.get(row, 2)?, connection.get(row, 3)?);
        let before = match connection.get(row, 8)? {
            Some(rows) => {
                let sum = (rows, connection.get(row, 9)?, connection.get(row, 10)?);
                Some(tally(connection.place(), sum)?)
            }
            None => None,
        };
        let files = RecordedFiles {
            names: connection.get(row, 5)?,
            fingerprints: connection.get(row, 6)?,
            stamps: connection.get(row, 7)?,
        };
        // Units name their file by its index: if a name were missing, its rows would seem to have no file.
        let (names, fingerprints) = (files.names.len(), files.fingerprints.len());
        if names != fingerprints {
            let what = format!("{names} names and {fingerprints} fingerprints of files");
            return Err(invalid(connection.place(), &what));
        }
        Ok(Self {
            id: connection.get(row, 0)?,
            mode: connection.get(row, 1)?,
            table_oid: oid as u32,
            unit_rows: unit_rows.max(1) as u64,
            complete: connection.get(row, 4)?,
            files,
            before,
            mapping: Mapping::from_text(&connection.get::<String>(row, 11)?),
            facts: LoadFacts::from_text(connection.get::<Option<String>>(row, 12)?.as_deref()),
        })
    }
}

/// The error for a record that no load has written.
fn invalid(place: &str, what: &str) -> Error {
    Error::new(Kind::Server, format!("the record holds {what}"))
        .at(place)
        .advise("restore the record, or forget the load, remove its rows and load them again")
}

/// A unit's key as the records' columns: file, row group and first row.
pub(crate) fn key_columns(key: UnitKey) -> (i32, i32, i64) {
    (key.file as i32, key.row_group as i32, key.first_row as i64)
}

/// The key of these columns.
pub(crate) fn unit_key(file: i32, row_group: i32, first_row: i64) -> UnitKey {
    UnitKey { file: file as u32, row_group: row_group as u32, first_row: first_row as u64 }
}

/// A number of rows.
pub(crate) fn read_count(place: &str, rows: i64) -> Result<u64> {
    u64::try_from(rows).map_err(|_| invalid(place, &format!("the invalid number of rows {rows}")))
}

/// A sum of rows, from the columns of a record.
fn tally(place: &str, (rows, sum, counts): (i64, String, Vec<i64>)) -> Result<Tally> {
    let count = |rows| read_count(place, rows);
    let content_sum = sum.parse().map_err(|_| invalid(place, &format!("the invalid content sum {sum:?}")))?;
    let non_null = counts.into_iter().map(count).collect::<Result<_>>()?;
    Ok(Tally { rows: count(rows)?, content_sum, non_null })
}

/// Counts as PostgreSQL's integers.
pub(crate) fn signed(counts: &[u64]) -> Vec<i64> {
    counts.iter().map(|count| *count as i64).collect()
}

/// A 64-bit key for advisory locks.
pub(crate) fn advisory_key(text: &str) -> i64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), 0x5a3_111) as i64
}
