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

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sawmill_loader::{LoadFacts, RecordedFiles, Tally, check_name, quote};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result, UnitKey};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::table::catalogue::value;

/// How long a new run waits until the server notices that a killed predecessor is gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The table of units, and the one of units in unlogged tables.
pub(crate) const UNITS: &str = "units";
pub(crate) const UNITS_UNLOGGED: &str = "units_unlogged";

/// The checkpoint tables in a schema.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    pub(crate) schema: String,
    /// The load's table is unlogged.
    unlogged: bool,
}

/// A load's record.
#[derive(Clone, Debug)]
pub(crate) struct LoadRecord {
    pub id: String,
    /// The table's OID, which it keeps when it is renamed.
    pub table_oid: u32,
    pub unit_rows: u64,
    pub files: RecordedFiles,
    pub complete: bool,
    /// The sum of the table's earlier rows, if rows are appended and will be verified.
    pub before: Option<Tally>,
    /// Identifies which rows and columns of a file are loaded. Empty if files are not remembered one by one.
    pub mapping: String,
    /// How the load was run.
    pub facts: LoadFacts,
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

    /// Whether the load's table is unlogged.
    pub(crate) fn of_unlogged_table(&self) -> bool {
        self.unlogged
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

    /// Takes the lock of a load for as long as the connection lives. Only one run can hold it.
    pub(crate) fn lock(&self, connection: &Connection, id: &str, control: &Control<'_>) -> Result<()> {
        let (lock, end) = ("SELECT pg_try_advisory_lock($1)", Instant::now() + PATIENCE);
        match wait_for_lock(connection, lock, id, end, control)? {
            true => Ok(()),
            false => Err(Error::new(Kind::Busy, "the same load is already running")
                .at(connection.place())
                .advise("wait until it ends, or stop it")),
        }
    }

    /// Holds the locks of all loads into a table, by its name, until the transaction ends. A load that ran
    /// during the transaction would load rows and then lose their records.
    pub(crate) fn lock_target(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "SELECT load_id FROM {} WHERE target = $1 OR {}",
            self.table("loads"),
            self.is_of_lists()
        );
        let (lock, end) = ("SELECT pg_try_advisory_xact_lock($1)", Instant::now() + PATIENCE);
        for row in connection.query(control, &sql, &[&target])? {
            let id: String = connection.get(&row, 0)?;
            if !wait_for_lock(connection, lock, &id, end, control)? {
                return Err(Error::new(Kind::Busy, "a load into the table is running")
                    .at(format!("table {target}, {}", connection.place()))
                    .advise("wait until it ends, or stop it; then run the same command again"));
            }
        }
        Ok(())
    }

    /// Reads a load's record.
    pub(crate) fn find(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<Option<LoadRecord>> {
        let sql = format!(
            "SELECT load_id, table_oid, unit_rows, files, fingerprints, completed IS NOT NULL, \
             before_rows, before_sum, before_non_null, stamps, mapping, facts FROM {} WHERE load_id = $1",
            self.table("loads")
        );
        let rows = connection.query(control, &sql, &[&id])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let oid: i64 = connection.get(row, 1)?;
        let unit_rows: i64 = connection.get(row, 2)?;
        let before: Option<i64> = connection.get(row, 6)?;
        Ok(Some(LoadRecord {
            id: connection.get(row, 0)?,
            table_oid: oid as u32,
            unit_rows: unit_rows.max(1) as u64,
            files: read_files(connection, row, [3, 4, 9])?,
            mapping: connection.get(row, 10)?,
            facts: LoadFacts::from_text(connection.get::<Option<String>>(row, 11)?.as_deref()),
            complete: connection.get(row, 5)?,
            before: match before {
                None => None,
                Some(_) => Some(read_tally(connection, row, 6)?),
            },
        }))
    }

    /// Writes a load's record.
    pub(crate) fn begin(
        &self,
        connection: &Connection,
        record: &LoadRecord,
        target: &str,
        mode: &str,
        database: Option<&str>,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (load_id, target, mode, table_oid, unit_rows, files, fingerprints, before_rows, \
             before_sum, before_non_null, stamps, mapping, database, facts, table_file) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
             $12, $13, $14, pg_catalog.pg_relation_filenode($4::bigint::oid))",
            self.table("loads")
        );
        let before = record.before.as_ref();
        let counts = before.map(|tally| signed(&tally.non_null));
        connection.execute(
            control,
            &sql,
            &[
                &record.id,
                &target,
                &mode,
                &i64::from(record.table_oid),
                &(record.unit_rows as i64),
                &record.files.names,
                &record.files.fingerprints,
                &before.map(|tally| tally.rows as i64),
                &before.map(|tally| tally.content_sum.to_string()),
                &counts,
                &record.files.stamps,
                &record.mapping,
                &database,
                &record.facts.to_text(),
            ],
        )?;
        Ok(())
    }

    /// Records the current stamps of a load's files.
    pub(crate) fn set_stamps(
        &self,
        connection: &Connection,
        id: &str,
        files: &RecordedFiles,
        control: &Control<'_>,
    ) -> Result<()> {
        self.set(connection, id, "stamps", &files.stamps, control)
    }

    /// Records the columns of its table that a load fills.
    pub(crate) fn set_columns(
        &self,
        connection: &Connection,
        id: &str,
        columns: &[String],
        control: &Control<'_>,
    ) -> Result<()> {
        self.set(connection, id, "columns", &columns, control)
    }

    /// The columns of its table that a load fills; `None` before they are known.
    pub(crate) fn columns(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<Option<Vec<String>>> {
        let sql = format!("SELECT columns FROM {} WHERE load_id = $1", self.table("loads"));
        value(connection, control, &sql, &[&id])
    }

    /// Records that the rows of a load, all of them loaded, do not allow a key or an index of its table.
    pub(crate) fn set_keys_refused(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        self.set(connection, id, "keys_refused", &true, control)
    }

    /// Sets a column of a load's record.
    fn set(
        &self,
        connection: &Connection,
        id: &str,
        column: &str,
        value: &(dyn ToSql + Sync),
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!("UPDATE {} SET {column} = $2 WHERE load_id = $1", self.table("loads"));
        connection.execute(control, &sql, &[&id, value])?;
        Ok(())
    }

    /// Checks, in the open transaction, that the recorded units of a load add up to `total`: that the server
    /// has lost none that it had confirmed.
    pub(crate) fn refuse_lost(
        &self,
        connection: &Connection,
        id: &str,
        total: &Tally,
        control: &Control<'_>,
    ) -> Result<()> {
        let mut there = Tally::empty(total.non_null.len());
        self.units(connection, id, control)?.values().for_each(|tally| there.add(tally));
        if there == *total {
            return Ok(());
        }
        let unlogged = match self.unlogged {
            true => "; a crash empties an unlogged table",
            false => "",
        };
        Err(Error::new(
            Kind::Changed,
            format!(
                "the recorded units have {} rows with content sum {}, but the server had confirmed {} rows with content sum {}: \
                 it has lost commits, in a crash or a fail-over{unlogged}",
                there.rows, there.content_sum, total.rows, total.content_sum
            ),
        )
        .at(connection.place())
        .advise("run the same command again: it loads what is missing"))
    }

    /// Whether the rows of a load's table are in another file than when the load began.
    pub(crate) fn is_rewritten(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<bool> {
        let sql = format!(
            "SELECT coalesce(table_file <> pg_catalog.pg_relation_filenode(table_oid::oid), false) FROM {} \
             WHERE load_id = $1",
            self.table("loads")
        );
        value(connection, control, &sql, &[&id])
    }

    /// Marks a load as complete.
    pub(crate) fn complete(
        &self,
        connection: &Connection,
        id: &str,
        (total, facts): (&Tally, &LoadFacts),
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET completed = now(), rows = $2, content_sum = $3, non_null = $4, facts = $5 WHERE load_id = $1",
            self.table("loads")
        );
        let counts = signed(&total.non_null);
        let updated = connection.execute(
            control,
            &sql,
            &[&id, &(total.rows as i64), &total.content_sum.to_string(), &counts, &facts.to_text()],
        )?;
        match updated {
            1 => Ok(()),
            _ => Err(Error::new(Kind::Changed, "the record of the load no longer exists")
                .at(connection.place())
                .advise("sawmill load forget removed it while the load ran: load again")),
        }
    }

    /// Moves the records of a complete load to another ID and keeps them there, since the same files are
    /// loaded again.
    pub(crate) fn keep_under_another_id(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let earlier = format!(
            "SELECT $1 || '#' || count(*) + 1 FROM {} WHERE starts_with(load_id, $1 || '#')",
            self.table("loads")
        );
        let rows = connection.query(control, &earlier, &[&id])?;
        let Some(row) = rows.first() else { return Ok(()) };
        let other: String = connection.get(row, 0)?;
        self.move_to(connection, id, &other, control)
    }

    /// Moves the records of a load to another ID, in the caller's transaction.
    pub(crate) fn move_to(
        &self,
        connection: &Connection,
        id: &str,
        other: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let (loads, lasts) = (
            self.table("loads"),
            "target, mode, table_oid, unit_rows, files, fingerprints, begun, completed, rows, content_sum, non_null, \
             before_rows, before_sum, before_non_null, stamps, mapping, table_file, parts, keys_refused, columns, database, facts",
        );
        let copy = format!(
            "INSERT INTO {loads} (load_id, {lasts}) SELECT $2, {lasts} FROM {loads} WHERE load_id = $1"
        );
        connection.execute(control, &copy, &[&id, &other])?;
        let mut tables = vec![self.table(UNITS), self.table(UNITS_UNLOGGED)];
        tables.extend(self.rejects_tables(connection, control)?);
        for table in tables {
            let update = format!("UPDATE {table} SET load_id = $2 WHERE load_id = $1");
            connection.execute(control, &update, &[&id, &other])?;
        }
        self.delete(connection, id, control)?;
        Ok(())
    }

    /// Removes the records of all other loads whose rows are in a table.
    pub(crate) fn delete_of_table(
        &self,
        connection: &Connection,
        oid: u32,
        but: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "DELETE FROM {} WHERE table_oid = $1 AND load_id <> $2 AND mode <> 'upsert'",
            self.table("loads")
        );
        connection.execute(control, &sql, &[&i64::from(oid), &but])?;
        Ok(())
    }

    /// Removes a load's record with its units.
    pub(crate) fn delete(&self, connection: &Connection, id: &str, control: &Control<'_>) -> Result<u64> {
        let sql = format!("DELETE FROM {} WHERE load_id = $1", self.table("loads"));
        connection.execute(control, &sql, &[&id])
    }

    /// The OIDs of the tables that loads of several tables fill or have filled, for loads into a table.
    pub(crate) fn tables_of_lists(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Vec<u32>> {
        let sql = format!("SELECT table_oid FROM {} WHERE {}", self.table("loads"), self.is_of_lists());
        let rows = connection.query(control, &sql, &[&target])?;
        rows.iter().map(|row| connection.get::<i64>(row, 0).map(|oid| oid as u32)).collect()
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
    pub(crate) fn delete_target(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<u64> {
        let sql = format!("DELETE FROM {} WHERE target = $1 OR {}", self.table("loads"), self.is_of_lists());
        connection.execute(control, &sql, &[&target])
    }

    /// The unfinished loads into a table, by its name.
    pub(crate) fn unfinished(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Vec<String>> {
        let sql =
            format!("SELECT load_id FROM {} WHERE target = $1 AND completed IS NULL", self.table("loads"));
        let rows = connection.query(control, &sql, &[&target])?;
        rows.iter().map(|row| connection.get(row, 0)).collect()
    }

    /// The last unfinished load into a table, by its name: its mode and its record.
    pub(crate) fn last_unfinished(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Option<(String, LoadRecord)>> {
        let sql = format!(
            "SELECT load_id, mode FROM {} WHERE target = $1 AND completed IS NULL ORDER BY begun DESC LIMIT 1",
            self.table("loads")
        );
        let rows = connection.query(control, &sql, &[&target])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (id, mode): (String, String) = (connection.get(row, 0)?, connection.get(row, 1)?);
        Ok(self.find(connection, &id, control)?.map(|record| (mode, record)))
    }

    /// All committed units of a load.
    pub(crate) fn units(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<HashMap<UnitKey, Tally>> {
        let sql = format!(
            "SELECT rows, content_sum, non_null, file, row_group, first_row FROM {} u WHERE load_id = $1",
            // The table may have become unlogged, or logged, since the units were recorded.
            self.all_units()
        );
        let rows = connection.query(control, &sql, &[&id])?;
        let mut units = HashMap::with_capacity(rows.len());
        for row in &rows {
            units.insert(read_key(connection, row, 3)?, read_tally(connection, row, 0)?);
        }
        Ok(units)
    }

    /// A unit, if it was committed.
    pub(crate) fn unit(
        &self,
        connection: &Connection,
        id: &str,
        key: UnitKey,
        control: &Control<'_>,
    ) -> Result<Option<Tally>> {
        let (file, row_group, first_row) = key_columns(key);
        let rows = connection.query(control, &self.select_unit(), &[&id, &file, &row_group, &first_row])?;
        rows.first().map(|row| read_tally(connection, row, 0)).transpose()
    }

    /// The query for one unit, by load, file, row group and first row.
    pub(crate) fn select_unit(&self) -> String {
        format!(
            "SELECT rows, content_sum, non_null FROM {} u \
             WHERE load_id = $1 AND file = $2 AND row_group = $3 AND first_row = $4",
            self.all_units()
        )
    }
}

/// The files of a load's record, from the columns of their names, fingerprints and stamps.
pub(crate) fn read_files(connection: &Connection, row: &Row, at: [usize; 3]) -> Result<RecordedFiles> {
    let files = RecordedFiles {
        names: connection.get(row, at[0])?,
        fingerprints: connection.get(row, at[1])?,
        stamps: connection.get(row, at[2])?,
    };
    // Units name their file by its index: if a name were missing, its rows would seem to have no file.
    let (names, fingerprints) = (files.names.len(), files.fingerprints.len());
    match names == fingerprints {
        true => Ok(files),
        false => Err(invalid(connection, &format!("{names} names and {fingerprints} fingerprints of files"))),
    }
}

/// The error for a record that no load has written.
fn invalid(connection: &Connection, what: &str) -> Error {
    Error::new(Kind::Server, format!("the record holds {what}"))
        .at(connection.place())
        .advise("restore the record, or forget the load, remove its rows and load them again")
}

/// A unit's key as the records' columns: file, row group and first row.
pub(crate) fn key_columns(key: UnitKey) -> (i32, i32, i64) {
    (key.file as i32, key.row_group as i32, key.first_row as i64)
}

/// A unit's key, from three columns of a row.
pub(crate) fn read_key(connection: &Connection, row: &Row, from: usize) -> Result<UnitKey> {
    let (file, row_group): (i32, i32) = (connection.get(row, from)?, connection.get(row, from + 1)?);
    let first_row: i64 = connection.get(row, from + 2)?;
    Ok(UnitKey { file: file as u32, row_group: row_group as u32, first_row: first_row as u64 })
}

/// A number of rows.
pub(crate) fn read_count(connection: &Connection, rows: i64) -> Result<u64> {
    u64::try_from(rows).map_err(|_| invalid(connection, &format!("the invalid number of rows {rows}")))
}

/// A sum of rows, from three columns of a row.
pub(crate) fn read_tally(connection: &Connection, row: &Row, from: usize) -> Result<Tally> {
    let rows: i64 = connection.get(row, from)?;
    let sum: String = connection.get(row, from + 1)?;
    let counts: Vec<i64> = connection.get(row, from + 2)?;
    let count = |rows| read_count(connection, rows);
    Ok(Tally {
        rows: count(rows)?,
        content_sum: sum
            .parse()
            .map_err(|_| invalid(connection, &format!("the invalid content sum {sum:?}")))?,
        non_null: counts.into_iter().map(count).collect::<Result<_>>()?,
    })
}

/// Counts as PostgreSQL's integers.
pub(crate) fn signed(counts: &[u64]) -> Vec<i64> {
    counts.iter().map(|count| *count as i64).collect()
}

/// Tries to take the advisory lock of a load by the statement `lock` until `end`. Returns whether it was
/// granted.
pub(crate) fn wait_for_lock(
    connection: &Connection,
    lock: &str,
    id: &str,
    end: Instant,
    control: &Control<'_>,
) -> Result<bool> {
    let key = advisory_key(id);
    loop {
        if value(connection, control, lock, &[&key])? {
            return Ok(true);
        }
        if Instant::now() > end {
            return Ok(false);
        }
        control.sleep(Duration::from_millis(200))?;
    }
}

/// A 64-bit key for advisory locks.
pub(crate) fn advisory_key(text: &str) -> i64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), 0x5a3_111) as i64
}
