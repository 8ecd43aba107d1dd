//! Sends units of a load that puts rows aside: the rows of a unit, its rejected rows and its record are one transaction
//! ([`rejecting_unit`](crate::write::rejecting_unit)), in which small units stand together.

use std::sync::Arc;

use sawmill_loader::{Arrived, Parcel, Parcels, Tally, UnitWriter};
use sawmill_pgwire::{Connection, WireError};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};
use tokio_postgres::Statement;

use crate::rejected::rejects::Rejecting;
use crate::write::part_writer::committed_elsewhere;
use crate::write::rejecting_unit::{RejectingSender, RejectingUnit};
use crate::write::unit_group::UnitGroup;
use crate::write::writer::WriterPlan;

/// A connection that copies units into the table, but for the rows that the table does not take.
pub(crate) struct RejectingWriter {
    sender: RejectingSender,
    copy: Statement,
    open: Option<OpenGroup>,
}

/// Units of a transaction at most. Each has a savepoint or more, and of 64 in a transaction the server keeps track in
/// memory.
const MOST_UNITS: usize = 50;

/// A transaction that takes units.
#[derive(Default)]
struct OpenGroup {
    group: UnitGroup,
    /// Rows that were put aside.
    rejected: u64,
}

impl RejectingWriter {
    pub(crate) fn new(
        plan: Arc<WriterPlan>,
        rejecting: Arc<Rejecting>,
        connection: Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        let copy = connection.wait(control, connection.client.prepare(&plan.copy))?;
        let sender = RejectingSender::new(plan, rejecting, connection, control)?;
        Ok(Self { sender, copy, open: None })
    }
}

impl UnitWriter for RejectingWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        self.sender.known(key, control)
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        let Self { sender, copy, open } = self;
        let connection = &sender.connection;
        let open = match open {
            Some(open) => open,
            None => {
                // Deferred constraints speak at the commit, when nobody knows any more which row it was.
                connection.batch(control, "BEGIN; SET CONSTRAINTS ALL IMMEDIATE")?;
                open.insert(OpenGroup::default())
            }
        };
        let mut sending = RejectingUnit::new(sender, copy, unit, false);
        let sent = connection.wait_for(control, sending.rows(parcels));
        open.rejected += sending.rejected();
        let (bytes, ended) = (sending.bytes, sending.ended);
        match sent {
            Ok(Some(tally)) => open.group.add(Arrived { unit: *unit, tally }, bytes),
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == Kind::Server => {
                let known = self.recorded_elsewhere(&[*unit], error, control)?;
                if !ended {
                    self.sender.connection.wait_for(control, to_the_end(parcels))?;
                }
                return Ok(Some(known));
            }
            Err(error) => return Err(error),
        }
        let full = open.group.is_full(sender.plan.unit_rows) || open.group.units().len() >= MOST_UNITS;
        if full { self.commit(control).map(Some) } else { Ok(Some(Vec::new())) }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit(control)
    }
}

impl RejectingWriter {
    /// Commits the open transaction, if there is one, with the records of its units.
    fn commit(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let Some(OpenGroup { group, .. }) = &self.open else { return Ok(Vec::new()) };
        let sender = &self.sender;
        let committing = async {
            let _committing = wait(WaitKind::Network);
            sender.record(group.units(), None).await?;
            sender.connection.client.batch_execute("COMMIT").await?;
            Ok(())
        };
        match sender.connection.wait_for(control, committing) {
            Ok(()) => Ok(self.open.take().map_or_else(Vec::new, |open| open.group.into_units())),
            Err(error) if error.kind() == Kind::Server => self.recorded_elsewhere(&[], error, control),
            Err(error) => Err(error),
        }
    }

    /// A predecessor that was killed may have committed units meanwhile: takes the open transaction back, and returns
    /// what is recorded of its units and of those that are `under_way`. The error where nothing is.
    fn recorded_elsewhere(
        &mut self,
        under_way: &[Unit],
        error: Error,
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        let Some(OpenGroup { group, rejected }) = self.open.take() else { return Err(error) };
        let Self { sender, .. } = self;
        sender.rejecting.forget(rejected);
        if sender.connection.batch(control, "ROLLBACK").is_err() {
            return Err(error);
        }
        let units: Vec<Unit> =
            group.units().iter().map(|arrived| &arrived.unit).chain(under_way).copied().collect();
        let (plan, connection) = (&sender.plan, &sender.connection);
        let mut recorded = 0;
        for unit in &units {
            let tally = plan.checkpoints.unit(connection, &plan.load_id, unit.key, control);
            recorded += usize::from(matches!(tally, Ok(Some(_))));
        }
        if recorded == 0 {
            return Err(error);
        }
        if recorded < units.len() {
            return Err(committed_elsewhere(connection));
        }
        let mut known = Vec::with_capacity(units.len());
        for unit in units {
            let tally = sender.known(unit.key, control)?.ok_or_else(|| error.clone())?;
            known.push(Arrived { unit, tally });
        }
        Ok(known)
    }
}

impl Drop for RejectingWriter {
    /// Units that were not committed are written again: their rejected rows are counted then.
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            self.sender.rejecting.forget(open.rejected);
        }
    }
}

/// Takes what is left of a unit whose rows are not needed.
async fn to_the_end(parcels: &mut Parcels) -> Result<(), WireError> {
    loop {
        match parcels.recv().await {
            Some(Parcel::Rows(_)) => {}
            Some(Parcel::Failed(error)) => return Err(error.into()),
            Some(Parcel::End(_) | Parcel::Unit(_)) | None => return Ok(()),
        }
    }
}
