//! Copies units and commits them together with their records.
//!
//! Loads differ in two things: where rows go ([`Destination`]), and whether a refused row ends the load or is
//! rejected and recorded ([`RejectingUnit`]). In each case a transaction takes units until it is full.

use std::ops::Deref;
use std::sync::{Arc, MutexGuard};

use sawmill_loader::{Arrived, Parcels, Tally, UnitWriter};
use sawmill_pgwire::{Connection, WireError};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};

use crate::rejected::rejects::RejectCounter;
use crate::table::catalogue::Link;
use crate::table::planned_columns::columns_changed;
use crate::write::binary_copy::{BinaryCopy, Next, drain, next};
use crate::write::plan::{
    Destination, OpenTable, PartPlan, UnitGroup, UnitRecorder, WriterPlan, held_record,
};
use crate::write::rejecting_unit::{Rejecter, RejectingUnit};

/// A connection that copies units: small ones several in a transaction.
pub(crate) struct TableWriter<'s> {
    plan: Arc<WriterPlan>,
    connection: Held<'s>,
    records: UnitRecorder,
    destination: Destination,
    /// Records rejected rows. Without it a refused row ends the load.
    rejecter: Option<Arc<Rejecter>>,
    open: Option<OpenTransaction>,
}

/// Exclusive use of a connection, until this is dropped.
pub(crate) enum Held<'s> {
    /// The holder's own.
    Own(Box<Connection>),
    /// The one that the session does everything else on.
    OfSession(MutexGuard<'s, Connection>),
}

impl Deref for Held<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Own(connection) => connection,
            Self::OfSession(connection) => connection,
        }
    }
}

/// A transaction that takes units.
struct OpenTransaction {
    table: OpenTable,
    rows: Rows,
    group: UnitGroup,
    /// Rows that its units have rejected.
    rejected: u64,
}

/// How the rows of a transaction reach the table.
enum Rows {
    /// One COPY takes the rows of all units; the first row that the server refuses ends it.
    OneCopy(BinaryCopy),
    /// Rows go in behind savepoints, without those that the server refuses.
    Rejecting(Arc<Rejecter>),
}

/// Units of a transaction at most where rows may be rejected. Each unit has a savepoint or more, and the
/// server keeps 64 of a transaction in memory.
const MAX_REJECTING_UNITS: usize = 50;

/// The rows of a unit that were sent.
#[derive(Default)]
struct Sent {
    /// Number and sum of these rows. `None` if the channel closed before the unit's end.
    tally: Option<Tally>,
    bytes: u64,
    /// The unit's end was received.
    ended: bool,
}

impl<'s> TableWriter<'s> {
    /// A writer into parts if `parts` say how to make them, else into the table that all connections share.
    pub(crate) fn new(
        plan: Arc<WriterPlan>,
        parts: Option<Arc<PartPlan>>,
        rejects: Option<Arc<RejectCounter>>,
        connection: Held<'s>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let link = Link::new(&connection, control);
        let destination = match parts {
            Some(parts) => Destination::Parts(parts),
            None => {
                plan.before_copy.as_ref().map_or(Ok(()), |made| link.batch(made))?;
                Destination::Shared(link.prepare(&plan.copy)?)
            }
        };
        let records = UnitRecorder::new(&plan, link)?;
        let rejecter = rejects.map(|rejects| Rejecter::new(rejects, &plan, link)).transpose()?;
        Ok(Self { plan, connection, records, destination, rejecter: rejecter.map(Arc::new), open: None })
    }

    /// Begins a transaction that takes units of a partition, or any.
    fn begin(&self, partition: Option<u32>, control: &Control<'_>) -> Result<OpenTransaction> {
        let _starting = wait(WaitKind::Network);
        let Self { plan, connection, destination, rejecter, .. } = self;
        let link = Link::new(connection, control);
        let table = destination.begin(partition, rejecter.is_some(), &plan.lock, link)?;
        let rows = match rejecter {
            Some(rejecter) => Rows::Rejecting(Arc::clone(rejecter)),
            None => Rows::OneCopy(connection.wait_for(control, BinaryCopy::begin(connection, &table.copy))?),
        };
        Ok(OpenTransaction { table, rows, group: UnitGroup::default(), rejected: 0 })
    }

    /// Sends the rows of a unit into the open transaction. `sent` records the progress, even if it fails.
    fn send(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        sent: &mut Sent,
        control: &Control<'_>,
    ) -> Result<()> {
        let Self { plan, connection, open: Some(open), .. } = self else { return Ok(()) };
        match &mut open.rows {
            Rows::OneCopy(copy) => {
                let sending = async {
                    let sending = copy_rows(connection, copy, parcels, sent).await;
                    sending.map_err(|error| plan.locate(error, &open.group, Some(unit)))
                };
                connection.wait_for(control, sending)?;
                if let Some(tally) =
                    sent.tally.as_ref().filter(|tally| plan.rows_planned && tally.rows != unit.rows)
                {
                    let what = format!("{} of the {} rows of a unit were read", tally.rows, unit.rows);
                    return Err(Error::new(Kind::Mismatch, what));
                }
            }
            Rows::Rejecting(rejecter) => {
                let mut sending = RejectingUnit::new(plan, connection, rejecter, &open.table, unit);
                let rows = connection.wait_for(control, sending.rows(parcels));
                open.rejected += sending.rejected();
                (sent.bytes, sent.ended) = (sending.bytes, sending.ended);
                sent.tally = rows?;
            }
        }
        Ok(())
    }

    /// Commits the open transaction, if there is one, with the records of its units.
    fn commit(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let Self { plan, connection, records, open, .. } = self;
        let Some(OpenTransaction { table, rows, group, .. }) = open else { return Ok(Vec::new()) };
        if !table.is_whole(group) {
            return Err(committed_elsewhere(connection));
        }
        let committing = async {
            // The span may cross an await: nothing else on this thread opens one.
            let _committing = wait(WaitKind::Network);
            if let Rows::OneCopy(copy) = rows {
                let ended = copy.finish(group.rows, || plan.rows_of_all(group, None)).await;
                ended.map_err(|error| plan.locate(error, group, None))?;
            }
            let part = table.part.as_ref().map(|part| part.oid);
            if !records.record(&connection.client, &group.units, part).await? {
                return Err(columns_changed().into());
            }
            connection.client.batch_execute("COMMIT").await.map_err(|error| match rows {
                // Deferred constraints are checked now.
                Rows::OneCopy(_) => plan.locate(error.into(), group, None),
                Rows::Rejecting(_) => error.into(),
            })
        };
        match connection.wait_for(control, committing) {
            Ok(()) => Ok(self.open.take().map_or_else(Vec::new, |open| open.group.units)),
            Err(error) if error.kind() == Kind::Server => self.recorded_elsewhere(None, error, control),
            Err(error) => Err(error),
        }
    }

    /// After the server refused something: a killed predecessor may have committed units after this run read
    /// the records. Rolls back, and returns the records of the open units and of the one `under_way`. Without
    /// records it returns the error.
    fn recorded_elsewhere(
        &mut self,
        under_way: Option<&Unit>,
        error: Error,
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        self.forget_rejected();
        let Some(OpenTransaction { group, rows, .. }) = self.open.take() else {
            return Err(self.explained(error, control));
        };
        // Dropped first, an open COPY ends before the rollback.
        drop(rows);
        let Self { plan, connection, .. } = self;
        let link = Link::new(connection, control);
        if link.batch("ROLLBACK").is_err() {
            return Err(error);
        }
        let units: Vec<Unit> =
            group.units.iter().map(|arrived| &arrived.unit).chain(under_way).copied().collect();
        let is_recorded = |unit: &&Unit| {
            let tally = plan.checkpoints.on(link).unit(&plan.load_id, unit.key);
            matches!(tally, Ok(Some(_)))
        };
        match units.iter().filter(is_recorded).count() {
            0 => return Err(self.explained(error, control)),
            recorded if recorded < units.len() => return Err(committed_elsewhere(connection)),
            _ => {}
        }
        let mut known = Vec::with_capacity(units.len());
        for unit in units {
            let tally = self.committed(unit.key, control)?.ok_or_else(|| error.clone())?;
            known.push(Arrived { unit, tally });
        }
        Ok(known)
    }

    /// The error of a transaction, or the change of the table's columns that is its cause.
    fn explained(&self, error: Error, control: &Control<'_>) -> Error {
        let Self { plan, connection, .. } = self;
        let link = Link::new(connection, control);
        let rolled_back = link.batch("ROLLBACK");
        let changed = rolled_back.and_then(|()| plan.planned.change(link)).or_else(|_| {
            // After a COPY that did not begin, the client no longer understands the server.
            plan.planned.change(Link::new(&Connection::open(&plan.server, control)?, control))
        });
        changed.ok().flatten().unwrap_or_else(|| held_record(error, plan, link))
    }

    /// The units of a transaction that was not committed are written again, and their rejected rows counted
    /// then.
    fn forget_rejected(&mut self) {
        if let (Some(rejecter), Some(open)) = (&self.rejecter, &mut self.open) {
            rejecter.counter.forget(std::mem::take(&mut open.rejected));
        }
    }
}

/// Copies the rows of a unit.
async fn copy_rows(
    connection: &Connection,
    copy: &mut BinaryCopy,
    parcels: &mut Parcels,
    sent: &mut Sent,
) -> Result<(), WireError> {
    loop {
        match connection.aside(next(parcels)).await? {
            Some(Next::Rows(block)) => {
                let sending = wait(WaitKind::Network);
                sending.add_rows(block.rows);
                sending.add_bytes(block.bytes.len() as u64);
                sent.bytes += block.bytes.len() as u64;
                copy.send(connection, block.bytes).await?;
            }
            Some(Next::End(tally)) => {
                (sent.tally, sent.ended) = (Some(tally), true);
                return Ok(());
            }
            None => return Ok(()),
        }
    }
}

/// A killed predecessor has committed some of the units that this run holds, or others of their partition.
/// The error makes the worker look them up again, as after a lost connection.
fn committed_elsewhere(connection: &Connection) -> Error {
    Error::new(Kind::Connection, "another run has committed some of these units").at(connection.place())
}

impl UnitWriter for TableWriter<'_> {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        let Self { plan, connection, rejecter, .. } = self;
        let records = plan.checkpoints.on(Link::new(connection, control));
        let tally = records.unit(&plan.load_id, key)?;
        if let (Some(_), Some(rejecter)) = (&tally, rejecter) {
            let rejects = records.rejects(&plan.load_id, key)?;
            rejecter.counter.count_again(rejects.len() as u64);
        }
        Ok(tally)
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        let partition = self.destination.partition_of(unit);
        match &self.open {
            Some(open) if open.table.partition() == partition => {}
            Some(_) => return Err(committed_elsewhere(&self.connection)),
            None => match self.begin(partition, control) {
                Ok(begun) => self.open = Some(begun),
                Err(error) if error.kind() == Kind::Server => return Err(self.explained(error, control)),
                Err(error) => return Err(error),
            },
        }
        let mut sent = Sent::default();
        match self.send(unit, parcels, &mut sent, control) {
            Err(error) if error.kind() == Kind::Server => {
                let known = self.recorded_elsewhere(Some(unit), error, control)?;
                if !sent.ended {
                    self.connection.wait_for(control, self.connection.aside(drain(parcels)))?;
                }
                return Ok(Some(known));
            }
            sending => sending?,
        }
        let (Some(open), Some(tally)) = (&mut self.open, sent.tally) else { return Ok(None) };
        open.group.add(Arrived { unit: *unit, tally }, sent.bytes);
        let many = self.rejecter.is_some()
            && open.table.part.is_none()
            && open.group.units.len() >= MAX_REJECTING_UNITS;
        match many || open.table.is_full(&open.group, &self.plan) {
            true => self.commit(control).map(Some),
            false => Ok(Some(Vec::new())),
        }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit(control)
    }
}

impl Drop for TableWriter<'_> {
    fn drop(&mut self) {
        self.forget_rejected();
        // A COPY must not outlive the hold of its connection.
        self.open = None;
    }
}
