//! The state of a session's table when the load ends.

use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Result};

use super::PostgresSession;
use crate::records::presence::Scope;
use crate::table::catalogue::find;
use crate::table::planned_columns::another_table;

impl PostgresSession<'_> {
    /// The error, or the change of the table's columns that is its cause.
    pub(super) fn explained(&self, error: Error, control: &Control<'_>) -> Error {
        let change =
            self.with_connection(control, |connection| self.plan.planned.change(connection, control));
        change.ok().flatten().unwrap_or(error)
    }

    /// Checks, in the transaction that completes the load, that the table with this name is the one that was
    /// loaded, and that it was not emptied with its file. Rows that others have deleted one by one are not
    /// noticed here: only `--verify` reads the table.
    pub(super) fn refuse_another_table(&self, connection: &Connection, control: &Control<'_>) -> Result<()> {
        let place = || format!("table {}, {}", self.table, connection.place());
        let oid = self.record.table_oid;
        if find(connection, &self.table, control)?.is_none_or(|found| found.oid != oid) {
            return Err(another_table(place()));
        }
        let records = self.plan.checkpoints.on(connection, control);
        if !records.is_rewritten(&self.plan.load_id)? {
            return Ok(());
        }
        let presence = records.presence(Scope::Table(oid), &self.table)?;
        match presence.lacks_rows() {
            false => Ok(()),
            true => Err(presence.error(
                place(),
                "forget the load (sawmill load forget), remove what is left of its rows, and load again",
            )),
        }
    }
}
