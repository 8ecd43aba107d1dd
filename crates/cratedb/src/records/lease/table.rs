//! The table `leases`, next to the tables of loads and units.

use sawmill_source::{Control, Result};
use serde_json::json;

use super::Held;
use crate::connect::client::Client;
use crate::records::checkpoint::Checkpoints;

/// The table's name.
pub(crate) const LEASES: &str = "leases";

impl Checkpoints {
    /// Creates the table where it is missing.
    pub(in super::super) fn create_leases(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"name\" TEXT, \"number\" BIGINT, \"owner\" TEXT, \"beat\" BIGINT, \
             PRIMARY KEY (\"name\", \"number\")) CLUSTERED INTO 1 SHARDS",
            self.table(LEASES)
        );
        self.run(client, &statement, &[], control)?;
        Ok(())
    }

    /// Whether any lease is held. Another command may have dropped the table.
    pub(in super::super) fn any_leases(&self, client: &mut Client, control: &Control<'_>) -> Result<bool> {
        if !self.have(&[LEASES], client, control)? {
            return Ok(false);
        }
        let table = self.table(LEASES);
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let answer = self.run(client, &format!("SELECT count(*) FROM {table}"), &[], control)?;
        Ok(answer.all::<(i64,)>()?.first().is_some_and(|(count,)| *count > 0))
    }

    /// Removes the table.
    pub(in super::super) fn drop_leases(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        self.run(client, &format!("DROP TABLE IF EXISTS {}", self.table(LEASES)), &[], control)?;
        Ok(())
    }

    /// All rows of a lease, the latest number last.
    pub(super) fn leases(&self, client: &mut Client, name: &str, control: &Control<'_>) -> Result<Vec<Held>> {
        let table = self.table(LEASES);
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!(
            "SELECT \"number\", \"owner\", \"beat\" FROM {table} WHERE \"name\" = ? ORDER BY \"number\""
        );
        let answer = self.run(client, &statement, &[json!(name)], control)?;
        let rows = answer.all::<(i64, String, i64)>()?.into_iter();
        Ok(rows
            .map(|(number, owner, beat)| Held { number, owner: serde_json::from_str(&owner).ok(), beat })
            .collect())
    }

    /// Who has a number of a lease. The server looks up a whole key without a refresh.
    pub(super) fn lease_owner(
        &self,
        client: &mut Client,
        name: &str,
        number: i64,
        control: &Control<'_>,
    ) -> Result<Option<String>> {
        let table = self.table(LEASES);
        let statement = format!("SELECT \"owner\" FROM {table} WHERE \"name\" = ? AND \"number\" = ?");
        let answer = self.run(client, &statement, &[json!(name), json!(number)], control)?;
        Ok(answer.all::<(String,)>()?.into_iter().next().map(|(owner,)| owner))
    }

    /// Whether this load was the one that inserted this number.
    pub(super) fn insert_lease(
        &self,
        client: &mut Client,
        name: &str,
        number: i64,
        owner: &str,
        control: &Control<'_>,
    ) -> Result<bool> {
        let statement = format!(
            "INSERT INTO {} (\"name\", \"number\", \"owner\", \"beat\") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            self.table(LEASES)
        );
        let arguments = [json!(name), json!(number), json!(owner), json!(0)];
        Ok(self.run(client, &statement, &arguments, control)?.count()? == 1)
    }

    /// Signals that the holder is alive.
    pub(super) fn beat(
        &self,
        client: &mut Client,
        (name, number): (&str, i64),
        beat: i64,
        control: &Control<'_>,
    ) -> Result<()> {
        let table = self.table(LEASES);
        let statement = format!("UPDATE {table} SET \"beat\" = ? WHERE \"name\" = ? AND \"number\" = ?");
        self.run(client, &statement, &[json!(beat), json!(name), json!(number)], control)?;
        Ok(())
    }

    /// Removes a number of a lease. The server looks up a whole key without a refresh.
    pub(super) fn delete_lease(
        &self,
        client: &mut Client,
        name: &str,
        number: i64,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("DELETE FROM {} WHERE \"name\" = ? AND \"number\" = ?", self.table(LEASES));
        self.run(client, &statement, &[json!(name), json!(number)], control)?;
        Ok(())
    }

    /// Removes all numbers of a lease before `number`.
    pub(super) fn delete_leases(
        &self,
        client: &mut Client,
        name: &str,
        number: i64,
        control: &Control<'_>,
    ) -> Result<()> {
        let table = self.table(LEASES);
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!("DELETE FROM {table} WHERE \"name\" = ? AND \"number\" < ?");
        self.run(client, &statement, &[json!(name), json!(number)], control)?;
        Ok(())
    }
}
