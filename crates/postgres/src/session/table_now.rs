//! The table that a session's rows went into, as it is when the load ends.

use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use super::PostgresSession;
use crate::records::presence::{Of, Presence};
use crate::table::catalogue::find;

impl PostgresSession<'_> {
    /// Makes sure, within the transaction that completes the load, that the rows are in the table that has its name, and
    /// were not taken out of it with its file. Rows that others deleted one by one are not missed here: only `--verify`
    /// reads the table.
    pub(super) fn refuse_another_table(&self, connection: &Connection, control: &Control<'_>) -> Result<()> {
        let place = || format!("table {}, {}", self.table, connection.place());
        let oid = self.record.table_oid;
        if find(connection, &self.table, control)?.is_none_or(|found| found.oid != oid) {
            let what = "the table was dropped or renamed while the load ran: the name is that of another table now, or of none";
            return Err(Error::new(Kind::Mismatch, what).at(place()).advise(
                "bring back the table under its name and run the same command again; or take the load back (sawmill load \
                 forget), remove what has come into the other table, and load again",
            ));
        }
        let checkpoints = &self.plan.checkpoints;
        if !checkpoints.is_rewritten(connection, &self.plan.load_id, control)? {
            return Ok(());
        }
        let presence = Presence::of(Of::Table(oid), &self.table, checkpoints, connection, control)?;
        match presence.lacks_rows() {
            false => Ok(()),
            true => Err(presence.error(
                place(),
                "take the load back (sawmill load forget), remove what is left of its rows, and load again",
            )),
        }
    }
}
