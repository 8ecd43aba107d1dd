//! The commands for records: the status of loads, pruning, and forgetting.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use sawmill_loader::{FileStatus, Forgotten, LoadStatus, Pruned, TableName};
use sawmill_source::{Control, Kind, Result};

use crate::connect::address::CrateServer;
use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Sql;
use crate::records::checkpoint::{Checkpoints, LoadRow, ago};
use crate::records::lease::{self, Lease, lease_name};
use crate::table::catalogue::{self, exists};
use crate::table::names::CrateTable;
use crate::target::CrateDb;

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

impl CrateDb {
    /// Removes the records of all loads into a table and the leftovers of unfinished loads, recorded or not. With
    /// `drop_table`, drops the table as well. Appended rows stay.
    ///
    /// # Errors
    /// A load into the table is running.
    pub fn forget(&self, drop_table: bool, control: &Control<'_>) -> Result<Forgotten> {
        let table = self.table()?;
        let (target, staging) = (table.to_string(), table.staging());
        let mut client = Client::new(&Cluster::new(&self.server, Duration::ZERO, RETRIES)?);
        let sql = &mut client.on(control);
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        let mut forgotten = Forgotten::default();
        let recorded = checkpoints.on(sql).exist()?;
        // The leases keep other runs from loading into the table until the records are gone.
        let mut leases = Vec::new();
        if recorded {
            let mut records = checkpoints.on(sql);
            records.create()?;
            let loads = records.of_table(&target)?;
            let unfinished = loads.iter().filter(|row| !row.load.complete).map(LoadRow::lease_name);
            let names: BTreeSet<String> = unfinished.chain([target.clone()]).collect();
            for name in names {
                leases.push(Lease::take(&checkpoints, &name, sql)?);
            }
        }
        for gathered in [staging, table.sealed()] {
            if exists(sql, &gathered)? {
                sql.drop_table(&gathered)?;
                forgotten.staging_dropped = true;
            }
        }
        if drop_table && exists(sql, &table)? {
            sql.drop_table(&table)?;
            forgotten.table_dropped = true;
        }
        if recorded {
            let mut records = checkpoints.on(sql);
            for load in records.of_table(&target)? {
                records.delete(&load.load.id)?;
                forgotten.loads += 1;
            }
            drop(leases);
            records.drop_if_empty()?;
        }
        Ok(forgotten)
    }
}
