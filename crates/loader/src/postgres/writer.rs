//! Sends units: COPY and checkpoint in one transaction.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_profile::{WaitKind, wait};
use tokio_postgres::error::SqlState;
use tokio_postgres::{CopyInSink, Statement};

use super::checkpoint::{Checkpoints, is_of_units, signed};
use super::connection::{Connection, WireError};
use super::copy_binary::{HEADER, TRAILER};
use super::server_error::{copy_line, from_server, is_about_rows};
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::source::{Unit, UnitKey};
use crate::target::{Arrived, Parcel, Parcels, UnitWriter};

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

/// A connection that copies units into the table.
pub(crate) struct CopyWriter {
    plan: Arc<WriterPlan>,
    connection: Connection,
    copy: Statement,
    insert: Statement,
}

impl CopyWriter {
    pub(crate) fn new(plan: Arc<WriterPlan>, connection: Connection, control: &Control<'_>) -> Result<Self> {
        let copy = connection.wait(control, connection.client.prepare(&plan.copy))?;
        let insert = plan.checkpoints.insert_unit();
        let insert = connection.wait(control, connection.client.prepare(&insert))?;
        Ok(Self { plan, connection, copy, insert })
    }
}

/// Sends a unit's rows into a `COPY` that is open. What the unit came to, or none when the channel closed before
/// its end.
pub(super) async fn send_rows(
    connection: &Connection,
    sink: &mut Pin<Box<CopyInSink<Bytes>>>,
    parcels: &mut Parcels,
) -> Result<Option<Tally>, WireError> {
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
                connection.send_rows(sink, block.bytes).await?;
            }
            Some(Parcel::End(tally)) => return Ok(Some(tally)),
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
        let tally = self.write_unit(unit, parcels, control)?;
        Ok(tally.map(|tally| vec![Arrived { unit: *unit, tally }]))
    }
}

impl CopyWriter {
    fn write_unit(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Tally>> {
        let Self { plan, connection, copy, insert } = self;
        let client = &connection.client;
        let copying = async {
            // Spans may stand across an await: nothing else on this thread opens any.
            let starting = wait(WaitKind::Network);
            client.batch_execute("BEGIN").await?;
            // Dropped before its end, the sink makes the server fail the COPY.
            let mut sink = Box::pin(client.copy_in::<_, Bytes>(&*copy).await?);
            connection.send_rows(&mut sink, Bytes::from_static(HEADER)).await?;
            drop(starting);
            let Some(tally) = send_rows(connection, &mut sink, parcels).await? else { return Ok(None) };
            let copied = {
                let _ending = wait(WaitKind::Network);
                sink.feed(Bytes::copy_from_slice(&TRAILER)).await?;
                sink.as_mut().finish().await?
            };
            let rows = if plan.rows_planned { unit.rows } else { tally.rows };
            if copied != rows || tally.rows != rows {
                return Err(Error::new(
                    Kind::Mismatch,
                    format!("a unit of {rows} rows was read as {} and copied as {copied}", tally.rows),
                )
                .advise("a trigger or rule of the table may drop rows")
                .into());
            }
            let (file, row_group) = (unit.key.file as i32, unit.key.row_group as i32);
            let (first_row, rows) = (unit.key.first_row as i64, rows as i64);
            let (sum, counts) = (tally.content_sum.to_string(), signed(&tally.non_null));
            let _committing = wait(WaitKind::Network);
            client
                .execute(
                    &*insert,
                    &[&plan.load_id, &file, &row_group, &first_row, &rows, &sum, &counts, &None::<i64>],
                )
                .await?;
            client.batch_execute("COMMIT").await?;
            Ok(Some(tally))
        };
        // A predecessor that was killed may have committed the unit while this run already read the
        // checkpoints. The key of `units` then refuses ours, and its record says the rest.
        let copying = async {
            match copying.await {
                Err(WireError::Server(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                    match is_of_units(&error) {
                        true => Ok(Outcome::Already(error)),
                        false => Err(plan.refused(unit, error)),
                    }
                }
                Err(WireError::Server(error)) => Err(plan.refused(unit, error)),
                other => other.map(Outcome::Done),
            }
        };
        match connection.wait_for(control, copying) {
            Ok(Outcome::Done(tally)) => Ok(tally),
            Ok(Outcome::Already(error)) => {
                connection.batch(control, "ROLLBACK")?;
                let known = plan.checkpoints.unit(connection, &plan.load_id, unit.key, control)?;
                match known {
                    Some(tally) => Ok(Some(tally)),
                    None => Err(from_server(&error, connection.place())),
                }
            }
            Err(error) => Err(error),
        }
    }
}

impl WriterPlan {
    /// An error that is about a row of the source says which one it is. What is looked at when all rows of a unit are
    /// there, such as a foreign key, is told with the unit's rows.
    fn refused(&self, unit: &Unit, error: tokio_postgres::Error) -> WireError {
        if !is_about_rows(&error) {
            return WireError::Server(error);
        }
        let first = unit.key.first_row;
        let place = match copy_line(&error) {
            Some(line @ 1..) if self.rows_planned && (line as u64) <= unit.rows => {
                self.place(unit.key, first + line as u64 - 1)
            }
            _ => format!("{} or one up to row {}", self.place(unit.key, first), first + unit.rows.max(1) - 1),
        };
        let told = from_server(&error, &place);
        match told.advice().is_empty() {
            true => told.advise("correct the row in the source, or put such rows aside with --rejects"),
            false => told,
        }
        .into()
    }
}

enum Outcome {
    Done(Option<Tally>),
    Already(tokio_postgres::Error),
}
