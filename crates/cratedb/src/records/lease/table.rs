//! The table `leases`, next to the tables of loads and units.

use sawmill_source::Result;
use serde_json::json;

use super::Held;
use crate::records::checkpoint::Records;

/// The table's name.
pub(crate) const LEASES: &str = "leases";

impl Records<'_> {
    /// Creates the table where it is missing.
    pub(in super::super) fn create_leases(&mut self) -> Result<()> {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"name\" TEXT, \"number\" BIGINT, \"owner\" TEXT, \"beat\" BIGINT, \
             PRIMARY KEY (\"name\", \"number\")) CLUSTERED INTO 1 SHARDS",
            self.table(LEASES)
        );
        self.sql.run(&statement, &[]).map(drop)
    }

    /// Whether any lease is held. Another command may have dropped the table.
    pub(in super::super) fn any_leases(&mut self) -> Result<bool> {
        if !self.have(&[LEASES])? {
            return Ok(false);
        }
        self.refresh(LEASES)?;
        let count = format!("SELECT count(*) FROM {}", self.table(LEASES));
        Ok(self.sql.number(&count, &[])? > 0)
    }

    /// All rows of a lease, the latest number last. Makes the tables of records if this one is missing.
    pub(super) fn leases(&mut self, name: &str) -> Result<Vec<Held>> {
        if self.is_refused_refresh(LEASES)? {
            self.create()?;
            self.refresh(LEASES)?;
        }
        let table = self.table(LEASES);
        let statement = format!(
            "SELECT \"number\", \"owner\", \"beat\" FROM {table} WHERE \"name\" = ? ORDER BY \"number\""
        );
        let answer = self.sql.run(&statement, &[json!(name)])?;
        let rows = answer.all::<(i64, String, i64)>()?.into_iter();
        Ok(rows
            .map(|(number, text, beat)| Held { number, owner: serde_json::from_str(&text).ok(), text, beat })
            .collect())
    }

    /// The owners of a number of a lease and of the next one. The server looks up whole keys without a refresh only if
    /// the list has literals, not parameters.
    pub(super) fn lease_owners(&mut self, name: &str, number: i64) -> Result<Vec<(i64, String)>> {
        let (table, next) = (self.table(LEASES), number + 1);
        let of_both = format!("\"name\" = ? AND \"number\" IN ({number}, {next})");
        self.sql
            .run(&format!("SELECT \"number\", \"owner\" FROM {table} WHERE {of_both}"), &[json!(name)])?
            .all()
    }

    /// Whether this load was the one that inserted this number.
    pub(super) fn insert_lease(&mut self, name: &str, number: i64, owner: &str) -> Result<bool> {
        let statement = format!(
            "INSERT INTO {} (\"name\", \"number\", \"owner\", \"beat\") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            self.table(LEASES)
        );
        let arguments = [json!(name), json!(number), json!(owner), json!(0)];
        Ok(self.sql.run(&statement, &arguments)?.count()? == 1)
    }

    /// Signals that the holder is alive.
    pub(super) fn beat(&mut self, name: &str, number: i64, beat: i64) -> Result<()> {
        let table = self.table(LEASES);
        let statement = format!("UPDATE {table} SET \"beat\" = ? WHERE \"name\" = ? AND \"number\" = ?");
        self.sql.run(&statement, &[json!(beat), json!(name), json!(number)]).map(drop)
    }

    /// Removes a number of a lease of this owner: when a late request arrives, another one may have the number. The server
    /// looks for columns beside the key's only among refreshed rows.
    pub(super) fn delete_lease(&mut self, name: &str, number: i64, owner: &str) -> Result<()> {
        self.refresh(LEASES)?;
        let table = self.table(LEASES);
        let statement =
            format!("DELETE FROM {table} WHERE \"name\" = ? AND \"number\" = ? AND \"owner\" = ?");
        self.sql.run(&statement, &[json!(name), json!(number), json!(owner)]).map(drop)
    }
}
