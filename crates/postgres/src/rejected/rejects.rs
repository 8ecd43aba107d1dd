//! Rejected rows: recorded in the table `rejects` of the checkpoints' schema, in the transaction of their
//! unit's other rows, and written to a Parquet file when all units are committed.
//!
//! The file's rows are read from the sources again, so every value is as it was; the record says only which
//! rows they are, and why. So the file has each rejected row once, whatever happened to the load.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sawmill_loader::{Found, RejectOptions};
use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result, Source, Unit, UnitKey};
use tokio_postgres::Statement;

use crate::records::checkpoint::{Checkpoints, Records, advisory_key, key_columns, unit_key};
use crate::rejected::bad_records::{gone, row_groups};
use crate::table::catalogue::Link;

/// The table of rejected rows, and the one of rows rejected by unlogged tables.
pub(crate) const REJECTS: &str = "rejects";
pub(crate) const REJECTS_UNLOGGED: &str = "rejects_unlogged";

/// Counts the rejected rows of a load, for all of its writers.
#[derive(Debug)]
pub(crate) struct RejectCounter {
    most: u64,
    /// Rows rejected so far, also by earlier runs and in units under way.
    count: AtomicU64,
}

impl RejectCounter {
    /// Starts with the rows that earlier runs rejected.
    pub(crate) fn new(options: &RejectOptions, before: u64) -> Self {
        Self { most: options.most.unwrap_or(u64::MAX), count: AtomicU64::new(before) }
    }

    /// Rows so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Rows of a unit that another run has committed.
    pub(crate) fn count_again(&self, rows: u64) {
        self.count.fetch_add(rows, Relaxed);
    }

    /// Rows of a unit that was not committed.
    pub(crate) fn forget(&self, rows: u64) {
        self.count.fetch_sub(rows, Relaxed);
    }

    /// Counts a rejected row. With too many, fails with the place and reason of the last one.
    pub(crate) fn add(&self, place: impl Fn() -> String, why: &str) -> Result<()> {
        let count = self.count.fetch_add(1, Relaxed) + 1;
        if count <= self.most {
            return Ok(());
        }
        let rows = format_counted(count, "row");
        Err(Error::new(Kind::Value, format!("{rows} cannot be loaded, the last one: {why}"))
            .at(place())
            .advise("correct them in the source, or raise --max-rejects"))
    }
}

/// A rejected row.
#[derive(Clone, Debug)]
pub(crate) struct Reject {
    /// Counted from 0 in its row group, as units count.
    pub row: u64,
    pub reason: String,
}

impl Checkpoints {
    /// The table that the load's rejected rows are recorded in. A crash of the server empties it together
    /// with the records of the units, where those are of an unlogged table.
    pub(crate) fn rejects_table(&self) -> String {
        self.table(if self.unlogged { REJECTS_UNLOGGED } else { REJECTS })
    }

    /// The statement that records rejected rows: load, file, row group, first row of the unit, rows, reasons.
    fn insert_rejects(&self) -> String {
        format!(
            "INSERT INTO {} (load_id, file, row_group, first_row, \"row\", reason) \
             SELECT $1, $2, $3, $4, r.* FROM unnest($5::bigint[], $6::text[]) r",
            self.rejects_table()
        )
    }
}

impl Records<'_> {
    /// Creates the table of rejected rows where it is missing.
    pub(crate) fn create_rejects(&self) -> Result<()> {
        if self.has_rejects()? {
            return Ok(());
        }
        let (loads, rejects) = (self.table("loads"), self.rejects_table());
        let unlogged = if self.unlogged { "UNLOGGED " } else { "" };
        let key = advisory_key(&loads);
        self.link.begin()?;
        self.link.batch(&format!(
            "SELECT pg_advisory_xact_lock({key}); CREATE {unlogged}TABLE IF NOT EXISTS {rejects} (\
                   load_id text NOT NULL REFERENCES {loads} ON DELETE CASCADE, \
                   file integer NOT NULL, row_group integer NOT NULL, first_row bigint NOT NULL, \
                   \"row\" bigint NOT NULL, reason text NOT NULL, \
                   PRIMARY KEY (load_id, file, row_group, \"row\"))"
        ))?;
        self.link.commit_durably()
    }

    /// The existing tables of rejected rows.
    pub(crate) fn rejects_tables(&self) -> Result<Vec<String>> {
        let names = [REJECTS, REJECTS_UNLOGGED].map(|name| self.table(name));
        let sql = "SELECT name FROM unnest($1::text[]) name WHERE to_regclass(name) IS NOT NULL";
        self.link.list(sql, &[&names.as_slice()])
    }

    fn has_rejects(&self) -> Result<bool> {
        self.link.value("SELECT to_regclass($1) IS NOT NULL", &[&self.rejects_table()])
    }

    /// The number of rejected rows of each unit of a load, without units that have none.
    pub(crate) fn count_rejects(&self, id: &str) -> Result<HashMap<UnitKey, u64>> {
        if !self.has_rejects()? {
            return Ok(HashMap::new());
        }
        let sql = format!(
            "SELECT file, row_group, first_row, count(*) FROM {} WHERE load_id = $1 GROUP BY 1, 2, 3",
            self.rejects_table()
        );
        let counts = self.link.rows::<(i32, i32, i64, i64)>(&sql, &[&id])?.into_iter();
        let of_unit = |(file, group, first, rows)| (unit_key(file, group, first), rows as u64);
        Ok(counts.map(of_unit).collect())
    }

    /// The units of a load that have rejected rows, in their order.
    pub(crate) fn rejecting_units(&self, id: &str) -> Result<Vec<UnitKey>> {
        let mut keys: Vec<UnitKey> = self.count_rejects(id)?.into_keys().collect();
        keys.sort_unstable();
        Ok(keys)
    }

    /// The rejected rows of one unit, in their order.
    pub(crate) fn rejects(&self, id: &str, key: UnitKey) -> Result<Vec<Reject>> {
        let sql = format!(
            "SELECT \"row\", reason FROM {} \
             WHERE load_id = $1 AND file = $2 AND row_group = $3 AND first_row = $4 ORDER BY \"row\"",
            self.rejects_table()
        );
        let (file, row_group, first_row) = key_columns(key);
        let rejects = self.link.rows(&sql, &[&id, &file, &row_group, &first_row])?.into_iter();
        Ok(rejects.map(|(row, reason): (i64, String)| Reject { row: row as u64, reason }).collect())
    }
}

/// Records rejected rows in the open transaction.
pub(crate) struct RejectRecorder {
    insert: Statement,
}

impl RejectRecorder {
    pub(crate) fn new(checkpoints: &Checkpoints, link: Link<'_>) -> Result<Self> {
        Ok(Self { insert: link.prepare(&checkpoints.insert_rejects())? })
    }

    pub(crate) async fn record(
        &self,
        client: &tokio_postgres::Client,
        id: &str,
        unit: &Unit,
        rejects: &[Reject],
    ) -> std::result::Result<(), tokio_postgres::Error> {
        if rejects.is_empty() {
            return Ok(());
        }
        let (file, row_group, first_row) = key_columns(unit.key);
        let rows: Vec<i64> = rejects.iter().map(|reject| reject.row as i64).collect();
        // A reason may quote text that the server does not store.
        let reasons: Vec<String> = rejects.iter().map(|reject| reject.reason.replace('\0', "\\0")).collect();
        client.execute(&self.insert, &[&id, &file, &row_group, &first_row, &rows, &reasons]).await?;
        Ok(())
    }
}

/// A load that contains files of a source.
pub(crate) struct LoadOfFiles {
    id: String,
    /// The positions of the files in the load, and in the source.
    files: BTreeMap<u32, u32>,
}

impl LoadOfFiles {
    /// The loads that contain these files. Of files in order together, the places of rows are not known.
    pub(crate) fn containing(found: &[Found<'_>]) -> Vec<Self> {
        let mut loads: BTreeMap<&str, BTreeMap<u32, u32>> = BTreeMap::new();
        for Found { file, load, place } in found.iter().filter(|found| !found.load.mixes_files()) {
            loads.entry(&load.id).or_default().insert(*place, *file);
        }
        loads.into_iter().map(|(id, files)| Self { id: id.to_owned(), files }).collect()
    }

    /// The rejected rows of the files by the load's units, as the source numbers its files.
    ///
    /// # Errors
    /// A lost connection; units that the source lacks.
    pub(crate) fn rejects(
        &self,
        source: &dyn Source,
        records: &Records<'_>,
    ) -> Result<Vec<(Unit, Vec<Reject>)>> {
        let groups = row_groups(source);
        let units: BTreeSet<UnitKey> = records.units(&self.id)?.into_keys().collect();
        let mut rejects = Vec::new();
        for key in records.rejecting_units(&self.id)? {
            let Some(file) = self.files.get(&key.file) else { continue };
            let group = groups.get(&(*file, key.row_group)).ok_or_else(|| gone(key.row_group))?;
            let after = UnitKey { first_row: key.first_row + 1, ..key };
            let next = units
                .range(after..)
                .next()
                .filter(|next| (next.file, next.row_group) == (key.file, key.row_group));
            let end = next.map_or(group.key.first_row + group.rows, |next| next.first_row);
            let rows = end.saturating_sub(key.first_row);
            let unit = Unit { key: UnitKey { file: *file, ..key }, rows, bytes: 0 };
            rejects.push((unit, records.rejects(&self.id, key)?));
        }
        Ok(rejects)
    }
}
