//! The rows that a session's load has rejected: read from their records, and written to their file.

use std::collections::HashMap;

use sawmill_loader::{LoadState, Session};
use sawmill_source::{Control, Read, Result, Unit, UnitKey};

use super::PostgresSession;
use crate::rejected::bad_records::{BadRecords, Places};
use crate::rejected::file::RejectsFile;
use crate::table::catalogue::Link;

impl PostgresSession<'_> {
    /// The rejected rows, as the source counts them.
    pub(super) fn refused(&self, link: Link<'_>) -> Result<Option<BadRecords>> {
        if self.rejected() == 0 {
            return Ok(None);
        }
        let (records, id) = (self.plan.checkpoints.on(link), &self.plan.load_id);
        let loaded = self.source().unwrap_or(self.source);
        let mut places = Places::new(self.source, &std::env::temp_dir())?;
        for key in records.rejecting_units(id)? {
            let rejects = records.rejects(id, key)?;
            let rows: Vec<u64> = rejects.iter().map(|reject| reject.row).collect();
            for row in loaded.rows_in_group(key, &rows)? {
                places.add(key.file, key.row_group, row)?;
            }
        }
        places.into_records()
    }

    /// Writes the file of a complete load if it does not exist: an earlier run could not write it or did not
    /// name it, or it has been removed since.
    pub(super) fn write_missing_rejects(&self, control: &Control<'_>) -> Result<()> {
        let file = self.postgres.rejects.as_ref().filter(|rejects| !rejects.path.exists());
        match file {
            Some(_) if self.state == LoadState::Complete && self.rejected() > 0 => {
                self.with_connection(control, |link| self.write_rejects(link))
            }
            _ => Ok(()),
        }
    }

    /// Writes the file of rejected rows before the load counts as complete. If a run is killed in between,
    /// the next one writes the file again.
    pub(super) fn write_rejects(&self, link: Link<'_>) -> Result<()> {
        let Some(options) = &self.postgres.rejects else { return Ok(()) };
        let (records, id) = (self.plan.checkpoints.on(link), &self.plan.load_id);
        let source = self.source().unwrap_or(self.source);
        let plan = source.plan(self.record.unit_rows);
        let units: HashMap<UnitKey, Unit> = plan.into_iter().flatten().map(|unit| (unit.key, unit)).collect();
        let read = Read { broken_text: true, ..Read::default() };
        let mut reader = source.open(read, self.options.batch_rows);
        let mut file = RejectsFile::create(&options.path, self.postgres.rejects_of(source, &self.table))?;
        for key in records.rejecting_units(id)? {
            let rejects = records.rejects(id, key)?;
            if let Some(unit) = units.get(&key) {
                file.unit(unit, &rejects, reader.as_mut())?;
            }
        }
        file.finish()
    }
}
