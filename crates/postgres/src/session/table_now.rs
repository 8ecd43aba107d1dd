//! The table that a session's rows went into, as it is when the load ends.

use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use super::PostgresSession;
use crate::records::presence::{Presence, Scope};
use crate::table::catalogue::find;

impl PostgresSession<'_> {
    /// Checks, in the transaction that completes the load, that the table with this name is the one that was
    /// loaded, and that it was not emptied with its file. Rows that others have deleted one by one are not
    /// noticed here: only `--verify` reads the table.
    pub(super) fn refuse_another_table(&self, connection: &Connection, control: &Control<'_>) -> Result<()> {
        let place = || format!("table {}, {}", self.table, connection.place());
        let oid = self.record.table_oid;
        if find(connection, &self.table, control)?.is_none_or(|found| found.oid != oid) {
            let what = "the table was dropped or renamed while the load ran: its name now belongs to another table, or to none";
            return Err(Error::new(Kind::Mismatch, what).at(place()).advise(
                "restore the table under its name and run the same command again; or forget the load (sawmill load \
                 forget), remove the rows that went into the other table, and load again",
            ));
        }
        let checkpoints = &self.plan.checkpoints;
        if !checkpoints.is_rewritten(connection, &self.plan.load_id, control)? {
            return Ok(());
        }
        let presence = Presence::of(Scope::Table(oid), &self.table, checkpoints, connection, control)?;
        match presence.lacks_rows() {
            false => Ok(()),
            true => Err(presence.error(
                place(),
                "forget the load (sawmill load forget), remove what is left of its rows, and load again",
            )),
        }
    }
}
