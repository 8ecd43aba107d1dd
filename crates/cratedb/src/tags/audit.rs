//! Counts the rows of tags, and removes rows that no record accounts for.

use std::collections::{BTreeMap, BTreeSet};

use sawmill_source::{Error, Kind, Result, UnitKey};
use serde_json::{Value, json};

use super::Recorded;
use crate::connect::sql::Sql;
use crate::table::names::{CrateTable, quote};

/// Tags that one answer has at most.
const PAGE: usize = 50_000;
/// Tags that one statement removes.
const REMOVED_AT_ONCE: usize = 500;
/// Rounds in which rows may arrive that are not recorded.
const ROUNDS: usize = 20;

/// A table whose rows have tags.
pub(crate) struct Audit<'a> {
    pub table: &'a CrateTable,
    pub column: &'a str,
}

/// The result of an audit: the table now has exactly the recorded rows.
#[derive(Debug, Default)]
pub(crate) struct Audited {
    /// Units that the table did not have as recorded; all of their rows have been removed.
    pub lacking: BTreeSet<UnitKey>,
    /// Tags and rows that remain.
    pub tags: u64,
    pub rows: u64,
}

impl Audit<'_> {
    /// The rows of a tag, after a refresh.
    pub(crate) fn rows_of(&self, tag: i64, sql: &mut Sql<'_>) -> Result<u64> {
        sql.refresh(self.table)?;
        let statement =
            format!("SELECT count(*) FROM {} WHERE {} = ?", self.table.quoted(), quote(self.column));
        sql.number(&statement, &[json!(tag)])
    }

    /// Compares the table with the records. Drops records of units that the table does not have exactly, and
    /// removes all unrecorded rows. No request may be sent during the audit.
    ///
    /// # Errors
    /// No connection; rows that keep arriving.
    pub(crate) fn run(&self, recorded: &mut Recorded, sql: &mut Sql<'_>) -> Result<Audited> {
        let mut lacking = BTreeSet::new();
        for _ in 0..ROUNDS {
            let counted = self.counted(sql)?;
            lacking.extend(recorded.take_lacking(&counted));
            let unrecorded = recorded.unrecorded(&counted);
            if unrecorded.is_empty() {
                let (tags, rows) = (counted.len() as u64, counted.values().sum());
                return Ok(Audited { lacking, tags, rows });
            }
            for tags in unrecorded.chunks(REMOVED_AT_ONCE) {
                self.remove(tags, sql)?;
            }
        }
        Err(Error::new(Kind::Server, "rows that no request of this run brings keep arriving")
            .at(format!("table {}, {}", self.table, sql.place()))
            .advise("find out who writes to the table; then run the same command again to go on"))
    }

    /// The rows of each tag, after a refresh. Rows without a tag are not of this load.
    fn counted(&self, sql: &mut Sql<'_>) -> Result<BTreeMap<Option<i64>, u64>> {
        sql.refresh(self.table)?;
        let (table, column) = (self.table.quoted(), quote(self.column));
        let mut counted = BTreeMap::new();
        let mut after = None;
        loop {
            let condition = if after.is_some() { format!(" WHERE {column} > ?") } else { String::new() };
            let statement = format!(
                "SELECT {column}, count(*) FROM {table}{condition} GROUP BY {column} ORDER BY {column} LIMIT {PAGE}"
            );
            let arguments: Vec<Value> = after.into_iter().map(Value::from).collect();
            let answer = sql.run(&statement, &arguments)?;
            let page = answer.all::<(Option<i64>, u64)>()?;
            let is_last = page.len() < PAGE;
            after = page.iter().filter_map(|(tag, _)| *tag).max();
            counted.extend(page);
            if is_last || after.is_none() {
                return Ok(counted);
            }
        }
    }

    fn remove(&self, tags: &[Option<i64>], sql: &mut Sql<'_>) -> Result<()> {
        let (table, column) = (self.table.quoted(), quote(self.column));
        let known: Vec<Value> = tags.iter().flatten().map(|tag| json!(tag)).collect();
        if !known.is_empty() {
            let marks = vec!["?"; known.len()].join(", ");
            let statement = format!("DELETE FROM {table} WHERE {column} IN ({marks})");
            sql.run(&statement, &known)?;
        }
        if known.len() < tags.len() {
            let statement = format!("DELETE FROM {table} WHERE {column} IS NULL");
            sql.run(&statement, &[])?;
        }
        Ok(())
    }
}
