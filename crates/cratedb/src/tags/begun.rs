//! Cleans up after interrupted runs before this one starts.

use std::collections::HashMap;

use sawmill_loader::LoadState;
use sawmill_source::{Control, Result, UnitKey};

use super::audit::Audit;
use super::{Recorded, Tags, jobs};
use crate::connect::client::Client;
use crate::records::checkpoint::{Checkpoints, LoadRow, UnitRecord};
use crate::table::catalogue;
use crate::table::names::CrateTable;

/// The possible leftovers of an earlier run of a load with tags.
pub(crate) struct Begun<'b> {
    pub checkpoints: &'b Checkpoints,
    pub row: &'b LoadRow,
    pub state: LoadState,
    pub written: &'b CrateTable,
}

impl Begun<'_> {
    /// The tags of this run. Ends requests of earlier runs, removes rows that no record accounts for, and takes
    /// units that the table does not have whole off `units`. Returns `None` if the table has its final form
    /// already.
    pub(crate) fn tags(
        &self,
        column: &str,
        units: &mut HashMap<UnitKey, UnitRecord>,
        client: &mut Client,
        retries: u32,
        control: &Control<'_>,
    ) -> Result<Option<Tags>> {
        let Self { checkpoints, row, state, written } = *self;
        if state == LoadState::New {
            return Ok(Some(Tags::of_first_run(column, row.runs)));
        }
        if !catalogue::has_column(client, written, column, retries, control)? {
            return Ok(None);
        }
        let run = row.runs + 1;
        checkpoints.on(client, control).set_runs(&row.load.id, run)?;
        let insert = format!("INSERT INTO {} ", written.quoted());
        jobs::end(client, &|statement| statement.starts_with(&insert), true, retries, control)?;
        let mut recorded = Recorded::default();
        units.iter().for_each(|(key, unit)| recorded.insert(*key, unit.tags.clone()));
        let audit = Audit { table: written, column, retries };
        let audited = audit.run(&mut recorded, client, control)?;
        for unit in audited.lacking {
            units.remove(&unit);
            checkpoints.on(client, control).delete_unit(&row.load.id, unit)?;
        }
        Ok(Some(Tags::new(column, run, recorded)))
    }
}
