//! The tables of records: made, brought up to date, and dropped.

use std::collections::HashSet;

use sawmill_source::{Control, Result};
use serde_json::json;

use super::Checkpoints;
use crate::connect::client::Client;
use crate::table::names::quote;

/// Columns that the tables of earlier versions did not have.
const ADDED: [(&str, &str, &str); 10] = [
    ("loads", "begun", "TEXT"),
    ("loads", "completed", "TEXT"),
    ("loads", "stamps", "ARRAY(TEXT)"),
    ("loads", "mapping", "TEXT"),
    ("loads", "shape", "TEXT INDEX OFF STORAGE WITH (columnstore = false)"),
    ("units", "refused", TALLY),
    ("loads", "runs", "BIGINT"),
    ("loads", "audited", "BIGINT"),
    ("units", "there_before", TALLY),
    ("units", "tags", TALLY),
];

/// JSON of any length, which no search asks for.
const TALLY: &str = "TEXT INDEX OFF STORAGE WITH (columnstore = false)";

impl Checkpoints {
    /// Whether the tables exist.
    pub(crate) fn exist(&self, client: &mut Client, control: &Control<'_>) -> Result<bool> {
        let statement = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name IN ('loads', 'units')";
        let answer = self.run(client, statement, &[json!(self.schema)], control)?;
        Ok(answer.all::<(i64,)>()?.first().is_some_and(|(count,)| *count == 2))
    }

    /// Creates the tables where they are missing.
    pub(crate) fn create(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        self.create_leases(client, control)?;
        if self.exist(client, control)? {
            return self.add_columns(client, control);
        }
        let loads = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"load_id\" TEXT PRIMARY KEY, \"target\" TEXT, \"mode\" TEXT, \"state\" TEXT, \
             \"unit_rows\" BIGINT, \"files\" ARRAY(TEXT), \"fingerprints\" ARRAY(TEXT), \"rows\" BIGINT, \
             \"content_sum\" TEXT, \"before\" TEXT INDEX OFF STORAGE WITH (columnstore = false), \
             \"begun\" TEXT, \"completed\" TEXT, \"stamps\" ARRAY(TEXT), \"mapping\" TEXT, \
             \"shape\" TEXT INDEX OFF STORAGE WITH (columnstore = false), \"runs\" BIGINT, \"audited\" BIGINT) \
             CLUSTERED INTO 1 SHARDS",
            self.table("loads"),
        );
        let units = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"load_id\" TEXT, \"file\" INTEGER, \"row_group\" INTEGER, \"first_row\" BIGINT, \
             \"rows\" BIGINT, \"rejected\" BIGINT, \"content_sum\" TEXT, \"non_null\" ARRAY(BIGINT), \
             \"refused\" {TALLY}, \"there_before\" {TALLY}, \"tags\" {TALLY}, PRIMARY KEY (\"load_id\", \"file\", \"row_group\", \"first_row\")) CLUSTERED INTO 1 SHARDS",
            self.table("units")
        );
        for statement in [loads, units] {
            self.run(client, &statement, &[], control)?;
        }
        Ok(())
    }

    /// The columns that the tables lack: those of earlier versions lack some.
    pub(super) fn lacking(
        &self,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<Vec<(&'static str, &'static str, &'static str)>> {
        let statement = "SELECT table_name, column_name FROM information_schema.columns \
                         WHERE table_schema = ? AND table_name IN ('loads', 'units')";
        let answer = self.run(client, statement, &[json!(self.schema)], control)?;
        let there: HashSet<(String, String)> = answer.all::<(String, String)>()?.into_iter().collect();
        let is_there = |table: &str, column: &str| there.contains(&(table.to_owned(), column.to_owned()));
        Ok(ADDED.into_iter().filter(|(table, column, _)| !is_there(table, column)).collect())
    }

    /// Adds the columns that records of earlier versions lack.
    fn add_columns(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let lacking = self.lacking(client, control)?;
        if lacking.is_empty() {
            return Ok(());
        }
        let mut refused = Ok(());
        for (table, column, kind) in lacking {
            let statement = format!("ALTER TABLE {} ADD COLUMN {} {kind}", self.table(table), quote(column));
            // Refused where the column is there: of two loads that add it at once to the second, and after a
            // lost answer.
            if let Err(error) = self.run(client, &statement, &[], control) {
                refused = Err(error);
            }
        }
        if self.lacking(client, control)?.is_empty() { Ok(()) } else { refused }
    }

    /// Drops the tables if no load is recorded any more and none is about to be.
    pub(crate) fn drop_if_empty(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let (loads, units) = (self.table("loads"), self.table("units"));
        self.run(client, &format!("REFRESH TABLE {loads}"), &[], control)?;
        let counted =
            self.run(client, &format!("SELECT count(*) FROM {loads}"), &[], control)?.all::<(i64,)>()?;
        if counted.first().is_some_and(|(count,)| *count == 0) && !self.any_leases(client, control)? {
            self.run(client, &format!("DROP TABLE IF EXISTS {units}"), &[], control)?;
            self.run(client, &format!("DROP TABLE IF EXISTS {loads}"), &[], control)?;
            self.drop_leases(client, control)?;
        }
        Ok(())
    }
}
