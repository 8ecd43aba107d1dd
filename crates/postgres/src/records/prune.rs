//! Pruning: records of old loads that no later load needs are removed.

use std::time::Duration;

use sawmill_loader::{LoadOptions, Pruned, TableName, retry_reached};
use sawmill_pgwire::{Connection, Server, refuse_pooler};
use sawmill_source::{Control, Result};

use crate::records::checkpoint::{Checkpoints, Records};
use crate::records::status::{read, table_exists};
use crate::table::catalogue::Link;

/// Removes records that no later load needs, of loads that ended longer ago than `older_than`, into any table
/// or one. With `dry_run` it only lists them.
///
/// # Errors
/// No connection, or no permission.
pub fn prune(
    server: &Server,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    (older_than, dry_run): (Duration, bool),
    control: &Control<'_>,
) -> Result<Pruned> {
    let checkpoints = Checkpoints::new(checkpoint_schema)?;
    // If the answer to the commit is lost, the next attempt finds nothing any more.
    let mut committing: Option<Pruned> = None;
    let remove = || {
        let connection = Connection::open(server, control)?;
        let link = Link::new(&connection, control);
        refuse_pooler(&connection, server, control)?;
        let before = "SELECT to_char((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC', \
                      'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
        let records = checkpoints.on(link);
        let cutoff: String = records.link.value(before, &[&older_than.as_secs_f64()])?;
        let loads = read(server, &records, None)?;
        let mut pruned = Pruned::decide(loads, &cutoff, dry_run)
            .of_table(|name| table.is_none_or(|table| super::status::is_meant(table, name)));
        if dry_run || pruned.removed.is_empty() {
            return Ok(committing.take().unwrap_or(pruned));
        }
        link.begin()?;
        let ids: Vec<String> = pruned.removed.iter().map(|load| load.load_id.clone()).collect();
        for id in ids {
            if !records.remove_unneeded(&id)? {
                pruned.keep_changed(&id);
            }
        }
        committing = Some(pruned.clone());
        link.commit()?;
        records.drop_if_empty()?;
        Ok(pruned)
    };
    retry_reached(LoadOptions::default().retries, control, &|| server.is_reached(), remove)
}

impl Records<'_> {
    /// Removes a load's record in the open transaction, unless the load has begun to run or its table has come back
    /// since the decision.
    fn remove_unneeded(&self, id: &str) -> Result<bool> {
        if !self.try_lock(id)? {
            return Ok(false);
        }
        let sql = format!(
            "DELETE FROM {} l WHERE load_id = $1 AND (mode = 'upsert' OR NOT {})",
            self.table("loads"),
            table_exists()
        );
        Ok(self.link.execute(&sql, &[&id])? == 1)
    }
}
