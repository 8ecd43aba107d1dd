//! Sends units of a load that puts rows aside into tables of the connection's own.
//!
//! As in [`part_writer`](crate::write::part_writer) a table, its units and their records are one transaction, and the rows
//! that were put aside are recorded in it, too. `FREEZE` wants the table to be made in the very subtransaction that
//! copies, so behind savepoints it is a plain COPY; the tables still are nobody else's, and with
//! `wal_level = minimal` their rows are not logged.

use std::sync::Arc;

use sawmill_loader::{Arrived, Parcels, Tally, UnitWriter};
use sawmill_pgwire::{Connection, WireError};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Result, Unit, UnitKey};
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;

use crate::records::checkpoint::is_of_units;
use crate::rejected::rejects::{Rejecting, is_of_rejects};
use crate::write::part_writer::{MadePart, PartPlan, committed_elsewhere};
use crate::write::rejecting_unit::{RejectingSender, RejectingUnit};
use crate::write::writer::WriterPlan;

/// A connection that fills one part after the other, but for the rows that the server does not take.
pub(crate) struct RejectingPartWriter {
    parts: Arc<PartPlan>,
    sender: RejectingSender,
    open: Option<OpenPart>,
}

/// A part that takes rows.
struct OpenPart {
    oid: u32,
    /// The partition that it becomes.
    partition: Option<u32>,
    /// Rows with which it is complete, those that were put aside included.
    complete: u64,
    rows: u64,
    copy: Statement,
    units: Vec<Arrived>,
    /// Rows that were put aside.
    rejected: u64,
}

impl RejectingPartWriter {
    pub(crate) fn new(
        parts: Arc<PartPlan>,
        plan: Arc<WriterPlan>,
        rejecting: Arc<Rejecting>,
        connection: Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        Ok(Self { parts, sender: RejectingSender::new(plan, rejecting, connection, control)?, open: None })
    }

    /// A new part, in a transaction that stays open.
    fn begin(&self, partition: Option<u32>, control: &Control<'_>) -> Result<OpenPart> {
        let _starting = wait(WaitKind::Network);
        let connection = &self.sender.connection;
        let MadePart { name, oid, complete } = self.parts.make(partition, connection, control)?;
        let copy = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", name.quoted(), self.parts.columns);
        let copy = connection.wait(control, connection.client.prepare(&copy))?;
        Ok(OpenPart { oid, partition, complete, rows: 0, copy, units: Vec::new(), rejected: 0 })
    }

    /// Sends a unit into the open part. None when the channel closed before its end.
    fn add(&mut self, unit: &Unit, parcels: &mut Parcels, control: &Control<'_>) -> Result<Option<()>> {
        let Some(part) = &mut self.open else { return Ok(None) };
        let sender = &self.sender;
        let mut sending = RejectingUnit::new(sender, &part.copy, unit, true);
        let sent = sender.connection.wait_for(control, told(sender, sending.rows(parcels)));
        part.rejected += sending.rejected();
        let Some(tally) = sent? else { return Ok(None) };
        part.rows += unit.rows;
        part.units.push(Arrived { unit: *unit, tally });
        Ok(Some(()))
    }

    /// Commits the open part, if there is one, with the records of its units.
    fn commit(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let Some(part) = &self.open else { return Ok(Vec::new()) };
        let sender = &self.sender;
        if part.partition.is_some() && part.rows != part.complete {
            return Err(committed_elsewhere(&sender.connection));
        }
        let _committing = wait(WaitKind::Network);
        let committing = async {
            sender.record(&part.units, Some(part.oid)).await?;
            sender.connection.client.batch_execute("COMMIT").await?;
            Ok(())
        };
        sender.connection.wait_for(control, told(sender, committing))?;
        Ok(self.open.take().map_or_else(Vec::new, |part| part.units))
    }
}

/// The work's outcome; what a record of another run stands in the way of is looked up again.
async fn told<T>(
    sender: &RejectingSender,
    work: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    match work.await {
        Err(WireError::Server(error))
            if error.code() == Some(&SqlState::UNIQUE_VIOLATION)
                && (is_of_units(&error) || is_of_rejects(&error)) =>
        {
            Err(committed_elsewhere(&sender.connection).into())
        }
        other => other,
    }
}

impl UnitWriter for RejectingPartWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        self.sender.known(key, control)
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        let partition = self.parts.partition_of(unit);
        match &self.open {
            Some(part) if part.partition == partition => {}
            Some(_) => return Err(committed_elsewhere(&self.sender.connection)),
            None => self.open = Some(self.begin(partition, control)?),
        }
        if self.add(unit, parcels, control)?.is_none() {
            return Ok(None);
        }
        match self.open.as_ref().is_some_and(|part| part.rows >= part.complete) {
            true => self.commit(control).map(Some),
            false => Ok(Some(Vec::new())),
        }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit(control)
    }
}

impl Drop for RejectingPartWriter {
    /// A part that was not committed is written again: its rejected rows are counted then.
    fn drop(&mut self) {
        if let Some(part) = &self.open {
            self.sender.rejecting.forget(part.rejected);
        }
    }
}
