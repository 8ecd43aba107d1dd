//! Sends units of a load that puts rows aside, each in one transaction: its rows, its rejected rows and its record
//! ([`rejecting_unit`](super::rejecting_unit)).

use std::sync::Arc;

use sawmill_profile::{WaitKind, wait};
use tokio_postgres::Statement;

use super::connection::{Connection, WireError};
use super::rejecting_unit::{RejectingSender, RejectingUnit};
use super::rejects::Rejecting;
use super::writer::WriterPlan;
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Kind, Result};
use crate::source::{Unit, UnitKey};
use crate::target::{Arrived, Parcel, Parcels, UnitWriter};

/// A connection that copies units into the table, but for the rows that the table does not take.
pub(crate) struct RejectingWriter {
    sender: RejectingSender,
    copy: Statement,
}

impl RejectingWriter {
    pub(crate) fn new(
        plan: Arc<WriterPlan>,
        rejecting: Arc<Rejecting>,
        connection: Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        let copy = connection.wait(control, connection.client.prepare(&plan.copy))?;
        Ok(Self { sender: RejectingSender::new(plan, rejecting, connection, control)?, copy })
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
        let tally = self.write_unit(unit, parcels, control)?;
        Ok(tally.map(|tally| vec![Arrived { unit: *unit, tally }]))
    }
}

impl RejectingWriter {
    fn write_unit(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Tally>> {
        let Self { sender, copy } = self;
        let connection = &sender.connection;
        let mut sending = RejectingUnit::new(sender, copy, unit, false);
        let sent = connection.wait_for(control, whole(sender, &mut sending, unit, parcels));
        let ended = sending.ended;
        if !matches!(sent, Ok(Some(_))) {
            sender.rejecting.forget(sending.rejected());
        }
        match sent {
            // A predecessor that was killed may have committed the unit meanwhile.
            Err(error) if error.kind() == Kind::Server => {
                let rolled_back = connection.batch(control, "ROLLBACK");
                match rolled_back.and_then(|()| sender.known(unit.key, control)) {
                    Ok(Some(tally)) if ended => Ok(Some(tally)),
                    Ok(Some(tally)) => {
                        connection.wait_for(control, to_the_end(parcels))?;
                        Ok(Some(tally))
                    }
                    _ => Err(error),
                }
            }
            other => other,
        }
    }
}

/// A unit's transaction.
async fn whole(
    sender: &RejectingSender,
    sending: &mut RejectingUnit<'_>,
    unit: &Unit,
    parcels: &mut Parcels,
) -> Result<Option<Tally>, WireError> {
    let client = &sender.connection.client;
    // Deferred constraints speak at the commit, when nobody knows any more which row it was.
    client.batch_execute("BEGIN; SET CONSTRAINTS ALL IMMEDIATE").await?;
    let Some(tally) = sending.rows(parcels).await? else { return Ok(None) };
    let _committing = wait(WaitKind::Network);
    sender.record(&Arrived { unit: *unit, tally: tally.clone() }, None).await?;
    client.batch_execute("COMMIT").await?;
    Ok(Some(tally))
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
