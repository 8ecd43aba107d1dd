//! Modes create and replace: a table that gathers out of sight, and takes its name, or another's place, in
//! the end.

use sawmill_loader::{LoadState, Mode};
use sawmill_source::Result;

use super::{Preparing, rename};
use crate::records::checkpoint::{LoadRecord, State};
use crate::session::insertion::is_statement;
use crate::table::names::CrateTable;
use crate::table::{catalogue, ddl};
use crate::tags::jobs;

impl Preparing<'_> {
    /// A table that gathers out of sight, and takes its name (or another's place) in the end.
    pub(crate) fn gather(&mut self) -> Result<(LoadRecord, LoadState)> {
        let (staging, sealed) = (self.table.staging(), self.table.sealed());
        let retries = self.options.retries;
        let record = self.checkpoints.find(self.client, self.id, self.control)?;
        if record.as_ref().is_some_and(|record| record.state != State::Complete) {
            self.wait_for_names(&staging, &sealed)?;
        }
        let tables = [self.table, &staging, &sealed];
        let [table, mut gathered, is_sealed] =
            catalogue::which_exist(self.client, tables, retries, self.control)?;
        if is_sealed && !gathered {
            // A run was killed between the last audit and the table's final name.
            rename(self.client, &sealed, &staging, retries, self.control)?;
            gathered = true;
        }
        match (record, table) {
            (Some(record), true) if record.state == State::Complete => {
                let changed = record.files.changed(self.source.files());
                let rows = self.count(self.table)?;
                let differs = self.shape.differs_from(&record.shape);
                let untouched = rows == record.rows
                    && differs.is_none()
                    && !(self.options.again && self.crate_db.mode == Mode::Replace);
                match (changed.is_empty(), untouched, self.crate_db.mode) {
                    (true, true, _) => Ok((record, LoadState::Complete)),
                    (_, _, Mode::Replace) => self.start(gathered, &staging),
                    _ if differs.is_some() => {
                        let differs = differs.unwrap_or_default();
                        Err(self.exists(&format!("loaded from these files with other options: {differs}")))
                    }
                    (false, ..) => {
                        Err(self.exists(&format!("loaded from another content of {}", changed.join(", "))))
                    }
                    (true, false, _) => {
                        let at_end = record.rows;
                        Err(self.exists(&format!(
                            "with {rows} rows; it had {at_end} when this load was complete"
                        )))
                    }
                }
            }
            // It was put in its place and the word of it was lost.
            (Some(record), true) if record.state == State::Placing && !gathered => {
                self.refuse_changed(&record)?;
                self.refuse_other_options(&record)?;
                self.placed = true;
                Ok((record, LoadState::Resumed))
            }
            (Some(record), _) if record.state != State::Complete && gathered => {
                if self.crate_db.mode == Mode::Create && table {
                    return Err(self.exists("made by another program while the load ran"));
                }
                if self.shape.differs_from(&record.shape).is_some() && self.is_empty(&staging)? {
                    return self.start(gathered, &staging);
                }
                self.refuse_changed(&record)?;
                self.refuse_other_options(&record)?;
                Ok((record, LoadState::Resumed))
            }
            (_, true) if self.crate_db.mode == Mode::Create => Err(self.exists("not loaded by this command")),
            _ => self.start(gathered, &staging),
        }
    }

    /// Waits until killed runs can rename no table any more. The server finishes their statements, so the tables
    /// that exist now may soon have other names.
    fn wait_for_names(&mut self, staging: &CrateTable, sealed: &CrateTable) -> Result<()> {
        let (staging, sealed) = (staging.quoted(), sealed.quoted());
        let beginnings = [
            format!("ALTER TABLE {staging} RENAME TO "),
            format!("ALTER TABLE {sealed} RENAME TO "),
            format!("ALTER CLUSTER SWAP TABLE {staging} TO "),
        ];
        let is_meant = |statement: &str| beginnings.iter().any(|beginning| statement.starts_with(beginning));
        jobs::wait_for(self.client, &is_meant, self.options.retries, self.control)
    }

    fn start(&mut self, gathered: bool, staging: &CrateTable) -> Result<(LoadRecord, LoadState)> {
        if gathered {
            self.take_away(staging)?;
        }
        let record = self.record(None);
        self.write_record(&record)?;
        let create = ddl::create_table(staging, &self.plan.columns, &self.plan.key, &self.crate_db.options)?;
        // Run twice after a lost answer, it says that the table exists: that is well then.
        let create = create.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
        self.client.sql(&create, &[], self.options.retries, self.control)?;
        Ok((record, LoadState::New))
    }

    /// Drops the staging table of an earlier load, which no run works on, if it has no rows.
    fn take_away(&mut self, staging: &CrateTable) -> Result<()> {
        let loads = self.checkpoints.of_table(self.client, &self.table.to_string(), self.control)?;
        let begun =
            loads.into_iter().find(|into| !into.load.complete && into.load.mode != Mode::Append.name());
        // A statement is never resumed.
        let is_over = begun.as_ref().is_some_and(|into| is_statement(&into.load.files.names));
        if is_over {
            // Requests of a killed one may still run.
            let insert = format!("INSERT INTO {} ", staging.quoted());
            jobs::end(
                self.client,
                &|statement| statement.starts_with(&insert),
                true,
                self.options.retries,
                self.control,
            )?;
        }
        if is_over || self.is_empty(staging)? {
            let drop = format!("DROP TABLE IF EXISTS {}", staging.quoted());
            self.client.sql(&drop, &[], self.options.retries, self.control)?;
            if let Some(begun) = begun {
                self.checkpoints.delete(self.client, "load_id", &begun.load.id, self.control)?;
            }
            return Ok(());
        }
        let same_files = begun.as_ref().filter(|into| {
            let names = self.source.files().iter().map(|file| &file.name);
            into.load.mode == self.crate_db.mode.name()
                && into.load.mapping == self.mapping
                && into.load.files.names.iter().eq(names)
        });
        let differs = same_files.and_then(|into| self.shape.differs_from(&into.shape));
        Err(self.unfinished(differs.as_deref(), begun.as_ref().map(|into| &into.load)))
    }
}
