//! Cleans up after interrupted runs before this one starts.

use std::collections::HashMap;

use sawmill_loader::LoadState;
use sawmill_source::{Result, UnitKey};

use super::audit::Audit;
use super::{Recorded, Tags, jobs};
use crate::connect::sql::Sql;
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
        sql: &mut Sql<'_>,
    ) -> Result<Option<Tags>> {
        let Self { checkpoints, row, state, written } = *self;
        if state == LoadState::New {
            return Ok(Some(Tags::of_first_run(column, row.runs)));
        }
        if !catalogue::has_column(sql, written, column)? {
            return Ok(None);
        }
        let run = row.runs + 1;
        checkpoints.on(sql).set_runs(&row.load.id, run)?;
        let insert = format!("INSERT INTO {} ", written.quoted());
        jobs::end(sql, &|statement| statement.starts_with(&insert), true)?;
        let mut recorded = Recorded::default();
        units.iter().for_each(|(key, unit)| recorded.insert(*key, unit.tags.clone()));
        let audited = Audit { table: written, column }.run(&mut recorded, sql)?;
        for unit in audited.lacking {
            units.remove(&unit);
            checkpoints.on(sql).delete_unit(&row.load.id, unit)?;
        }
        Ok(Some(Tags::new(column, run, recorded)))
    }
}
