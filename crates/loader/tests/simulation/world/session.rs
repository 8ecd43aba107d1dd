//! A load in progress: its records, its verification and its end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use sawmill_loader::{
    BatchEncoder, LoadOptions, LoadState, Mode, RecordedFiles, ServerWaits, Session, Tally, UnitWriter,
    Verification, backoff, retry_lost,
};
use sawmill_profile::turns;
use sawmill_source::{Control, Error, Kind, Result, UnitKey};

use super::connection::Connection;
use super::fault::Step;
use super::mistake::Mistake;
use super::process::Process;
use super::server::{Change, LoadRow, STAGING, TABLE};
use super::target::{SimulatedTarget, find, find_record, units};
use super::writer::{Encoder, Writer, sum_of};

/// An open load.
pub struct SimulatedSession<'a> {
    pub target: &'a SimulatedTarget,
    pub options: &'a LoadOptions,
    /// Holds the load's lock, and does everything except copying.
    pub connection: Mutex<Connection>,
    pub id: String,
    pub row: LoadRow,
    pub unit_rows: u64,
    pub state: LoadState,
    /// The table that is written, and its columns, when the load began.
    pub oid: u32,
    pub columns: u32,
    /// Where rows are written.
    pub written: &'static str,
    pub done: HashMap<UnitKey, Tally>,
}

impl SimulatedSession<'_> {
    /// Runs `work` on the connection that holds the load's lock, which is opened again if it is lost.
    fn with_connection<T>(
        &self,
        control: &Control<'_>,
        work: impl Fn(&Connection) -> Result<T>,
    ) -> Result<T> {
        let mut connection = turns::lock(&self.connection);
        let mut attempt = 0;
        loop {
            match work(&connection) {
                Err(error) if error.kind() == Kind::Connection && attempt < self.options.retries => {
                    control.sleep(backoff(attempt))?;
                    attempt += 1;
                    match self.reconnect(&mut connection, control) {
                        Err(error) if error.kind() != Kind::Connection => return Err(error),
                        _ => {}
                    }
                }
                Err(error) => {
                    let _ = connection.request(Step::Rollback, |server, id| {
                        server.rollback(id);
                        Ok(())
                    });
                    return Err(error);
                }
                done => return done,
            }
        }
    }

    fn reconnect(&self, connection: &mut Connection, control: &Control<'_>) -> Result<()> {
        let opened = Connection::open(&self.target.process)?;
        self.target.lock(&opened, (&self.id, self.options.share), false, control)?;
        *connection = opened;
        Ok(())
    }

    /// Completes the load in one transaction.
    fn complete(&self, total: &Tally, connection: &Connection) -> Result<()> {
        let is = |mistake| self.target.is(mistake);
        // After a lost connection the commit may have happened.
        if !is(Mistake::FinishTwice)
            && find_record(connection, &self.id)?.is_some_and(|row| row.record.complete)
        {
            return Ok(());
        }
        self.refuse_lost(total, connection)?;
        let mode = self.target.mode;
        if mode.gathers() {
            let Some(staging) = find(connection, self.written)? else {
                return Err(Error::new(Kind::Server, "the staging table is gone"));
            };
            if is(Mistake::CompleteBeforeRename) {
                self.mark_complete(connection)?;
                connection.commit(Step::CommitFinish)?;
            }
            if mode == Mode::Replace {
                self.drop_old(staging.oid, connection)?;
            }
            self.put_in_place(staging.oid, connection)?;
            if is(Mistake::RenameBeforeComplete) {
                connection.commit(Step::CommitFinish)?;
            }
        } else if find(connection, TABLE)?.is_none_or(|found| found.oid != self.row.record.table_oid)
            && !is(Mistake::AnyTable)
        {
            return Err(Error::new(Kind::Mismatch, "the table was dropped or renamed while the load ran"));
        }
        if !is(Mistake::CompleteBeforeRename) {
            self.mark_complete(connection)?;
        }
        match is(Mistake::NoSync) {
            true => connection.request(Step::CommitFinish, |server, id| server.commit(id, false)),
            false => connection.commit(Step::CommitFinish),
        }
    }

    fn mark_complete(&self, connection: &Connection) -> Result<()> {
        connection.request(Step::Complete, |server, id| {
            server.change(id, [Change::Complete(self.id.clone())]);
            Ok(())
        })
    }

    /// Refuses to end a load if the server has lost units of it.
    fn refuse_lost(&self, total: &Tally, connection: &Connection) -> Result<()> {
        let mut there = Tally::empty(total.non_null.len());
        units(connection, &self.id, Step::CheckLost)?.values().for_each(|tally| there.add(tally));
        match there == *total || self.target.is(Mistake::TrustTotal) {
            true => Ok(()),
            false => Err(Error::new(Kind::Changed, "the server has lost commits")),
        }
    }

    fn drop_old(&self, staging: u32, connection: &Connection) -> Result<()> {
        connection.request(Step::Replace, |server, id| {
            let old = server.data.table(TABLE).map(|(oid, _)| oid).filter(|oid| *oid != staging);
            let changes =
                old.map(|oid| [Change::DeleteLoadsOf(oid, self.id.clone()), Change::DropTable(oid)]);
            server.change(id, changes.into_iter().flatten());
            Ok(())
        })
    }

    fn put_in_place(&self, staging: u32, connection: &Connection) -> Result<()> {
        if self.target.mode == Mode::Create && self.written == STAGING && find(connection, TABLE)?.is_some() {
            return Err(Error::new(Kind::Exists, "a table of this name was created while the load ran"));
        }
        if staging != self.row.record.table_oid && !self.target.is(Mistake::AnyTable) {
            return Err(Error::new(Kind::Mismatch, "another table has taken the place of the staging table"));
        }
        connection.request(Step::Rename, |server, id| {
            match self.target.is(Mistake::LeaveStaging) {
                _ if self.written == TABLE => {}
                false => server.change(id, [Change::Rename(staging, TABLE)]),
                true => {
                    let rows = server.data.tables.get(&staging).map(|table| table.rows.clone());
                    let oid = server.new_oid();
                    server.change(id, [Change::CreateTable(oid, TABLE, rows.unwrap_or_default())]);
                }
            }
            Ok(())
        })
    }

    /// The sum of this load's rows in the table.
    fn read_back(&self, control: &Control<'_>) -> Result<Tally> {
        let rows = retry_lost(self.options.retries, control, || {
            let connection = Connection::open(&self.target.process)?;
            connection.request(Step::ReadTable, |server, _| {
                let Some((oid, table)) = server.data.table(self.written) else {
                    return Err(Error::new(Kind::Server, "the table does not exist"));
                };
                let rows = table.rows.clone();
                server.audit.verified[self.target.process.number] = Some((oid, rows.clone()));
                Ok(rows)
            })
        })?;
        let since = match self.written {
            STAGING => Tally::empty(1),
            _ => self.with_connection(control, |connection| self.brought_since(connection))?,
        };
        let before = match &self.row.record.before {
            Some(before) => before.clone(),
            None if self.target.mode.gathers() => Tally::empty(1),
            None => {
                let what = "cannot be verified: the rows that the table held before were not summed up";
                return Err(Error::new(Kind::Mismatch, what));
            }
        };
        Ok(sum_of(&rows).minus(&since).minus(&before))
    }

    /// The sum of the rows that later loads have added.
    fn brought_since(&self, connection: &Connection) -> Result<Tally> {
        connection.request(Step::ReadUnits, |server, _| {
            let mut since = Tally::empty(1);
            let loads = server.data.loads.iter().filter(|(id, row)| {
                **id != self.id
                    && row.record.table_oid == self.row.record.table_oid
                    && row.begun > self.row.begun
            });
            let of_loads = loads.flat_map(|(id, _)| server.data.units_of(id));
            of_loads.for_each(|(_, tally)| since.add(tally));
            Ok(since)
        })
    }
}

impl Session for SimulatedSession<'_> {
    fn state(&self) -> LoadState {
        self.state
    }

    fn unit_rows(&self) -> u64 {
        self.unit_rows
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.done
    }

    fn recorded(&self, _control: &Control<'_>) -> Result<Option<HashMap<UnitKey, Tally>>> {
        let connection = Connection::open(&self.target.process)?;
        let found = units(&connection, &self.id, Step::AskAll)?;
        if found.is_empty() && find_record(&connection, &self.id)?.is_none() {
            return Err(Error::new(Kind::Changed, "the server has lost the record of this load"));
        }
        Ok(Some(found))
    }

    fn recorded_files(&self) -> &RecordedFiles {
        &self.row.record.files
    }

    fn starts_anew(&self) -> bool {
        matches!(self.target.mode, Mode::Replace | Mode::Truncate)
    }

    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()> {
        self.with_connection(control, |connection| {
            connection.request(Step::RecordStamps, |server, id| {
                server.change(id, [Change::Stamps(self.id.clone(), files.clone())]);
                server.commit(id, false)
            })
        })
    }

    fn columns(&self) -> usize {
        1
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        Ok(Box::new(Encoder::new(self.options.batch_bytes)))
    }

    fn writer(&self, _control: &Control<'_>) -> Result<Box<dyn UnitWriter + '_>> {
        Ok(Box::new(Writer::new(self, Connection::open(&self.target.process)?)))
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        let target = match self.target.is(Mistake::VerifyNothing) {
            true => expected.clone(),
            false => self.read_back(control)?,
        };
        Verification::new(vec!["value".to_owned()], expected.clone(), target).into_result(TABLE)
    }

    /// In some settings the rows of an interrupted append cannot be told from others, as if another load had since
    /// added rows with other columns.
    fn can_verify(&self) -> bool {
        let is_overlaid = self.target.process.world.setting.grouped == 2;
        !(is_overlaid && self.state == LoadState::Resumed && self.target.mode == Mode::Append)
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        self.with_connection(control, |connection| self.complete(total, connection))
    }

    /// It shares the connection of what follows the load, so that only a cancel of the whole load may stop its requests.
    fn watch(&self, done: &AtomicBool, control: &Control<'_>) -> Option<ServerWaits> {
        let seen = turns::wait_for(|| done.load(SeqCst).then_some(None), || None);
        let Process { world, cancel, .. } = &*self.target.process;
        if control.cancelled() && !cancel.load(SeqCst) {
            world.state().server.audit.violated("a failed worker has stopped the watcher".to_owned());
        }
        seen
    }
}
