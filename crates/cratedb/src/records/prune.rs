//! Pruning: records of old loads that no later load needs are removed.

use std::time::Duration;

use sawmill_loader::{Pruned, TableName};
use sawmill_source::{Control, Kind, Result};

use crate::connect::address::CrateServer;
use crate::connect::client::{Client, Cluster};
use crate::records::checkpoint::{Checkpoints, ago};
use crate::records::lease::{Lease, lease_name};
use crate::records::status::{RETRIES, is_meant, read};

/// Removes the records of loads, of all or of those into one table, that ended longer ago than `older_than` and that
/// no later load needs. With `dry_run` only says which these are.
///
/// # Errors
/// No connection, or no permission.
pub fn crate_prune(
    server: &CrateServer,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    (older_than, dry_run): (Duration, bool),
    control: &Control<'_>,
) -> Result<Pruned> {
    let mut client = Client::new(&Cluster::new(server, Duration::ZERO, RETRIES)?);
    let sql = &mut client.on(control);
    let checkpoints = Checkpoints::new(checkpoint_schema);
    let loads = read(sql, &checkpoints, &|_| true)?;
    let mut pruned = Pruned::decide(loads, &ago(older_than), dry_run).of_table(is_meant(server, table));
    if dry_run || pruned.removed.is_empty() {
        return Ok(pruned);
    }
    checkpoints.on(sql).create()?;
    for load in pruned.removed.clone() {
        // The lease keeps others from starting the load before its record is deleted.
        let name = lease_name(&load.table, &load.mode, &load.load_id);
        let removed = match Lease::take(&checkpoints, &name, sql) {
            Err(error) if error.kind() == Kind::Busy => false,
            Err(error) => return Err(error),
            Ok(_lease) => {
                let now = read(sql, &checkpoints, &|table| table == load.table)?;
                let is_gone = now.iter().any(|now| now.load_id == load.load_id && !now.table_exists);
                if is_gone {
                    checkpoints.on(sql).delete(&load.load_id)?;
                }
                is_gone
            }
        };
        if !removed {
            pruned.keep_changed(&load.load_id);
        }
    }
    checkpoints.on(sql).drop_if_empty()?;
    Ok(pruned)
}
