//! Rows of a unit of which the server may refuse some.
//!
//! Some blocks of rows together are a COPY behind a savepoint, and are kept until the server has taken them. When it
//! refuses a row, they go back to the savepoint, and each is sent again: in parts, around the row that the server names or
//! by halves, down to the single rows that it refuses; those are recorded with its reason, in the transaction that is open.

use std::collections::BTreeSet;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_loader::{Arrived, Block, Mark, Parcel, Parcels, Tally};
use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{Connection, WireError, copy_line, from_server, is_about_rows};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};
use tokio_postgres::{CopyInSink, Statement};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::marked_rows;
use crate::partition::tables::is_of_partition;
use crate::rejected::rejects::{Recorder, Reject, Rejecting};
use crate::verify::tuples::Tuples;
use crate::write::unit_records::UnitRecorder;
use crate::write::writer::WriterPlan;

/// A connection, and what it takes to record units and rows that were put aside.
pub(crate) struct RejectingSender {
    pub plan: Arc<WriterPlan>,
    pub rejecting: Arc<Rejecting>,
    pub connection: Connection,
    records: UnitRecorder,
    recorder: Recorder,
}

impl RejectingSender {
    pub(crate) fn new(
        plan: Arc<WriterPlan>,
        rejecting: Arc<Rejecting>,
        connection: Connection,
        control: &Control<'_>,
    ) -> Result<Self> {
        let records = UnitRecorder::new(&plan.checkpoints, &plan.load_id, &connection, control)?;
        let recorder = Recorder::new(&plan.checkpoints, &connection, control)?;
        Ok(Self { plan, rejecting, connection, records, recorder })
    }

    /// What is recorded of a unit that is in; its rejected rows count from now on.
    pub(crate) fn known(&self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        let Self { plan, rejecting, connection, .. } = self;
        let tally = plan.checkpoints.unit(connection, &plan.load_id, key, control)?;
        if tally.is_some() {
            let rejects = plan.checkpoints.rejects(connection, &plan.load_id, key, control)?;
            rejecting.count_again(rejects.len() as u64);
        }
        Ok(tally)
    }

    /// Records units in the transaction that is open, and the table of their own that they stand in, where there is
    /// one.
    pub(crate) async fn record(&self, units: &[Arrived], part: Option<u32>) -> Result<(), WireError> {
        Ok(self.records.record(&self.connection.client, units, part).await?)
    }
}

/// Bytes of blocks that are sent together, and kept meanwhile, where the server has refused none for a while. A load of
/// three million taxi rows of which none is refused takes as long as one that puts none aside (2.14 and 2.18 s), with blocks
/// sent each by itself 1.7 times (3.72 s; medians of five, in turns); with 12 MiB it takes 3 % less than with 4.
const TOGETHER: usize = 4 << 20;

/// After it has refused some a block is sent alone, and with each COPY that it takes so many bytes more.
const MORE_TOGETHER: usize = 256 << 10;

/// A COPY that has not ended, behind a savepoint.
struct OpenCopy {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    /// What was sent.
    blocks: Vec<Block>,
    bytes: usize,
    /// Why it cannot go on.
    lost: Option<WireError>,
}

/// Whether the server refuses one row, and no other run of the load has filled the partition.
fn is_about_one(error: &tokio_postgres::Error) -> bool {
    is_about_rows(error) && !is_of_partition(error)
}

/// A unit under way.
pub(crate) struct RejectingUnit<'a> {
    sender: &'a RejectingSender,
    copy: &'a Statement,
    unit: &'a Unit,
    /// Rows that were put aside, or records whose rows were refused.
    aside: BTreeSet<u64>,
    /// The sums of those refused rows that the tally of the encoder has.
    encoded: Tuples,
    /// Blocks on their way behind the savepoint.
    open: Option<OpenCopy>,
    /// Bytes of blocks that are sent together.
    together: usize,
    /// No rows of another run stand in the way: the table is the connection's own, or the server has refused a row,
    /// and no record of the unit was there then.
    refusing: bool,
    /// Bytes of rows that were sent.
    pub bytes: u64,
    /// All parcels of the unit were taken.
    pub ended: bool,
}

impl<'a> RejectingUnit<'a> {
    /// Rows of `unit` go through the statement `copy`, into a table of the connection's own or into that of all.
    pub(crate) fn new(
        sender: &'a RejectingSender,
        copy: &'a Statement,
        unit: &'a Unit,
        own_table: bool,
    ) -> Self {
        let encoded = Tuples::new(sender.plan.columns, sender.plan.canonical.clone(), false);
        Self {
            sender,
            copy,
            unit,
            aside: BTreeSet::new(),
            encoded,
            open: None,
            together: TOGETHER,
            refusing: own_table,
            bytes: 0,
            ended: false,
        }
    }

    /// How many were put aside so far.
    pub(crate) fn rejected(&self) -> u64 {
        self.aside.len() as u64
    }

    /// Sends the unit's rows in the transaction that is open. What they came to, but for those that were put aside,
    /// or none when the channel closed before the unit's end.
    pub(crate) async fn rows(&mut self, parcels: &mut Parcels) -> Result<Option<Tally>, WireError> {
        let tally = loop {
            let parcel = {
                let _empty = wait(WaitKind::ChannelEmpty);
                parcels.recv().await
            };
            match parcel {
                Some(Parcel::Rows(block)) => self.send(block).await?,
                Some(Parcel::End(tally)) => {
                    self.ended = true;
                    self.end_copy().await?;
                    break tally;
                }
                Some(Parcel::Failed(error)) => return Err(WireError::Own(error)),
                Some(Parcel::Unit(_)) => {
                    return Err(Error::new(Kind::Source, "a unit began before the last one ended").into());
                }
                None => return Ok(None),
            }
        };
        let no_more = Tuples::new(0, CanonicalRow::default(), false);
        let refused = std::mem::replace(&mut self.encoded, no_more).into_sums().whole;
        let tally = tally.minus(&refused);
        let (planned, rejected) = (self.unit.rows, self.rejected());
        if self.sender.plan.rows_planned && tally.rows + rejected != planned {
            let what =
                format!("a unit of {planned} rows came to {} and {rejected} rejected ones", tally.rows);
            return Err(Error::new(Kind::Mismatch, what).into());
        }
        Ok(Some(tally))
    }

    /// Sends a block with others.
    async fn send(&mut self, block: Block) -> Result<(), WireError> {
        self.bytes += block.bytes.len() as u64;
        let connection = &self.sender.connection;
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let _starting = wait(WaitKind::Network);
                connection.client.batch_execute("SAVEPOINT sawmill_rows").await?;
                let mut sink = Box::pin(connection.client.copy_in::<_, Bytes>(self.copy).await?);
                connection.send_rows(&mut sink, Bytes::from_static(HEADER)).await?;
                self.open.insert(OpenCopy { sink, blocks: Vec::new(), bytes: 0, lost: None })
            }
        };
        let sending = wait(WaitKind::Network);
        sending.add_rows(block.rows);
        sending.add_bytes(block.bytes.len() as u64);
        if !block.bytes.is_empty() && open.lost.is_none() {
            open.lost = connection.send_rows(&mut open.sink, block.bytes.clone()).await.err();
        }
        drop(sending);
        open.bytes += block.bytes.len();
        open.blocks.push(block);
        match open.bytes >= self.together || open.lost.is_some() {
            true => self.end_copy().await,
            false => Ok(()),
        }
    }

    /// Ends the COPY of the blocks that are on their way; where the server refuses some row of them, each is sent by itself.
    async fn end_copy(&mut self) -> Result<(), WireError> {
        let Some(OpenCopy { mut sink, blocks, lost, .. }) = self.open.take() else { return Ok(()) };
        let rows = blocks.iter().map(|block| block.rows).sum::<u64>();
        let copied = {
            let _ending = wait(WaitKind::Network);
            match lost {
                Some(lost) => Err(lost),
                None => {
                    async {
                        sink.feed(Bytes::copy_from_slice(&TRAILER)).await?;
                        Ok(sink.as_mut().finish().await?)
                    }
                    .await
                }
            }
        };
        match copied {
            Ok(copied) => {
                self.taken(copied, rows).await?;
                self.together = (self.together + MORE_TOGETHER).min(TOGETHER);
                for block in &blocks {
                    let rejects = self.refused_before(block)?;
                    self.record(rejects).await?;
                }
            }
            Err(WireError::Server(error)) if is_about_one(&error) => {
                self.back().await?;
                // Where there is one, there may be more soon: the next block goes alone.
                self.together = 0;
                match blocks.as_slice() {
                    [block] => self.block(block, Some(error)).await?,
                    blocks => {
                        for block in blocks {
                            self.block(block, None).await?;
                        }
                    }
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The rows of a block that were not encoded.
    fn refused_before(&mut self, block: &Block) -> Result<Vec<Reject>> {
        let mut rejects = Vec::new();
        for (row, reason) in block.marks.iter().flat_map(|marks| &marks.refused) {
            rejects.extend(self.put_aside(*row, reason.clone())?);
        }
        Ok(rejects)
    }

    /// Records rejected rows.
    async fn record(&self, mut rejects: Vec<Reject>) -> Result<(), WireError> {
        rejects.sort_unstable_by_key(|reject| reject.row);
        let Self { sender, unit, .. } = self;
        let client = &sender.connection.client;
        Ok(sender.recorder.record(client, &sender.plan.load_id, unit, &rejects).await?)
    }

    /// Sends a block, in ever smaller parts where the server refuses some of it, or has `refused` all of it.
    async fn block(
        &mut self,
        block: &Block,
        mut refused: Option<tokio_postgres::Error>,
    ) -> Result<(), WireError> {
        let marked: Vec<Mark> = marked_rows(block).collect();
        if marked.len() as u64 != block.rows {
            return Err(Error::new(Kind::Source, "a block came without the places of its rows").into());
        }
        let mut rejects = self.refused_before(block)?;
        let start = |row: usize| if row == 0 { 0 } else { marked[row - 1].end as usize };
        let mut left: Vec<Range<usize>> = std::iter::once(0..marked.len()).collect();
        while let Some(rows) = left.pop().filter(|rows| !rows.is_empty()) {
            let bytes = block.bytes.slice(start(rows.start)..start(rows.end));
            let copied = match refused.take() {
                Some(error) => Err(error),
                None => self.copy(bytes.clone(), rows.len()).await?,
            };
            let Err(error) = copied else { continue };
            match (rows.len(), copy_line(&error)) {
                (1, _) => {
                    self.refuse_recorded().await?;
                    let reason = from_server(&error, "").what();
                    rejects.extend(self.put_aside(marked[rows.start].row, reason)?);
                    self.encoded.feed(&bytes).map_err(|what| Error::new(Kind::Source, what))?;
                }
                (count, Some(line)) if (1..=count).contains(&line) => {
                    let bad = rows.start + line - 1;
                    let parts = [bad + 1..rows.end, bad..bad + 1, rows.start..bad];
                    left.extend(parts.into_iter().filter(|part| !part.is_empty()));
                }
                (count, _) => {
                    let middle = rows.start + count / 2;
                    left.extend([middle..rows.end, rows.start..middle]);
                }
            }
        }
        self.record(rejects).await
    }

    /// A predecessor that was killed may have committed the unit meanwhile: then it is the unit's own rows that stand
    /// in the way of its rows, where these have a unique key.
    async fn refuse_recorded(&mut self) -> Result<(), WireError> {
        if self.refusing {
            return Ok(());
        }
        let (plan, key) = (&self.sender.plan, self.unit.key);
        let (file, row_group, first_row) = (key.file as i32, key.row_group as i32, key.first_row as i64);
        let select = plan.checkpoints.select_unit();
        let client = &self.sender.connection.client;
        let found = client.query(&select, &[&plan.load_id, &file, &row_group, &first_row]).await?;
        if !found.is_empty() {
            let what = "another run of the load has committed the unit";
            return Err(Error::new(Kind::Server, what).at(plan.place(key, key.first_row)).into());
        }
        self.refusing = true;
        Ok(())
    }

    /// Puts a row of the unit aside, or the record that it is of; none where that was put aside before.
    fn put_aside(&mut self, row: u32, reason: String) -> Result<Option<Reject>> {
        let row = self.unit.key.first_row + u64::from(row);
        if !self.aside.insert(row) {
            return Ok(None);
        }
        let RejectingSender { plan, rejecting, .. } = self.sender;
        let reason = rejecting.told(reason);
        rejecting.add(1, || plan.place(self.unit.key, row), &reason)?;
        Ok(Some(Reject { row, reason }))
    }

    /// Copies rows behind a savepoint. The inner error is what the server has against one of them; then none of them
    /// is in.
    async fn copy(&self, rows: Bytes, count: usize) -> Result<Result<(), tokio_postgres::Error>, WireError> {
        let client = &self.sender.connection.client;
        let sending = wait(WaitKind::Network);
        sending.add_rows(count as u64);
        sending.add_bytes(rows.len() as u64);
        client.batch_execute("SAVEPOINT sawmill_rows").await?;
        let copying = async {
            let mut sink = Box::pin(client.copy_in::<_, Bytes>(self.copy).await?);
            sink.feed(Bytes::from_static(HEADER)).await?;
            sink.feed(rows).await?;
            sink.feed(Bytes::copy_from_slice(&TRAILER)).await?;
            sink.as_mut().finish().await
        };
        match copying.await {
            Ok(copied) => self.taken(copied, count as u64).await.map(Ok),
            Err(error) if is_about_one(&error) => {
                self.back().await?;
                Ok(Err(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The server has taken rows that were sent.
    async fn taken(&self, copied: u64, rows: u64) -> Result<(), WireError> {
        if copied != rows {
            return Err(Error::new(Kind::Mismatch, format!("{rows} rows were copied as {copied}"))
                .advise("a trigger or rule of the table may drop rows")
                .into());
        }
        Ok(self.sender.connection.client.batch_execute("RELEASE SAVEPOINT sawmill_rows").await?)
    }

    /// Takes back what was sent behind the savepoint.
    async fn back(&self) -> Result<(), WireError> {
        let back = "ROLLBACK TO SAVEPOINT sawmill_rows; RELEASE SAVEPOINT sawmill_rows";
        Ok(self.sender.connection.client.batch_execute(back).await?)
    }
}
