//! Rows that another, unfinished load gathers for the table.

use sawmill_loader::{Mode, TableName};
use sawmill_source::{Error, Kind, Result};

use super::Preparing;
use crate::records::checkpoint::advisory_key;
use crate::table::catalogue::{FoundTable, find, value};
use crate::target::Postgres;
use crate::types::made_types;

impl Preparing<'_, '_> {
    /// Keeps other loads from creating the staging table until the open transaction ends. A load that ended just
    /// now may have made the table itself.
    pub(super) fn claim(&self, staging: &TableName) -> Result<()> {
        let (connection, control) = (self.connection, self.control);
        let key = advisory_key(&format!("new table {}", staging.quoted()));
        connection.query(control, "SELECT pg_advisory_xact_lock($1)", &[&key])?;
        let refusal = match find(connection, staging, control)? {
            Some(_) => self.unfinished(staging)?,
            // Looked for after the staging table, which becomes this one in a single transaction.
            None if self.postgres.mode == Mode::Create => match find(connection, self.table, control)? {
                Some(made) => self.exists(&made)?,
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        connection.batch(control, "ROLLBACK")?;
        Err(refusal)
    }

    /// Discards the leftovers of a load that failed before its first unit, and refuses any other load that
    /// gathers rows for the table. `existing` is the table's OID, or 0.
    pub(super) fn make_room(
        &self,
        gathered: Option<&FoundTable>,
        staging: &TableName,
        existing: u32,
    ) -> Result<()> {
        let Some(found) = gathered else { return Ok(()) };
        self.connection.begin(self.control)?;
        let discarded = self.discard_empty(found, staging, existing)?;
        self.connection.commit(self.control)?;
        if discarded { Ok(()) } else { Err(self.unfinished(staging)?) }
    }

    /// Discards the staging table of a load that failed before its first unit, for example because of a value
    /// that the same load accepts with another option. Returns false if that load has units or is still
    /// running.
    fn discard_empty(&self, gathered: &FoundTable, staging: &TableName, existing: u32) -> Result<bool> {
        let (connection, control) = (self.connection, self.control);
        let (loads, units) = (self.checkpoints.table("loads"), self.checkpoints.all_units());
        // The record of an upsert has the table that its rows are merged into.
        let of_table = format!(
            "SELECT load_id FROM {loads} WHERE completed IS NULL \
             AND (table_oid = $1 OR table_oid = $2 AND mode = 'upsert')"
        );
        let rows = connection.query(control, &of_table, &[&i64::from(gathered.oid), &i64::from(existing)])?;
        let [row] = rows.as_slice() else { return Ok(false) };
        let id: String = connection.get(row, 0)?;
        // The lock keeps the load from starting before this transaction ends, so no unit can follow.
        if !value::<bool>(connection, control, "SELECT pg_try_advisory_xact_lock($1)", &[&advisory_key(&id)])?
        {
            return Ok(false);
        }
        let empty = format!("SELECT NOT EXISTS (SELECT FROM {units} u WHERE load_id = $1)");
        if !value::<bool>(connection, control, &empty, &[&id])? {
            return Ok(false);
        }
        made_types::drop_table(connection, staging, gathered.oid, control)?;
        self.checkpoints.delete(connection, &id, control)?;
        Ok(true)
    }

    /// Whether another load into the table runs: it holds its lock.
    fn runs(&self) -> Result<bool> {
        let (connection, control) = (self.connection, self.control);
        for id in self.checkpoints.unfinished(connection, &self.table.to_string(), control)? {
            let lock = "SELECT pg_try_advisory_xact_lock($1)";
            if id != self.id && !value::<bool>(connection, control, lock, &[&advisory_key(&id)])? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Another load gathers rows for the table.
    fn unfinished(&self, staging: &TableName) -> Result<Error> {
        if self.runs()? {
            let what = "another load into this table is running";
            let advice = "wait until it ends, or stop it; then run the same command again";
            return Ok(Error::new(Kind::Busy, what).at(self.place()).advise(advice));
        }
        let schema = match self.postgres.checkpoint_schema.as_str() {
            Postgres::CHECKPOINT_SCHEMA => String::new(),
            schema => format!(" --checkpoint-schema {schema}"),
        };
        let what = format!("another load into this table is unfinished: {staging} exists");
        Ok(Error::new(Kind::Exists, what).at(self.place()).advise(format!(
            "finish it with the files and options that it began with, or remove what it left: sawmill load forget --to ... \
             --table {}{schema}",
            self.table
        )))
    }
}
