//! Mode append: rows go into a table that holds others.

use std::collections::HashSet;
use std::time::Duration;

use sawmill_loader::{LoadState, Mode, OnRecord, Standing, Tally, and_more_files, open, taken};
use sawmill_profile::{format_counted, format_grouped, turns};
use sawmill_source::{Error, Kind, Result};

use crate::encode::encoder::file_hash;
use crate::records::checkpoint::LoadRow;
use crate::records::history::sharing_files;
use crate::records::lease::{self, Lease};
use crate::records::void;
use crate::session::opening::Opening;
use crate::table::columns::Key;
use crate::verify::rows::{OfFiles, ReadBack};

/// How long a load waits for the beginnings of others, and how often it looks.
const BEGINNING: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(100);

impl Opening<'_, '_> {
    pub(crate) fn append(&mut self) -> Result<(LoadRow, LoadState)> {
        let record = self.recorded()?;
        let again = self.options.again;
        let mut found = Appended { record, opening: self };
        let state = open(Mode::Append, again, &mut found)?;
        match found.record {
            Some(record) if state != LoadState::New => Ok((record, state)),
            earlier => self.start_append(earlier),
        }
    }

    fn start_append(&mut self, earlier: Option<LoadRow>) -> Result<(LoadRow, LoadState)> {
        self.refuse_twice(Kind::Exists)?;
        let before = if self.options.verify { self.sum_up_before()? } else { None };
        // If two loads start at once with the same file, each would see the other and refuse: one after the other.
        let turn = match self.plan.key {
            Key::None => Some(self.take_turn()?),
            _ => None,
        };
        let begun = self.begin_append(earlier, before);
        drop(turn);
        begun
    }

    /// Waits until no other append without a key begins to load into the table.
    fn take_turn(&mut self) -> Result<Lease> {
        let (name, end) = (format!("{}, beginning of an append", self.table), turns::now() + BEGINNING);
        loop {
            match Lease::take(&self.checkpoints, &name, &mut self.sql) {
                Err(error) if error.kind() == Kind::Busy && turns::now() < end => {
                    self.sql.control.sleep(AGAIN)?;
                }
                taken => return taken,
            }
        }
    }

    fn begin_append(
        &mut self,
        earlier: Option<LoadRow>,
        before: Option<Tally>,
    ) -> Result<(LoadRow, LoadState)> {
        self.refuse_twice(Kind::Exists)?;
        let rows = self.count()?;
        if rows == 0 && self.options.again {
            // The rows are gone, and so their records must go.
            let target = self.table.to_string();
            self.checkpoints.on(&mut self.sql).delete_others(&target, &self.id)?;
        }
        let (record, is_known) = (LoadRow { rows, ..self.record(before) }, earlier.is_some());
        if let Some(earlier) = earlier.filter(|earlier| earlier.load.complete && rows > 0) {
            self.keep_earlier(earlier)?;
        }
        self.records().begin(&record, is_known)?;
        // A replacement of these files takes no turn, and this run may have lost its own.
        if let Err(error) = self.refuse_beside().and_then(|()| self.refuse_twice(Kind::Busy)) {
            self.checkpoints.on(&mut self.sql).delete(&self.id)?;
            return Err(error);
        }
        Ok((record, LoadState::New))
    }

    /// Refuses to load beside a running load of the same files, if one of the two replaces their rows.
    pub(super) fn refuse_beside(&mut self) -> Result<()> {
        let replaces = self.crate_db.replaces;
        let mut others = self.unfinished_of_files()?;
        others.retain(|row| replaces || row.load.facts.replaces);
        let running = lease::alive(&mut self.records(), others.iter().map(LoadRow::lease_name).collect())?;
        let Some(other) = others.iter().find(|row| running.contains(&row.lease_name())) else {
            return Ok(());
        };
        let what = format!("another load of {} is running", other.load.files.names.join(", "));
        Err(Error::new(Kind::Busy, what)
            .at(self.place())
            .advise("wait until it has ended; then run the same command again"))
    }

    /// The unfinished appends of these files, without this load.
    pub(super) fn unfinished_of_files(&mut self) -> Result<Vec<LoadRow>> {
        let mut others = self.others_of_files()?;
        others.retain(|LoadRow { load, .. }| !load.complete && load.mode == Mode::Append.name());
        Ok(others)
    }

    /// The other loads of files with these names.
    pub(super) fn others_of_files(&mut self) -> Result<Vec<LoadRow>> {
        let mut others = self.loads()?;
        let ours: HashSet<&str> = self.source.files().iter().map(|file| file.name.as_str()).collect();
        let is_ours = |name: &String| ours.contains(name.as_str());
        others.retain(|row| row.load.id != self.id && row.load.files.names.iter().any(is_ours));
        Ok(others)
    }

    /// Keeps the record of a complete load whose files are loaded again: its rows are still there.
    fn keep_earlier(&mut self, earlier: LoadRow) -> Result<()> {
        let others = format!("{}#", self.id);
        let mut kept = self.loads()?;
        kept.retain(|row| row.load.id.starts_with(&others));
        // A run that was killed may have kept it.
        if kept.iter().any(|row| row.begun == earlier.begun) {
            return Ok(());
        }
        let other = format!("{others}{}", kept.len() + 1);
        self.records().copy(earlier, other)
    }

    /// Sums up the table's rows that cannot be distinguished from the load's own. Row keys distinguish all rows of
    /// other files.
    pub(super) fn sum_up_before(&mut self) -> Result<Option<Tally>> {
        let loads = self.loads()?;
        let shares = sharing_files(&loads, self.source, &self.mapping, &self.id).next().is_some();
        let of_files = match &self.plan.key {
            Key::Row(_) if !shares => return Ok(None),
            Key::Row(column) => Some(OfFiles::new(column, self.source.files().iter().map(file_hash))),
            Key::Own(_) | Key::Tags(_) | Key::None => None,
        };
        let read = ReadBack { of_files, ..ReadBack::new(&self.table, &self.plan, &self.primary) };
        read.run(&mut self.sql).map(Some)
    }

    /// Refuses to append a file without a key if another load into the table has inserted rows of it, or may do so, because
    /// its rows would be duplicated. With a key the server finds existing rows.
    fn refuse_twice(&mut self, kind: Kind) -> Result<()> {
        if self.plan.key != Key::None || self.options.again {
            return Ok(());
        }
        let others = self.others_of_files()?;
        let mut counted = Vec::new();
        for row in others.iter().filter(|row| row.load.mapping.is_some()) {
            if !void::holds_nothing(row, true, (&self.table, &self.checkpoints), &mut self.sql)? {
                counted.push(&row.load);
            }
        }
        let all: Vec<u32> = (0..self.source.files().len() as u32).collect();
        let again = taken(self.source, &all, &counted, &self.mapping);
        let Some(first) = again.first() else { return Ok(()) };
        let others = and_more_files(again.len() - 1);
        let what = format!(
            "another load into this table has {}{others}, and rows have no key: they would be duplicated",
            first.name
        );
        let advice = match kind {
            Kind::Busy => "run the same command again: it loads what is missing then",
            _ => {
                "leave these files out; or add all their rows once more with --again; or give rows a key, by which those that \
                 are there are found"
            }
        };
        Err(Error::new(kind, what).at(self.place()).advise(advice))
    }

    /// Refuses to call a load complete whose table has fewer rows than when it was.
    fn refuse_fewer(&mut self, record: &LoadRow) -> Result<()> {
        let rows = self.count()?;
        if rows >= record.rows {
            return Ok(());
        }
        let (rows, at_end) = (format_counted(rows, "row"), format_grouped(record.rows));
        let what = format!("the table has {rows}; it had {at_end} when this load was complete");
        Err(Error::new(Kind::Changed, what).at(self.place()).advise(rows_missing(&self.plan.key)))
    }

    /// Fails at the start instead of at verification if an earlier run of this append has not summed up the table,
    /// or has left rows that will be duplicated.
    fn refuse_unverifiable(&mut self, record: &LoadRow) -> Result<()> {
        if !self.options.verify || matches!(self.plan.key, Key::Row(_)) {
            // Other loads' records tell whether the rows can be distinguished.
            return Ok(());
        }
        let Some(before) = &record.load.before else { return Err(not_summed_up(&self.place())) };
        if self.plan.key != Key::None {
            return Ok(());
        }
        let units = self.checkpoints.on(&mut self.sql).units(&self.id)?;
        let recorded = before.rows + units.values().map(|unit| unit.rows.tally.rows).sum::<u64>();
        let rows = self.count()?;
        if rows == recorded {
            return Ok(());
        }
        let what = format!(
            "cannot be verified: of {rows} rows of the table {recorded} were there before or are of recorded units; \
             rows have no key, so those of units that an earlier run had begun would be duplicated"
        );
        Err(Error::new(Kind::Mismatch, what).at(self.place()).advise(
            "delete the rows of the unfinished units, or run the same command without --verify and accept duplicate rows",
        ))
    }
}

/// What an append finds.
struct Appended<'f, 'a, 'o> {
    record: Option<LoadRow>,
    opening: &'f mut Opening<'a, 'o>,
}

impl Standing for Appended<'_, '_, '_> {
    /// Another content under the same name, after the first was loaded, is another load.
    fn on_record(&self) -> Option<OnRecord> {
        let load = &self.record.as_ref()?.load;
        let changed = !load.files.changed(self.opening.source.files()).is_empty();
        Some(if load.complete { OnRecord::Complete { changed } } else { OnRecord::Interrupted { changed } })
    }

    fn taken(&mut self) -> Result<Option<Error>> {
        Ok(None)
    }

    fn lost(&mut self) -> Result<Option<Error>> {
        let Some(record) = &self.record else { return Ok(None) };
        if let Some(differs) = self.opening.shape.differs_from(&record.shape) {
            return Err(loaded_with_other_options(&differs).at(self.opening.place()));
        }
        self.opening.refuse_fewer(record).map(|()| None)
    }

    fn other_content(&self) -> Error {
        Error::new(Kind::Exists, "the files have other content than when they were loaded")
            .at(self.opening.place())
    }

    fn holds_nothing(&mut self) -> Result<bool> {
        let Some(record) = &self.record else { return Ok(true) };
        let opening = &mut *self.opening;
        void::holds_nothing(record, false, (&opening.table, &opening.checkpoints), &mut opening.sql)
    }

    fn check_resumed(&mut self) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        let opening = &mut *self.opening;
        opening.refuse_beside()?;
        // Others may have taken this load for one without rows.
        let is_keyless = opening.plan.key == Key::None;
        if is_keyless && opening.checkpoints.on(&mut opening.sql).units(&opening.id)?.is_empty() {
            opening.refuse_twice(Kind::Exists)?;
        }
        self.opening.refuse_changed(record)?;
        self.opening.refuse_other_options(record)?;
        self.opening.refuse_other_columns(record)?;
        self.opening.refuse_unverifiable(record)
    }
}

/// What to do if the rows of complete appends are missing.
pub(crate) fn rows_missing(key: &Key) -> &'static str {
    match key {
        Key::Tags(_) | Key::None => {
            "restore the rows, or load everything from the beginning with --mode replace; rows have no key: --again, or an \
             append after sawmill load forget, adds all rows of the files once more, also those that the table still has"
        }
        Key::Row(_) | Key::Own(_) => {
            "load the files once more with --again (rows whose key is in the table are not added), or forget the loads \
             (sawmill load forget) if the rows were deleted on purpose"
        }
    }
}

/// The error of an append of files that were loaded in another form.
pub(crate) fn loaded_with_other_options(differs: &str) -> Error {
    Error::new(Kind::Exists, format!("the files were loaded with other options: {differs}")).advise(
        "give the options of that load, or add their rows a second time, as the files are now, with --again",
    )
}

/// The error of an append whose rows cannot be distinguished from earlier ones.
pub(crate) fn not_summed_up(place: &str) -> Error {
    let what = "cannot be verified: the first run of this append was without --verify, so what the table held before \
                was not summed up";
    Error::new(Kind::Mismatch, what).at(place).advise(
        "run the same command without --verify to finish the load; sawmill verify then compares the table as a whole",
    )
}
