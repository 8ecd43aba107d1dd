//! The tables of records: made and dropped.

use sawmill_source::Result;
use serde_json::json;

use super::Records;
use crate::records::lease::LEASES;

/// JSON of any length, which no search asks for.
const TALLY: &str = "TEXT INDEX OFF STORAGE WITH (columnstore = false)";

impl Records<'_> {
    /// Whether the tables of loads and units exist.
    pub(crate) fn exist(&mut self) -> Result<bool> {
        self.have(&["loads", "units"])
    }

    /// Whether all of these tables exist.
    pub(in super::super) fn have(&mut self, tables: &[&str]) -> Result<bool> {
        let statement = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name IN ('{}')",
            tables.join("', '")
        );
        let schema = json!(self.schema);
        Ok(self.sql.number(&statement, &[schema])? == tables.len() as u64)
    }

    /// Creates the tables where they are missing.
    pub(crate) fn create(&mut self) -> Result<()> {
        if self.have(&[LEASES, "loads", "units"])? {
            return Ok(());
        }
        self.create_leases()?;
        let loads = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"load_id\" TEXT PRIMARY KEY, \"target\" TEXT, \"mode\" TEXT, \"state\" TEXT, \
             \"unit_rows\" BIGINT, \"files\" ARRAY(TEXT), \"fingerprints\" ARRAY(TEXT), \"rows\" BIGINT, \
             \"content_sum\" TEXT, \"before\" {TALLY}, \
             \"begun\" TEXT, \"completed\" TEXT, \"stamps\" ARRAY(TEXT), \"mapping\" TEXT, \
             \"shape\" {TALLY}, \"runs\" BIGINT, \"audited\" BIGINT, \"facts\" {TALLY}) \
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
            self.sql.run(&statement, &[])?;
        }
        Ok(())
    }

    /// Drops the tables if no load is recorded any more and none is about to be.
    pub(crate) fn drop_if_empty(&mut self) -> Result<()> {
        let (loads, units) = (self.table("loads"), self.table("units"));
        self.refresh("loads")?;
        if self.sql.number(&format!("SELECT count(*) FROM {loads}"), &[])? == 0 && !self.any_leases()? {
            for table in [units, loads, self.table(LEASES)] {
                self.sql.settled(&format!("DROP TABLE IF EXISTS {table}"), &[])?;
            }
        }
        Ok(())
    }
}
