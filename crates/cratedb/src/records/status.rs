//! The status of loads: which there are, their progress, and whether they run.

use std::collections::HashSet;

use sawmill_loader::{FileStatus, LoadStatus, TableName};
use sawmill_source::{Control, Result};

use crate::connect::address::CrateServer;
use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Sql;
use crate::records::checkpoint::{Checkpoints, LoadRow};
use crate::records::lease;
use crate::table::catalogue;
use crate::table::names::CrateTable;

/// Tries of a lost connection.
pub(super) const RETRIES: u32 = 3;

/// All loads that a cluster has records of, or the loads into one table, latest first. Tables in which rows of an
/// unrecorded load gathered come last. `checkpoint_schema` is the schema of the checkpoint tables.
///
/// It takes up to twelve seconds to see whether a load of another machine is running; this call waits that long if
/// needed.
///
/// # Errors
/// No connection, or no permission.
pub fn crate_status(
    server: &CrateServer,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    control: &Control<'_>,
) -> Result<Vec<LoadStatus>> {
    let mut client = Client::new(&Cluster::new(server, std::time::Duration::ZERO, RETRIES)?);
    read(&mut client.on(control), &Checkpoints::new(checkpoint_schema), &is_meant(server, table))
}

/// Whether a recorded table is the requested one.
pub(super) fn is_meant<'t>(
    server: &'t CrateServer,
    table: Option<&'t TableName>,
) -> impl Fn(&str) -> bool + 't {
    move |recorded| {
        table.is_none_or(|table| {
            let schema = table.schema().unwrap_or(&server.schema);
            recorded == format!("{schema}.{}", table.name())
        })
    }
}

/// The loads into tables that `is_meant` selects.
pub(super) fn read(
    sql: &mut Sql<'_>,
    checkpoints: &Checkpoints,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<Vec<LoadStatus>> {
    let mut loads = Vec::new();
    let mut gathering = HashSet::new();
    let tables = catalogue::all_tables(sql)?;
    let exist = |target: &str| {
        let gathered = tables.iter().filter_map(CrateTable::gathers_for);
        tables.iter().cloned().chain(gathered).any(|table| table.to_string() == target)
    };
    let mut records = checkpoints.on(sql);
    if records.exist()? {
        // The latest first.
        let recorded = records.all()?.into_iter().rev();
        let recorded = recorded.filter(|row| is_meant(&row.target)).collect::<Vec<_>>();
        let unfinished = recorded.iter().filter(|row| !row.load.complete);
        let running = lease::alive(&mut records, unfinished.map(LoadRow::lease_name).collect())?;
        for row in recorded {
            let units = records.units(&row.load.id)?;
            let of_file = |file: u32| {
                let units = units.iter().filter(|(key, _)| key.file == file).map(|(_, unit)| &unit.rows);
                units
                    .fold((0, 0), |(rows, rejected), unit| (rows + unit.tally.rows, rejected + unit.rejected))
            };
            let files = (0..).zip(row.load.files.names.iter().zip(&row.load.files.fingerprints));
            let files = files.map(|(file, (name, print))| {
                let (rows, rejected) = of_file(file);
                FileStatus::new(name.clone(), print, rows, rejected)
            });
            let files: Vec<FileStatus> = files.collect();
            let complete = row.load.complete;
            if !complete && row.load.mode != "append" {
                gathering.insert(row.target.clone());
            }
            let load = LoadStatus {
                table_exists: exist(&row.target),
                rejected: units.values().map(|unit| unit.rows.rejected).sum(),
                running: !complete && running.contains(&row.lease_name()),
                facts: row.load.facts,
                table: row.target,
                mode: row.load.mode,
                files,
                begun: row.begun,
                completed: row.completed,
                units: units.len() as u64,
                audited_batches: row.audited.filter(|_| complete),
                rows: units.values().map(|unit| unit.rows.tally.rows).sum(),
                load_id: row.load.id,
            };
            loads.push(load.with_facts());
        }
    }
    for table in tables.iter().filter_map(CrateTable::gathers_for) {
        let target = table.to_string();
        if is_meant(&target) && !gathering.contains(&target) {
            loads.push(LoadStatus {
                table: target,
                mode: "not recorded".to_owned(),
                table_exists: true,
                ..LoadStatus::default()
            });
        }
    }
    Ok(loads)
}
