//! The target: it decides, as `sawmill-postgres` does, whether a load is new, resumed or complete.

use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sawmill_loader::{
    LoadOptions, LoadRecord, LoadState, Loads, Mode, OnRecord, Part, Presence, RecordedFiles, Remembered,
    Session, Share, Standing, Tally, Target, load_id, open, refuse_begun, refuse_cut_otherwise,
};
use sawmill_profile::turns;
use sawmill_source::{Control, Error, Kind, Mapping, Result, Source, UnitKey};

use super::connection::Connection;
use super::fault::Step;
use super::mistake::Mistake;
use super::process::Process;
use super::remembered::remembered;
use super::server::{Change, LoadRow, STAGING, Server, TABLE};
use super::session::SimulatedSession;
use super::writer::sum_of;

/// The table on the server.
pub struct SimulatedTarget {
    pub process: Arc<Process>,
    pub mode: Mode,
}

/// A table as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTable {
    pub oid: u32,
    pub columns: u32,
    pub rows: u64,
}

/// The error for missing rows.
fn lost(presence: &Presence) -> Error {
    presence.error(TABLE.to_owned(), "forget the load")
}

impl SimulatedTarget {
    pub fn is(&self, mistake: Mistake) -> bool {
        self.process.world.mistake == Some(mistake)
    }

    pub fn id_of(&self, source: &dyn Source) -> String {
        load_id(source.files(), &source.facts().arrangement(), TABLE, self.mode.name())
    }

    /// Takes the locks that a run of this share of a load needs. A run that `begins` waits for the commits of earlier
    /// ones, too, and a part keeps others from looking for the table until [`begun`](Self::begun).
    pub fn lock(
        &self,
        connection: &Connection,
        (id, share): (&str, Share),
        begins: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        let wait = |name: &str, time: Duration, is_shared: bool| {
            let end = turns::now() + time;
            let lock = |server: &mut Server, own| {
                Ok(server.lock(own, name, is_shared) && (is_shared || !begins || !server.commits_later(name)))
            };
            while !connection.request(Step::Lock, lock)? {
                if turns::now() > end {
                    return Err(Error::new(Kind::Busy, format!("{name} is locked")));
                }
                control.sleep(Duration::from_millis(200))?;
            }
            Ok(())
        };
        let (patience, long) = (Duration::from_secs(5), Duration::from_secs(3_600));
        let Share::Part(part) = share else { return wait(id, patience, false) };
        wait(&lock_of(id, part), long, false)?;
        if begins {
            wait(&beginning_of(id), long, false)?;
        }
        wait(id, patience, true)
    }

    /// Records the number of parts, and lets other parts begin.
    fn begun(&self, connection: &Connection, (id, share): (&str, Share), is_complete: bool) -> Result<()> {
        let Share::Part(part) = share else { return Ok(()) };
        connection.request(Step::WriteRecord, |server, own| {
            let recorded = server.data.loads.get(id).and_then(|row| row.parts);
            if !is_complete && recorded != Some(part.parts()) {
                if !server.holds_alone(own, id) {
                    return Err(Error::new(
                        Kind::Busy,
                        "the load is being loaded in another number of parts",
                    ));
                }
                server.change(own, [Change::Parts(id.to_owned(), part.parts())]);
                server.commit(own, false)?;
            }
            server.unlock(&beginning_of(id));
            Ok(())
        })
    }
}

pub fn lock_of(id: &str, part: Part) -> String {
    format!("{id} part {part}")
}

fn beginning_of(id: &str) -> String {
    format!("{id} begins")
}

/// The table of this name.
pub fn find(connection: &Connection, name: &str) -> Result<Option<FoundTable>> {
    connection.request(Step::FindTable, |server, _| {
        let found = server.data.table(name);
        Ok(found.map(|(oid, table)| FoundTable {
            oid,
            columns: table.columns,
            rows: table.rows.len() as u64,
        }))
    })
}

pub fn find_record(connection: &Connection, id: &str) -> Result<Option<LoadRow>> {
    connection.request(Step::FindRecord, |server, _| Ok(server.data.loads.get(id).cloned()))
}

pub fn units(connection: &Connection, id: &str, step: Step) -> Result<HashMap<UnitKey, Tally>> {
    connection.request(step, |server, _| {
        Ok(server.data.units_of(id).map(|(key, tally)| (key, tally.clone())).collect())
    })
}

/// Counts the rows of a table, against one load or against all loads into it.
pub fn presence(connection: &Connection, table: FoundTable, of_load: Option<&str>) -> Result<Presence> {
    connection.request(Step::CountRows, |server, _| {
        let data = &server.data;
        let loads = data.loads.iter().filter(|(id, row)| match of_load {
            Some(of) => *id == of,
            None => row.record.table_oid == table.oid,
        });
        let mut loads: Vec<_> = loads.collect();
        loads.sort_by_key(|(_, row)| row.begun);
        let recorded =
            loads.iter().flat_map(|(id, _)| data.units_of(id)).map(|(_, tally)| tally.rows).sum::<u64>();
        let before = loads.first().and_then(|(_, row)| row.record.before.as_ref());
        let rows = data.tables.get(&table.oid).map_or(0, |table| table.rows.len() as u64);
        Ok(Presence {
            rows: Some(rows),
            recorded,
            before: Some(before.map_or(0, |before| before.rows)),
            rewritten: false,
            keys_refused: false,
        })
    })
}

impl Target for SimulatedTarget {
    fn remembered(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        if self.mode == Mode::Append { remembered(self, source, options, control) } else { Ok(None) }
    }

    fn has_answered(&self) -> bool {
        self.process.has_reached.load(SeqCst)
    }

    fn prepare<'a>(
        &'a self,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Box<dyn Session + 'a>> {
        let connection = Connection::open(&self.process)?;
        let id = self.id_of(source);
        let of = (id.as_str(), options.share);
        self.lock(&connection, of, true, control)?;
        let preparing = Preparing { target: self, source, options, connection: &connection, id: &id };
        let (row, state) = preparing.decide()?;
        self.begun(&connection, of, state == LoadState::Complete)?;
        let written = if self.mode.gathers() && state != LoadState::Complete { STAGING } else { TABLE };
        let done = units(&connection, &id, Step::ReadUnits)?;
        let Some(table) = find(&connection, written)? else {
            return Err(Error::new(Kind::Server, "the table that is written was dropped"));
        };
        let written = if self.is(Mistake::RenameTooEarly) { TABLE } else { written };
        Ok(Box::new(SimulatedSession {
            target: self,
            options,
            connection: Mutex::new(connection),
            id,
            oid: table.oid,
            columns: table.columns,
            written,
            unit_rows: if self.is(Mistake::CutAnew) { options.unit_rows } else { row.record.unit_rows },
            row,
            state,
            done,
        }))
    }
}

/// The decision between new, resumed and complete.
struct Preparing<'p> {
    target: &'p SimulatedTarget,
    source: &'p dyn Source,
    options: &'p LoadOptions,
    connection: &'p Connection,
    id: &'p str,
}

impl Preparing<'_> {
    fn decide(&self) -> Result<(LoadRow, LoadState)> {
        let mode = self.target.mode;
        let row = find_record(self.connection, self.id)?;
        let table = find(self.connection, TABLE)?;
        let gathered = if mode.gathers() { find(self.connection, STAGING)? } else { None };
        if !mode.gathers() {
            let Some(found) = table else {
                return Err(Error::new(Kind::Config, "the table does not exist"));
            };
            if let Some(row) = &row {
                self.refuse_of_another_table(row, found)?;
            }
        }
        if let (Some(row), Some(found)) = (&row, table)
            && self.resumes_by_mistake(row, found)?
        {
            return Ok((row.clone(), LoadState::Resumed));
        }
        let mut found = Found { row, table, gathered, preparing: self };
        let state = open(mode, false, &mut found)?;
        if state == LoadState::New && self.options.share == Share::Finish {
            return Err(Error::new(Kind::Mismatch, "no part of this load is on record"));
        }
        match (found.row, table) {
            (Some(row), _) if state != LoadState::New => Ok((row, state)),
            (_, Some(table)) if !mode.gathers() => self.start_here(table),
            _ => self.start(gathered),
        }
    }

    /// Whether a mistake resumes a load that must not be resumed.
    fn resumes_by_mistake(&self, row: &LoadRow, found: FoundTable) -> Result<bool> {
        let is = |mistake| self.target.is(mistake) && row.record.table_oid == found.oid;
        if is(Mistake::TruncateAgain) && self.target.mode == Mode::Truncate && !row.record.complete {
            self.connection.request(Step::CreateTable, |server, connection| {
                server.change(connection, [Change::Truncate(found.oid)]);
                server.commit(connection, true)
            })?;
            return Ok(true);
        }
        Ok(is(Mistake::RenameTooEarly) && self.target.mode.gathers() && !row.record.complete)
    }

    /// Refuses to continue with changed files, other units or lost rows.
    fn resume(&self, row: &LoadRow, table: FoundTable, of_load: Option<&str>) -> Result<()> {
        row.record.files.refuse_changed(self.source.files(), false)?;
        let done = units(self.connection, self.id, Step::ReadUnits)?;
        refuse_cut_otherwise(self.source, row.record.unit_rows, &done)?;
        // The other parts commit at the same time.
        if matches!(self.options.share, Share::Part(_)) {
            return Ok(());
        }
        let presence = presence(self.connection, table, of_load)?;
        if presence.lacks_rows() { Err(lost(&presence)) } else { Ok(()) }
    }

    /// Discards the staging table of a load without units.
    fn make_room(&self, gathered: Option<FoundTable>) -> Result<()> {
        let Some(gathered) = gathered else { return Ok(()) };
        self.connection.request(Step::MakeRoom, |server, connection| {
            let data = &server.data;
            let of_table = data
                .loads
                .iter()
                .filter(|(_, row)| row.record.table_oid == gathered.oid && !row.record.complete);
            let ids: Vec<String> = of_table.map(|(id, _)| id.clone()).collect();
            let unfinished = Error::new(Kind::Exists, "another load into this table is unfinished");
            let [id] = ids.as_slice() else { return Err(unfinished) };
            let runs = id != self.id && (server.is_locked(id) || server.commits_later(id));
            if runs || data.units_of(id).next().is_some() {
                return Err(unfinished);
            }
            let changes = [Change::DropTable(gathered.oid), Change::DeleteLoad(id.clone())];
            server.change(connection, changes);
            server.commit(connection, false)
        })
    }

    /// Creates the staging table and the load's record in one transaction.
    fn start(&self, gathered: Option<FoundTable>) -> Result<(LoadRow, LoadState)> {
        self.make_room(gathered)?;
        let name = if self.target.is(Mistake::RenameTooEarly) { TABLE } else { STAGING };
        let first = self.target.is(Mistake::DropFirst);
        let oid = self.connection.request(Step::CreateTable, |server, connection| {
            let old = server.data.table(TABLE).map(|(oid, _)| oid);
            let dropped = old.filter(|_| first || name == TABLE).map(Change::DropTable);
            let oid = server.new_oid();
            server
                .change(connection, dropped.into_iter().chain([Change::CreateTable(oid, name, Vec::new())]));
            Ok(oid)
        })?;
        self.begin(oid, None, false)
    }

    /// Writes the load's record, and commits.
    fn begin(&self, oid: u32, before: Option<Tally>, keeps: bool) -> Result<(LoadRow, LoadState)> {
        let (id, files) = (self.id.to_owned(), RecordedFiles::new(self.source.files()));
        let row = self.connection.request(Step::WriteRecord, |server, connection| {
            if keeps {
                self.refuse_begun(oid, server)?;
            }
            let record = LoadRecord {
                id: id.clone(),
                mode: self.target.mode.name().to_owned(),
                table_oid: oid,
                unit_rows: self.options.unit_rows.max(1),
                files: files.clone(),
                before: before.clone(),
                ..LoadRecord::default()
            };
            let row = LoadRow { record, begun: u64::from(server.new_oid()), parts: None };
            let kept = keeps
                && server
                    .data
                    .loads
                    .get(&id)
                    .is_some_and(|row| row.record.complete && row.record.table_oid == oid);
            let earlier = match kept {
                true => Change::KeepUnderAnotherId(id.clone()),
                false => Change::DeleteLoad(id.clone()),
            };
            server.change(connection, [earlier, Change::PutLoad(id.clone(), Box::new(row.clone()))]);
            Ok(row)
        })?;
        self.connection.commit(Step::CommitStart)?;
        Ok((row, LoadState::New))
    }

    /// Decides once more whether the files are new: other loads may have ended since the records were read.
    fn refuse_begun(&self, oid: u32, server: &Server) -> Result<()> {
        let data = &server.data;
        let is_counted = |id: &String, row: &LoadRow| match row.record.complete || id == self.id {
            true => row.record.complete,
            false => server.is_locked(id) || server.commits_later(id) || data.units_of(id).next().is_some(),
        };
        let here = data.loads.iter().filter(|(id, row)| row.record.table_oid == oid && is_counted(id, row));
        let loads = Loads { here: here.map(|(_, row)| &row.record).collect(), ..Loads::default() };
        refuse_begun(self.source, &loads, &[], false, &Mapping::default(), self.options)
    }

    /// Begins a load into the table that exists.
    fn start_here(&self, found: FoundTable) -> Result<(LoadRow, LoadState)> {
        let truncate = self.target.mode == Mode::Truncate;
        if truncate {
            self.connection.request(Step::CreateTable, |server, connection| {
                let changes = [
                    Change::Truncate(found.oid),
                    Change::DeleteLoadsOf(found.oid, self.id.to_owned()),
                    Change::DeleteLoad(self.id.to_owned()),
                ];
                server.change(connection, changes);
                Ok(())
            })?;
            return self.begin(found.oid, Some(Tally::empty(1)), false);
        }
        let before = match (self.options.verify, found.rows) {
            (_, 0) => Some(Tally::empty(1)),
            (false, _) => None,
            (true, _) => {
                let rows = self.connection.request(Step::ReadTable, |server, _| {
                    Ok(server.data.tables.get(&found.oid).map(|table| table.rows.clone()).unwrap_or_default())
                })?;
                Some(sum_of(&rows))
            }
        };
        self.begin(found.oid, before, true)
    }

    /// The rows of a load into a table that is gone may be in the one that has its name now.
    fn refuse_of_another_table(&self, row: &LoadRow, found: FoundTable) -> Result<()> {
        if row.record.table_oid == found.oid || self.target.mode == Mode::Truncate || found.rows == 0 {
            return Ok(());
        }
        Err(Error::new(Kind::Mismatch, "these files were loaded into a table that no longer exists"))
    }
}

/// What a load finds.
struct Found<'f> {
    row: Option<LoadRow>,
    table: Option<FoundTable>,
    gathered: Option<FoundTable>,
    preparing: &'f Preparing<'f>,
}

impl Found<'_> {
    fn presence(&self) -> Result<Presence> {
        let Some(table) = self.table else {
            return Err(Error::new(Kind::Server, "the table was dropped"));
        };
        presence(self.preparing.connection, table, None)
    }
}

impl Standing for Found<'_> {
    fn on_record(&self) -> Option<OnRecord> {
        let record = &self.row.as_ref()?.record;
        let changed = !record.files.changed(self.preparing.source.files()).is_empty();
        let gathers = self.preparing.target.mode.gathers();
        let table = if gathers && !record.complete { self.gathered } else { self.table };
        let is_there = table.is_some_and(|table| table.oid == record.table_oid);
        is_there.then_some(match record.complete {
            true => OnRecord::Complete { changed },
            false => OnRecord::Interrupted { changed },
        })
    }

    fn taken(&mut self) -> Result<Option<Error>> {
        Ok(self.table.map(|_| Error::new(Kind::Exists, "the table exists")))
    }

    fn lost(&mut self) -> Result<Option<Error>> {
        let presence = self.presence()?;
        let is_lost = match self.preparing.target.mode {
            Mode::Truncate => presence.rows != Some(self.preparing.source.rows()),
            _ => presence.lacks_rows(),
        };
        Ok(is_lost.then(|| lost(&presence)))
    }

    fn other_content(&self) -> Error {
        Error::new(Kind::Exists, "the table was loaded from other content")
    }

    fn has_other_rows(&mut self) -> Result<bool> {
        Ok(self.presence()?.is_other_than_recorded())
    }

    fn holds_nothing(&mut self) -> Result<bool> {
        let Preparing { connection, id, options, .. } = self.preparing;
        Ok(options.share == Share::Whole && units(connection, id, Step::ReadUnits)?.is_empty())
    }

    fn check_resumed(&mut self) -> Result<()> {
        let Some(row) = &self.row else { return Ok(()) };
        match (self.gathered, self.table) {
            (Some(staging), _) => self.preparing.resume(row, staging, Some(self.preparing.id)),
            (None, Some(table)) => self.preparing.resume(row, table, None),
            (None, None) => Ok(()),
        }
    }
}
