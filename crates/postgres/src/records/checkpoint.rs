//! What the server knows of loads: the tables `loads` and `units` in schema `_sawmill`, or in another one.
//!
//! A unit's row is written in the transaction that copies the unit's rows, so either both are there or
//! neither. A load's row holds what its units refer to: the files, the table and the size of units.
//! While a load runs it holds an advisory lock, so that it does not run twice at once; should that fail,
//! the primary key of `units` still lets only one of two transactions commit a unit.
//!
//! A crash of the server empties unlogged tables. Units of a load into such a table are therefore recorded in
//! `units_unlogged`, which the same crash empties: records and rows are there together, or neither.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sawmill_loader::{RecordedFiles, Tally, check_name, quote};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result, UnitKey};
use tokio_postgres::Row;

/// How long a new run waits for the server to notice that a killed predecessor is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The table of units, and that of units in unlogged tables.
pub(crate) const UNITS: &str = "units";
pub(crate) const UNITS_UNLOGGED: &str = "units_unlogged";

/// The checkpoint tables, in a schema of the caller's choice.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    pub(crate) schema: String,
    /// The table that is written is unlogged.
    unlogged: bool,
}

/// A load's row.
#[derive(Clone, Debug)]
pub(crate) struct LoadRecord {
    pub id: String,
    /// The table, by the number that it keeps when it is renamed.
    pub table_oid: u32,
    pub unit_rows: u64,
    pub files: RecordedFiles,
    pub complete: bool,
    /// What the table held before, where rows are appended and will be verified.
    pub before: Option<Tally>,
    /// What makes two loads of a file loads of the same rows; empty where files are not remembered one by one, none in
    /// records of earlier versions.
    pub mapping: Option<String>,
}

impl Checkpoints {
    /// The tables in this schema.
    ///
    /// # Errors
    /// A name that no schema can have, or that of one of the server's own.
    pub(crate) fn new(schema: &str) -> Result<Self> {
        let own = schema.starts_with("pg_") || schema == "information_schema";
        let checked = check_name(schema);
        match checked.err().or(own.then(|| "schemas of this name are the server's own".to_owned())) {
            None => Ok(Self { schema: schema.to_owned(), unlogged: false }),
            Some(what) => Err(Error::new(Kind::Config, what)
                .at(format!("schema {schema:?} for the records of loads"))
                .advise("choose another name")),
        }
    }

    /// The records of a load into an unlogged table, or into one that is not.
    pub(crate) fn of_unlogged(self, unlogged: bool) -> Self {
        Self { unlogged, ..self }
    }

    /// Whether a crash of the server empties the table that is written.
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

    /// Takes the lock that only one run of a load can hold, for as long as the connection lives.
    pub(crate) fn lock(&self, connection: &Connection, id: &str, control: &Control<'_>) -> Result<()> {
        let key = advisory_key(id);
        let end = Instant::now() + PATIENCE;
        loop {
            let rows = connection.query(control, "SELECT pg_try_advisory_lock($1)", &[&key])?;
            let granted = rows.first().map_or(Ok(false), |row| connection.get(row, 0))?;
            if granted {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Error::new(Kind::Busy, "the same load is under way already")
                    .at(connection.place())
                    .advise("wait for it to end, or end it"));
            }
            control.sleep(Duration::from_millis(200))?;
        }
    }

    /// Holds the locks of all loads into a table, by its name, until the transaction ends, so that none of them runs
    /// meanwhile: rows of a load whose records are gone would be loaded again.
    pub(crate) fn lock_target(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql =
            format!("SELECT load_id FROM {} WHERE target = $1 OR {}", self.table("loads"), self.is_part());
        let end = Instant::now() + PATIENCE;
        for row in connection.query(control, &sql, &[&target])? {
            let key = advisory_key(&connection.get::<String>(&row, 0)?);
            loop {
                let rows = connection.query(control, "SELECT pg_try_advisory_xact_lock($1)", &[&key])?;
                if rows.first().map_or(Ok(false), |row| connection.get(row, 0))? {
                    break;
                }
                if Instant::now() > end {
                    return Err(Error::new(Kind::Busy, "a load into the table is under way")
                        .at(format!("table {target}, {}", connection.place()))
                        .advise("wait until it has ended, or end it; then run the same command again"));
                }
                control.sleep(Duration::from_millis(200))?;
            }
        }
        Ok(())
    }

    /// A load's row.
    pub(crate) fn find(
        &self,
        connection: &Connection,
        id: &str,
        control: &Control<'_>,
    ) -> Result<Option<LoadRecord>> {
        let sql = format!(
            "SELECT load_id, table_oid, unit_rows, files, fingerprints, completed IS NOT NULL, \
             before_rows, before_sum, before_non_null, stamps, mapping FROM {} WHERE load_id = $1",
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
            files: read_files(connection, row)?,
            mapping: connection.get(row, 10)?,
            complete: connection.get(row, 5)?,
            before: match before {
                None => None,
                Some(_) => Some(read_tally(connection, row, 6)?),
            },
        }))
    }

    /// Writes a load's row.
    pub(crate) fn begin(
        &self,
        connection: &Connection,
        record: &LoadRecord,
        target: &str,
        mode: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (load_id, target, mode, table_oid, unit_rows, files, fingerprints, before_rows, \
             before_sum, before_non_null, stamps, mapping, table_file) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
             $12, pg_catalog.pg_relation_filenode($4::bigint::oid))",
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
            ],
        )?;
        Ok(())
    }

    /// Records by what rows and columns the files of a load are known, which an earlier version did not.
    pub(crate) fn set_mapping(
        &self,
        connection: &Connection,
        id: &str,
        mapping: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!("UPDATE {} SET mapping = $2 WHERE load_id = $1", self.table("loads"));
        connection.execute(control, &sql, &[&id, &mapping])?;
        Ok(())
    }

    /// Records the stamps that a load's files have now.
    pub(crate) fn set_stamps(
        &self,
        connection: &Connection,
        id: &str,
        files: &RecordedFiles,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!("UPDATE {} SET stamps = $2 WHERE load_id = $1", self.table("loads"));
        connection.execute(control, &sql, &[&id, &files.stamps])?;
        Ok(())
    }

    /// Makes sure, within the transaction that is open, that the units of a load that are on record come to `total`: that
    /// the server has lost none that it had confirmed.
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
                "the units on record have {} rows with content sum {}, and not the {} rows with content sum {} that the server \
                 had confirmed: it has lost commits, in a crash or a fail-over{unlogged}",
                there.rows, there.content_sum, total.rows, total.content_sum
            ),
        )
        .at(connection.place())
        .advise("run the same command again: it loads what is missing"))
    }

    /// Whether a load's table has its rows in another file than when the load began.
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
        let rows = connection.query(control, &sql, &[&id])?;
        rows.first().map_or(Ok(false), |row| connection.get(row, 0))
    }

    /// Marks a load as complete.
    pub(crate) fn complete(
        &self,
        connection: &Connection,
        id: &str,
        total: &Tally,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET completed = now(), rows = $2, content_sum = $3, non_null = $4 WHERE load_id = $1",
            self.table("loads")
        );
        let counts = signed(&total.non_null);
        let updated = connection.execute(
            control,
            &sql,
            &[&id, &(total.rows as i64), &total.content_sum.to_string(), &counts],
        )?;
        match updated {
            1 => Ok(()),
            _ => Err(Error::new(Kind::Changed, "the record of the load is gone")
                .at(connection.place())
                .advise("somebody forgot the load while it ran: load again")),
        }
    }

    /// Gives the records of a complete load another number, under which they stay: the same files are loaded once more.
    pub(crate) fn set_aside(&self, connection: &Connection, id: &str, control: &Control<'_>) -> Result<()> {
        let (loads, lasts) = (
            self.table("loads"),
            "target, mode, table_oid, unit_rows, files, fingerprints, begun, \
            completed, rows, content_sum, non_null, before_rows, before_sum, before_non_null, stamps, mapping, table_file",
        );
        let earlier =
            format!("SELECT $1 || '#' || count(*) + 1 FROM {loads} WHERE starts_with(load_id, $1 || '#')");
        let rows = connection.query(control, &earlier, &[&id])?;
        let Some(row) = rows.first() else { return Ok(()) };
        let other: String = connection.get(row, 0)?;
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

    /// Removes the records of all other loads whose rows were in a table.
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

    /// Removes a load's row and its units.
    pub(crate) fn delete(&self, connection: &Connection, id: &str, control: &Control<'_>) -> Result<u64> {
        let sql = format!("DELETE FROM {} WHERE load_id = $1", self.table("loads"));
        connection.execute(control, &sql, &[&id])
    }

    /// The tables in which parts of loads into a table gather or have gathered, by their numbers.
    pub(crate) fn parts(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Vec<u32>> {
        let sql = format!("SELECT table_oid FROM {} WHERE {}", self.table("loads"), self.is_part());
        let rows = connection.query(control, &sql, &[&target])?;
        rows.iter().map(|row| connection.get::<i64>(row, 0).map(|oid| oid as u32)).collect()
    }

    /// The condition that a load is a part of one into the table `$1`: its number begins with that one's, up to
    /// the `/`.
    fn is_part(&self) -> String {
        format!(
            "split_part(load_id, '/', 1) || '/' IN (SELECT load_id FROM {} WHERE target = $1)",
            self.table("loads")
        )
    }

    /// Removes the rows of all loads into a table, by its name, and those of their parts.
    pub(crate) fn delete_target(
        &self,
        connection: &Connection,
        target: &str,
        control: &Control<'_>,
    ) -> Result<u64> {
        let sql = format!("DELETE FROM {} WHERE target = $1 OR {}", self.table("loads"), self.is_part());
        connection.execute(control, &sql, &[&target])
    }

    /// The loads into a table, by its name, that are not complete.
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

    /// Records what a unit comes to after some of its rows were taken out.
    pub(crate) fn correct_unit(
        &self,
        connection: &Connection,
        id: &str,
        key: UnitKey,
        tally: &Tally,
        control: &Control<'_>,
    ) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET rows = $5, content_sum = $6, non_null = $7 \
             WHERE load_id = $1 AND file = $2 AND row_group = $3 AND first_row = $4",
            self.units_table()
        );
        let (file, row_group, first_row) = (key.file as i32, key.row_group as i32, key.first_row as i64);
        let (rows, sum, counts) = (tally.rows as i64, tally.content_sum.to_string(), signed(&tally.non_null));
        connection.execute(control, &sql, &[&id, &file, &row_group, &first_row, &rows, &sum, &counts])?;
        Ok(())
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
            // The table may have become an unlogged one, or a logged one, since they were recorded.
            self.all_units()
        );
        let rows = connection.query(control, &sql, &[&id])?;
        let mut units = HashMap::with_capacity(rows.len());
        for row in &rows {
            let (file, row_group): (i32, i32) = (connection.get(row, 3)?, connection.get(row, 4)?);
            let first_row: i64 = connection.get(row, 5)?;
            let key = UnitKey { file: file as u32, row_group: row_group as u32, first_row: first_row as u64 };
            units.insert(key, read_tally(connection, row, 0)?);
        }
        Ok(units)
    }

    /// One unit, if it was committed.
    pub(crate) fn unit(
        &self,
        connection: &Connection,
        id: &str,
        key: UnitKey,
        control: &Control<'_>,
    ) -> Result<Option<Tally>> {
        let (file, row_group, first_row) = (key.file as i32, key.row_group as i32, key.first_row as i64);
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

/// The files of a load's row, as `find` selects it. Records of earlier versions have no stamps.
fn read_files(connection: &Connection, row: &Row) -> Result<RecordedFiles> {
    let (names, fingerprints): (Vec<String>, Vec<String>) =
        (connection.get(row, 3)?, connection.get(row, 4)?);
    let stamps: Option<Vec<Option<String>>> = connection.get(row, 9)?;
    let stamps = stamps.unwrap_or_else(|| vec![None; names.len()]);
    Ok(RecordedFiles { names, fingerprints, stamps })
}

pub(crate) fn read_tally(connection: &Connection, row: &Row, from: usize) -> Result<Tally> {
    let rows: i64 = connection.get(row, from)?;
    let sum: String = connection.get(row, from + 1)?;
    let counts: Vec<i64> = connection.get(row, from + 2)?;
    Ok(Tally {
        rows: rows as u64,
        content_sum: sum.parse().map_err(|_| {
            Error::new(Kind::Server, format!("the checkpoint holds the content sum {sum:?}"))
                .at(connection.place())
                .advise("forget the load and start it again")
        })?,
        non_null: counts.into_iter().map(|count| count as u64).collect(),
    })
}

/// Counts as PostgreSQL's integers.
pub(crate) fn signed(counts: &[u64]) -> Vec<i64> {
    counts.iter().map(|count| *count as i64).collect()
}

/// A 64-bit key for advisory locks.
pub(crate) fn advisory_key(text: &str) -> i64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), 0x5a3_111) as i64
}
