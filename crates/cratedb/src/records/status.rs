//! The status of loads: which there are, their progress, and whether they run.

use std::collections::HashSet;

use sawmill_loader::{FileStatus, LoadStatus, TableName};
use sawmill_source::{Control, Result};

use crate::connect::address::CrateServer;
use crate::connect::client::{Client, Cluster};
use crate::records::checkpoint::{Checkpoints, State};
use crate::records::lease;
use crate::records::lease::lease_name;
use crate::table::catalogue;
use crate::table::names::CrateTable;

/// Tries of a lost connection.
const RETRIES: u32 = 3;

/// All loads that a cluster has records of, or those into one table, the latest first; then the tables in
/// which rows of a load gathered that is not recorded. `checkpoint_schema` is that of the checkpoint tables.
///
/// Whether a load of another machine is under way shows within four seconds, which this call waits for if
/// need be.
///
/// # Errors
/// No connection, or no permission.
pub fn crate_status(
    server: &CrateServer,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    control: &Control<'_>,
) -> Result<Vec<LoadStatus>> {
    let cluster = Cluster::new(server, std::time::Duration::ZERO)?;
    let mut client = Client::new(&cluster, false);
    let checkpoints = Checkpoints::new(checkpoint_schema, RETRIES);
    let is_meant = |recorded: &str| {
        table.is_none_or(|table| {
            let schema = table.schema().unwrap_or(&server.schema);
            recorded == format!("{schema}.{}", table.name())
        })
    };
    let mut loads = Vec::new();
    let mut gathering = HashSet::new();
    if checkpoints.exist(&mut client, control)? {
        let recorded = checkpoints.all(&mut client, control)?;
        let recorded = recorded.into_iter().filter(|load| is_meant(&load.target)).collect::<Vec<_>>();
        let unfinished = recorded.iter().filter(|load| load.state != State::Complete);
        let names = unfinished.map(|load| lease_name(&load.target, &load.mode, &load.id));
        let running = lease::alive(&checkpoints, &mut client, names.collect(), control)?;
        for load in recorded {
            let units = checkpoints.units(&mut client, &load.id, control)?;
            let complete = load.state == State::Complete;
            let rows_of = |file: u32| {
                units.iter().filter(|(key, _)| key.file == file).map(|(_, unit)| unit.tally.rows).sum()
            };
            let files = (0..).zip(load.files).map(|(file, name)| FileStatus { name, rows: rows_of(file) });
            let files = files.collect();
            if !complete && load.mode != "append" {
                gathering.insert(load.target.clone());
            }
            loads.push(LoadStatus {
                running: !complete && running.contains(&lease_name(&load.target, &load.mode, &load.id)),
                table: load.target,
                mode: load.mode,
                files,
                begun: load.begun,
                completed: load.completed,
                units: units.len() as u64,
                audited_batches: load.audited.filter(|_| complete),
                rows: units.values().map(|unit| unit.tally.rows).sum(),
                load_id: load.id,
            });
        }
    }
    for CrateTable { schema, name } in catalogue::staging_tables(&mut client, RETRIES, control)? {
        let target = format!("{schema}.{name}");
        if is_meant(&target) && !gathering.contains(&target) {
            loads.push(LoadStatus {
                table: target,
                mode: "not recorded".to_owned(),
                files: Vec::new(),
                begun: String::new(),
                completed: None,
                units: 0,
                audited_batches: None,
                rows: 0,
                running: false,
                load_id: String::new(),
            });
        }
    }
    Ok(loads)
}
