//! Taking a load back: its records, and the table that gathers.

use super::CrateDb;
use super::catalogue::exists;
use super::checkpoint::Checkpoints;
use super::client::{Client, Cluster};
use crate::control::Control;
use crate::error::Result;
use crate::postgres::Forgotten;

/// Tries of a lost connection.
const RETRIES: u32 = 3;

/// Removes the records of all loads into a table and what unfinished ones left behind, and with
/// `drop_table` the table itself. Rows that were appended stay.
pub(crate) fn forget(crate_db: &CrateDb, drop_table: bool, control: &Control<'_>) -> Result<Forgotten> {
    let table = crate_db.table()?;
    let staging = table.staging();
    let mut client = Client::new(&Cluster::new(&crate_db.server, std::time::Duration::ZERO)?, false);
    let checkpoints = Checkpoints::new(&crate_db.checkpoint_schema, RETRIES);
    let mut forgotten = Forgotten::default();
    let recorded = checkpoints.exist(&mut client, control)?;
    if (recorded || drop_table) && exists(&mut client, &staging, RETRIES, control)? {
        client.sql(&format!("DROP TABLE IF EXISTS {}", staging.quoted()), &[], RETRIES, control)?;
        forgotten.staging_dropped = true;
    }
    if drop_table && exists(&mut client, &table, RETRIES, control)? {
        client.sql(&format!("DROP TABLE IF EXISTS {}", table.quoted()), &[], RETRIES, control)?;
        forgotten.table_dropped = true;
    }
    if recorded {
        forgotten.loads = checkpoints.delete(&mut client, "target", &table.to_string(), control)?;
        checkpoints.drop_if_empty(&mut client, control)?;
    }
    Ok(forgotten)
}
