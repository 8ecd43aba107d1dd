//! Modes create and replace: a table that gathers out of sight, and takes its name, or another's place, in
//! the end.

use std::collections::HashSet;

use sawmill_loader::{LoadState, Mode, OnRecord, Standing, open};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Error, Result};

use super::unseal;
use crate::records::checkpoint::{LoadRow, State};
use crate::session::insertion::is_statement;
use crate::session::opening::Opening;
use crate::table::names::CrateTable;
use crate::table::{catalogue, ddl};
use crate::tags::jobs;

impl Opening<'_, '_> {
    /// A table that gathers out of sight, and takes its name (or another's place) in the end.
    pub(crate) fn gather(&mut self) -> Result<(LoadRow, LoadState)> {
        let (staging, sealed) = (self.table.staging(), self.table.sealed());
        let record = self.recorded()?;
        if record.as_ref().is_some_and(|record| record.state != State::Complete) {
            // The server finishes the statements of killed runs, so the tables that exist now may soon have other names.
            jobs::wait_for_names(&mut self.sql, &self.table)?;
        }
        let tables = [&self.table, &staging, &sealed];
        let [table, mut gathered, is_sealed] = catalogue::which_exist(&mut self.sql, tables)?;
        if is_sealed {
            // A run was killed between the last audit and the table's final name.
            unseal(&sealed, &staging, &mut self.sql)?;
            gathered = true;
        }
        let is_complete = record.as_ref().is_some_and(|record| record.state == State::Complete);
        if gathered && table && is_complete && self.is_empty(&staging)? {
            // A late request has made it when the load had ended.
            self.sql.drop_table(&staging)?;
            gathered = false;
        }
        // It was put in its place and the word of it was lost.
        if let Some(record) = &record
            && record.state == State::Placing
            && table
            && !gathered
        {
            self.refuse_changed(record)?;
            self.refuse_other_options(record)?;
            self.placed = true;
            return Ok((record.clone(), LoadState::Resumed));
        }
        let (mode, again) = (self.crate_db.mode, self.options.again);
        let mut found = Gathered { record, table, gathered, staging: &staging, opening: self };
        let state = open(mode, again, &mut found)?;
        match found.record {
            Some(record) if state != LoadState::New => Ok((record, state)),
            earlier => self.start(earlier.is_some(), gathered, &staging),
        }
    }

    fn start(
        &mut self,
        is_known: bool,
        gathered: bool,
        staging: &CrateTable,
    ) -> Result<(LoadRow, LoadState)> {
        if gathered {
            self.take_away(staging)?;
        }
        let record = self.record(None);
        self.records().begin(&record, is_known)?;
        let create = ddl::create_table(staging, &self.plan.columns, &self.plan.key, &self.crate_db.options)?;
        // Run twice after a lost answer, it says that the table exists: that is well then.
        let create = create.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
        self.sql.settled(&create, &[])?;
        Ok((record, LoadState::New))
    }

    /// Drops the staging table of an earlier load, which no run works on, if it has no rows, or if this load gathers them
    /// again.
    fn take_away(&mut self, staging: &CrateTable) -> Result<()> {
        let loads = self.loads()?;
        let begun =
            loads.into_iter().find(|into| !into.load.complete && into.load.mode != Mode::Append.name());
        // A statement is never resumed.
        let is_over = |into: &LoadRow| is_statement(&into.load.files.names) || self.gathers_again(into);
        let is_over = begun.as_ref().is_some_and(is_over);
        if is_over {
            // Requests of a killed one may still run.
            jobs::end_inserts(&mut self.sql, staging, true)?;
        }
        if is_over || self.is_empty(staging)? {
            self.sql.drop_table(staging)?;
            if let Some(begun) = begun {
                self.records().delete(&begun.load.id)?;
            }
            return Ok(());
        }
        let same_files = begun.as_ref().filter(|into| {
            let names = self.source.files().iter().map(|file| &file.name);
            into.load.mode == self.crate_db.mode.name()
                && into.load.mapping.as_ref() == Some(&self.mapping)
                && into.load.files.names.iter().eq(names)
        });
        let differs = same_files.and_then(|into| self.shape.differs_from(&into.shape));
        Err(self.unfinished(differs.as_deref(), begun.as_ref().map(|into| &into.load)))
    }

    /// Whether this load replaces an unfinished one, whose rows are not visible yet. Both create the table with the same
    /// options, and this load has all files of the other, perhaps with new content.
    fn gathers_again(&self, into: &LoadRow) -> bool {
        let ours: HashSet<&str> = self.source.files().iter().map(|file| file.name.as_str()).collect();
        let load = &into.load;
        load.mode == self.crate_db.mode.name()
            && load.mapping.as_ref() == Some(&self.mapping)
            && self.shape.differs_from(&into.shape).is_none()
            && load.files.names.iter().all(|name| ours.contains(name.as_str()))
    }
}

/// What a load that gathers finds.
struct Gathered<'f, 'a, 'o> {
    record: Option<LoadRow>,
    /// A table of the load's name exists, and the staging table.
    table: bool,
    gathered: bool,
    staging: &'f CrateTable,
    opening: &'f mut Opening<'a, 'o>,
}

impl Gathered<'_, '_, '_> {
    /// The options in which the record differs from this load.
    fn differs(&self) -> Option<String> {
        self.record.as_ref().and_then(|record| self.opening.shape.differs_from(&record.shape))
    }

    fn changed(&self) -> Vec<String> {
        let files = self.opening.source.files();
        self.record.as_ref().map_or_else(Vec::new, |record| record.load.files.changed(files))
    }

    /// Whether the rows of an interrupted replacement, which nobody sees yet, are of other content.
    fn begins_again(&self) -> bool {
        let opening = &self.opening;
        let again = self.record.as_ref().is_some_and(|record| opening.gathers_again(record));
        again && opening.crate_db.mode == Mode::Replace && !self.changed().is_empty()
    }

    fn other_options(&self, differs: &str) -> Error {
        self.opening.exists(&format!("loaded from these files with other options: {differs}"))
    }
}

impl Standing for Gathered<'_, '_, '_> {
    /// A load with other options would store other values; one with other files cannot go on.
    fn on_record(&self) -> Option<OnRecord> {
        match (self.record.as_ref()?.load.complete, self.table, self.gathered) {
            (true, true, _) => Some(OnRecord::Complete { changed: !self.changed().is_empty() }),
            (false, _, true) => {
                let changed = self.differs().is_some() || self.begins_again();
                Some(OnRecord::Interrupted { changed })
            }
            _ => None,
        }
    }

    fn taken(&mut self) -> Result<Option<Error>> {
        if !self.table {
            return Ok(None);
        }
        let how = match self.on_record() {
            Some(OnRecord::Interrupted { .. }) => "made by another program while the load ran",
            _ => "not loaded by this command",
        };
        let rows = self.opening.count()?;
        Ok(Some(self.opening.exists(&format!("{how}; it has {}", format_counted(rows, "row")))))
    }

    fn lost(&mut self) -> Result<Option<Error>> {
        let rows = self.opening.count()?;
        let at_end = self.record.as_ref().map_or(0, |record| record.rows);
        if let Some(differs) = self.differs() {
            return Ok(Some(self.other_options(&differs)));
        }
        let (has, had) = (format_counted(rows, "row"), format_grouped(at_end));
        let how = format!("with {has}; it had {had} when this load was complete");
        Ok((rows != at_end).then(|| self.opening.exists(&how)))
    }

    fn other_content(&self) -> Error {
        match self.differs() {
            Some(differs) => self.other_options(&differs),
            None => {
                let changed = self.changed().join(", ");
                self.opening.exists(&format!("loaded from another content of {changed}"))
            }
        }
    }

    fn holds_nothing(&mut self) -> Result<bool> {
        Ok(self.begins_again() || self.opening.is_empty(self.staging)?)
    }

    fn check_resumed(&mut self) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        self.opening.refuse_changed(record)?;
        self.opening.refuse_other_options(record)
    }
}
