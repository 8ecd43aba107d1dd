//! Sends units: COPY and checkpoints in one transaction.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_loader::{Arrived, Parcel, Parcels, Tally, UnitWriter};
use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{Connection, WireError, copy_line, from_server, is_about_rows};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};
use tokio_postgres::error::SqlState;
use tokio_postgres::{CopyInSink, Statement};

use crate::encode::canonical_row::CanonicalRow;
use crate::records::checkpoint::{Checkpoints, is_of_units};
use crate::write::part_writer::committed_elsewhere;
use crate::write::unit_group::UnitGroup;
use crate::write::unit_records::UnitRecorder;

/// What all writers of a load have in common.
#[derive(Debug)]
pub(crate) struct WriterPlan {
    pub load_id: String,
    pub checkpoints: Checkpoints,
    /// `COPY table (columns) FROM STDIN (FORMAT binary)`.
    pub copy: String,
    /// Whether units have as many rows as was planned, and not as many as they are made of.
    pub rows_planned: bool,
    /// Whether a unit's row is the row of the file with that number.
    pub rows_of_files: bool,
    /// Whether rows of a row group are counted in the order of their partitions.
    pub by_partition: bool,
    /// Number of columns.
    pub columns: usize,
    /// What is hashed of a row.
    pub canonical: CanonicalRow,
    /// Rows of a unit at most, which are those of a transaction, too.
    pub unit_rows: u64,
    /// The source's files, for errors.
    pub files: Vec<String>,
}

impl WriterPlan {
    /// Where a row is, counted from 0 in its row group.
    pub(crate) fn place(&self, key: UnitKey, row: u64) -> String {
        let file = self.files.get(key.file as usize).map(String::as_str).unwrap_or_default();
        let of_those = match (self.by_partition, self.rows_of_files) {
            (true, _) => " in the order of partitions",
            (false, true) => "",
            (false, false) => " of those that are loaded",
        };
        format!("{file}, row group {}, row {row}{of_those}", key.row_group)
    }
}

/// A connection that copies units into the table: small ones several in a transaction.
pub(crate) struct CopyWriter {
    plan: Arc<WriterPlan>,
    connection: Connection,
    copy: Statement,
    records: UnitRecorder,
    open: Option<OpenCopy>,
}

/// A transaction whose `COPY` takes units.
struct OpenCopy {
    /// Dropped before its end, it makes the server fail the COPY.
    sink: Pin<Box<CopyInSink<Bytes>>>,
    group: UnitGroup,
}

impl CopyWriter {
    pub(crate) fn new(plan: Arc<WriterPlan>, connection: Connection, control: &Control<'_>) -> Result<Self> {
        let copy = connection.wait(control, connection.client.prepare(&plan.copy))?;
        let records = UnitRecorder::new(&plan.checkpoints, &plan.load_id, &connection, control)?;
        Ok(Self { plan, connection, copy, records, open: None })
    }

    fn begin(&self, control: &Control<'_>) -> Result<OpenCopy> {
        let _starting = wait(WaitKind::Network);
        let Self { connection, copy, .. } = self;
        let beginning = async {
            connection.client.batch_execute("BEGIN").await?;
            let mut sink = Box::pin(connection.client.copy_in::<_, Bytes>(copy).await?);
            connection.send_rows(&mut sink, Bytes::from_static(HEADER)).await?;
            Ok(sink)
        };
        let sink = connection.wait_for(control, beginning)?;
        Ok(OpenCopy { sink, group: UnitGroup::default() })
    }

    /// Commits the open transaction, if there is one.
    fn commit(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let Some(OpenCopy { mut sink, group }) = self.open.take() else { return Ok(Vec::new()) };
        let Self { plan, connection, records, .. } = self;
        let client = &connection.client;
        let committing = async {
            // Spans may stand across an await: nothing else on this thread opens any.
            let _committing = wait(WaitKind::Network);
            sink.feed(Bytes::copy_from_slice(&TRAILER)).await?;
            let copied = sink.as_mut().finish().await?;
            if copied != group.rows() {
                let what = format!("{} rows were copied as {copied}", group.rows());
                return Err(Error::new(Kind::Mismatch, what)
                    .at(plan.rows_of_all(&group, None))
                    .advise("a trigger or rule of the table may drop rows")
                    .into());
            }
            records.record(client, group.units(), None).await?;
            client.batch_execute("COMMIT").await?;
            Ok(None)
        };
        // A predecessor that was killed may have committed units while this run already read the
        // checkpoints. The key of `units` then refuses ours, and their records say the rest.
        let committing = async {
            match committing.await {
                Err(WireError::Server(error))
                    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && is_of_units(&error) =>
                {
                    Ok(Some(error))
                }
                Err(WireError::Server(error)) => Err(plan.refused(&group, None, error)),
                other => other,
            }
        };
        match connection.wait_for(control, committing)? {
            None => Ok(group.into_units()),
            Some(error) => {
                connection.batch(control, "ROLLBACK")?;
                plan.recorded_elsewhere(group.units(), &error, connection, control)
            }
        }
    }
}

/// Sends a unit's rows into a `COPY` that is open. What the unit came to and its bytes, or none when the channel closed
/// before its end.
pub(crate) async fn send_rows(
    connection: &Connection,
    sink: &mut Pin<Box<CopyInSink<Bytes>>>,
    parcels: &mut Parcels,
) -> Result<Option<(Tally, u64)>, WireError> {
    let mut bytes = 0;
    loop {
        let parcel = {
            let _empty = wait(WaitKind::ChannelEmpty);
            parcels.recv().await
        };
        match parcel {
            Some(Parcel::Rows(block)) => {
                let sending = wait(WaitKind::Network);
                sending.add_rows(block.rows);
                sending.add_bytes(block.bytes.len() as u64);
                bytes += block.bytes.len() as u64;
                connection.send_rows(sink, block.bytes).await?;
            }
            Some(Parcel::End(tally)) => return Ok(Some((tally, bytes))),
            Some(Parcel::Failed(error)) => return Err(WireError::Own(error)),
            Some(Parcel::Unit(_)) => {
                return Err(Error::new(Kind::Source, "a unit began before the last one ended").into());
            }
            None => return Ok(None),
        }
    }
}

impl UnitWriter for CopyWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        self.plan.checkpoints.unit(&self.connection, &self.plan.load_id, key, control)
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(control)?,
        };
        let Self { plan, connection, .. } = self;
        let OpenCopy { sink, group } = &mut open;
        let sending = async {
            match send_rows(connection, sink, parcels).await {
                Err(WireError::Server(error)) => Err(plan.refused(group, Some(unit), error)),
                other => other,
            }
        };
        let Some((tally, bytes)) = connection.wait_for(control, sending)? else { return Ok(None) };
        if plan.rows_planned && tally.rows != unit.rows {
            let what = format!("a unit of {} rows was read as {}", unit.rows, tally.rows);
            return Err(Error::new(Kind::Mismatch, what));
        }
        group.add(Arrived { unit: *unit, tally }, bytes);
        let full = group.is_full(plan.unit_rows);
        self.open = Some(open);
        if full { self.commit(control).map(Some) } else { Ok(Some(Vec::new())) }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit(control)
    }
}

impl WriterPlan {
    /// What is recorded of units whose records, as `error` says, another run has written, after the transaction was
    /// rolled back.
    fn recorded_elsewhere(
        &self,
        units: &[Arrived],
        error: &tokio_postgres::Error,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        let mut known = Vec::with_capacity(units.len());
        for Arrived { unit, .. } in units {
            if let Some(tally) = self.checkpoints.unit(connection, &self.load_id, unit.key, control)? {
                known.push(Arrived { unit: *unit, tally });
            }
        }
        match known.len() {
            0 => Err(from_server(error, connection.place())),
            all if all == units.len() => Ok(known),
            _ => Err(committed_elsewhere(connection)),
        }
    }

    /// An error that is about a row of the source says which one it is. What is looked at when all rows of a
    /// transaction are there, such as a foreign key, is told with these.
    fn refused(
        &self,
        group: &UnitGroup,
        under_way: Option<&Unit>,
        error: tokio_postgres::Error,
    ) -> WireError {
        if !is_about_rows(&error) {
            return WireError::Server(error);
        }
        let line = copy_line(&error).and_then(|line| (line as u64).checked_sub(1));
        let place = match line.and_then(|line| group.unit_of(line, under_way)) {
            Some((unit, row)) if self.rows_planned && row < unit.rows => {
                self.place(unit.key, unit.key.first_row + row)
            }
            Some((unit, _)) => self.rows_of(unit, unit),
            None => self.rows_of_all(group, under_way),
        };
        let told = from_server(&error, &place);
        match told.advice().is_empty() {
            true => told.advise("correct the row in the source, or put such rows aside with --rejects"),
            false => told,
        }
        .into()
    }

    fn rows_of_all(&self, group: &UnitGroup, under_way: Option<&Unit>) -> String {
        let mut units = group.units().iter().map(|arrived| &arrived.unit).chain(under_way);
        let first = units.next();
        first.map(|first| self.rows_of(first, units.last().unwrap_or(first))).unwrap_or_default()
    }

    /// The rows from a unit's first to another's last.
    fn rows_of(&self, from: &Unit, to: &Unit) -> String {
        let first = self.place(from.key, from.key.first_row);
        let last = to.key.first_row + to.rows.max(1) - 1;
        match (from.key.file, from.key.row_group) == (to.key.file, to.key.row_group) {
            true => format!("{first} or one up to row {last}"),
            false => format!("{first} or one up to {}", self.place(to.key, last)),
        }
    }
}
