//! Forgetting loads: removes their records and the staging table.

use std::collections::BTreeSet;
use std::time::Duration;

use sawmill_loader::Forgotten;
use sawmill_source::{Control, Result};

use crate::connect::client::{Client, Cluster};
use crate::records::checkpoint::{Checkpoints, LoadRow};
use crate::records::lease::Lease;
use crate::records::status::RETRIES;
use crate::table::catalogue::exists;
use crate::target::CrateDb;

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
