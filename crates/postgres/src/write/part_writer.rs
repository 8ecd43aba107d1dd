//! Sends units into tables of the connection's own: `CREATE TABLE`, `COPY ... FREEZE` and the units' records in one
//! transaction.
//!
//! Nobody else sees such a table before it is committed, so neither locks of the relation nor, with
//! `wal_level = minimal`, the write-ahead log stand between connections, and `FREEZE` writes rows as vacuum would
//! leave them (<https://www.postgresql.org/docs/current/sql-copy.html>). A table takes units until it has its number of
//! rows; until then its units wait to be committed together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_loader::{Arrived, Parcels, TableName, Tally, UnitWriter};
use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{Connection, WireError};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};
use tokio_postgres::CopyInSink;
use tokio_postgres::error::SqlState;

use crate::partition::survey::Partitions;
use crate::records::checkpoint::{Checkpoints, is_of_units};
use crate::table::catalogue::find;
use crate::write::unit_records::UnitRecorder;
use crate::write::writer::send_rows;

/// What all writers of a load have in common.
pub(crate) struct PartPlan {
    pub load_id: String,
    pub checkpoints: Checkpoints,
    /// The table that all parts will belong to.
    pub parent: TableName,
    /// The number of the table that they are attached to.
    pub parent_oid: u32,
    /// The columns' names for SQL.
    pub columns: String,
    /// `CREATE TABLE` of a part.
    pub create: Box<dyn Fn(&TableName) -> String + Send + Sync>,
    /// Rows after which a part is complete, where it is no partition.
    pub part_rows: u64,
    /// The partitions that parts become, each of which has all rows of one.
    pub partitions: Option<Arc<Partitions>>,
    /// The number of the next part.
    pub next: AtomicU32,
}

/// A part that was just made.
pub(crate) struct MadePart {
    pub name: TableName,
    pub oid: u32,
    /// Rows with which it is complete.
    pub complete: u64,
}

impl PartPlan {
    /// Makes a part, the table of a partition where one is named, in a transaction that stays open.
    pub(crate) fn make(
        &self,
        partition: Option<u32>,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<MadePart> {
        let name = self.parent.part(self.next.fetch_add(1, Relaxed));
        let (mut create, mut complete) = ((self.create)(&name), self.part_rows);
        if let Some((partitions, partition)) = self.partitions.as_ref().zip(partition) {
            create = format!("{create}; {}", partitions.add_check(&name, partition, self.parent_oid));
            complete = partitions.rows_of(partition).unwrap_or(0);
        }
        connection.batch(control, &format!("BEGIN; {create}"))?;
        match find(connection, &name, control)? {
            Some(found) => Ok(MadePart { name, oid: found.oid, complete }),
            None => Err(Error::new(Kind::Server, "the table that was just created is not there")
                .at(format!("table {name}, {}", connection.place()))),
        }
    }

    /// The partition that a unit is of, where parts are partitions.
    pub(crate) fn partition_of(&self, unit: &Unit) -> Option<u32> {
        let share = self.partitions.as_ref().and_then(|partitions| partitions.share_of(unit.key));
        share.map(|share| share.partition)
    }
}

/// A connection that fills one part after the other.
pub(crate) struct PartWriter {
    plan: Arc<PartPlan>,
    connection: Connection,
    records: UnitRecorder,
    open: Option<OpenPart>,
}

/// A part that takes rows.
struct OpenPart {
    oid: u32,
    /// The partition that it becomes.
    partition: Option<u32>,
    /// Rows with which it is complete.
    complete: u64,
    /// Dropped before its end, it makes the server fail the COPY.
    sink: Pin<Box<CopyInSink<Bytes>>>,
    units: Vec<Arrived>,
    rows: u64,
}

impl PartWriter {
    pub(crate) fn new(plan: Arc<PartPlan>, connection: Connection, control: &Control<'_>) -> Result<Self> {
        let records = UnitRecorder::new(&plan.checkpoints, &plan.load_id, &connection, control)?;
        Ok(Self { plan, connection, records, open: None })
    }

    /// A new part, in a transaction that its `COPY` keeps open.
    fn open(&self, partition: Option<u32>, control: &Control<'_>) -> Result<OpenPart> {
        let _starting = wait(WaitKind::Network);
        let Self { plan, connection, .. } = self;
        let MadePart { name, oid, complete } = plan.make(partition, connection, control)?;
        let copy = format!("COPY {} ({}) FROM STDIN (FORMAT binary, FREEZE)", name.quoted(), plan.columns);
        let mut sink = Box::pin(connection.wait(control, connection.client.copy_in::<_, Bytes>(&copy))?);
        connection.wait_for(control, connection.send_rows(&mut sink, Bytes::from_static(HEADER)))?;
        Ok(OpenPart { oid, partition, complete, sink, units: Vec::new(), rows: 0 })
    }

    /// Ends the open part, if there is one, and commits it with the records of its units.
    fn commit(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let Some(part) = self.open.take() else { return Ok(Vec::new()) };
        if part.partition.is_some() && part.rows != part.complete {
            return Err(committed_elsewhere(&self.connection));
        }
        let OpenPart { oid, mut sink, units, rows, .. } = part;
        let Self { connection, records, .. } = self;
        let _committing = wait(WaitKind::Network);
        let committing = async {
            sink.feed(Bytes::copy_from_slice(&TRAILER)).await?;
            let copied = sink.as_mut().finish().await?;
            if copied != rows {
                let what = format!("units of {rows} rows were copied as {copied}");
                return Err(Error::new(Kind::Mismatch, what).into());
            }
            records.record(&connection.client, &units, Some(oid)).await?;
            connection.client.batch_execute("COMMIT").await?;
            Ok(())
        };
        let committing = async {
            match committing.await {
                Err(WireError::Server(error))
                    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && is_of_units(&error) =>
                {
                    Err(committed_elsewhere(connection).into())
                }
                other => other,
            }
        };
        connection.wait_for(control, committing)?;
        Ok(units)
    }
}

/// A predecessor that was killed has committed units that this run holds, or others of their partition. They are
/// looked up again, as after a lost connection.
pub(crate) fn committed_elsewhere(connection: &Connection) -> Error {
    Error::new(Kind::Connection, "another run has committed some of these units").at(connection.place())
}

impl UnitWriter for PartWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        self.plan.checkpoints.unit(&self.connection, &self.plan.load_id, key, control)
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        let partition = self.plan.partition_of(unit);
        let mut part = match self.open.take() {
            Some(part) if part.partition == partition => part,
            Some(_) => return Err(committed_elsewhere(&self.connection)),
            None => self.open(partition, control)?,
        };
        let copying = send_rows(&self.connection, &mut part.sink, parcels);
        let Some((tally, _)) = self.connection.wait_for(control, copying)? else { return Ok(None) };
        if tally.rows != unit.rows {
            let what = format!("a unit of {} rows was read as {}", unit.rows, tally.rows);
            return Err(Error::new(Kind::Mismatch, what));
        }
        part.rows += tally.rows;
        part.units.push(Arrived { unit: *unit, tally });
        let complete = part.rows >= part.complete;
        self.open = Some(part);
        if complete { self.commit(control).map(Some) } else { Ok(Some(Vec::new())) }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit(control)
    }
}
