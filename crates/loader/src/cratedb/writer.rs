//! Sends units, and accounts for every row of them.
//!
//! A block goes as a whole. What the server says decides what comes next:
//!
//! | answer | then |
//! |---|---|
//! | 200 | each row's result is read; a refusal without a reason is asked again alone |
//! | 400, 413 | the rows are sent in halves, down to the one that is at fault |
//! | 429, 502-504, 4040; 4041 and 4045 of a server that restarts | the same again after a pause |
//! | none, and not all was sent | the same again |
//! | none, but all was sent | the same again with `ON CONFLICT DO NOTHING` where rows have a key; else the load ends, since some rows may be in |
//!
//! Blocks of columns go over the PostgreSQL wire; when the count of inserted rows is not that of the block,
//! or anything else goes wrong, the block's rows are sent once more over HTTP, which tells the reasons.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_profile::{WaitKind, wait};
use serde_json::value::RawValue;
use tokio_postgres::types::Type;

use super::bulk::{self, RowResult};
use super::canonical;
use super::carried::Carried;
use super::checkpoint::{Checkpoints, UnitRecord};
use super::client::{Attempt, Client, Cluster, MORE_COLUMNS, Said, is_about_columns, is_passing_code};
use super::columns::{Key, Plan};
use super::compare::{Comparison, Sent};
use super::http::Broken;
use super::lease::Lease;
use super::names::CrateTable;
use super::pg::{self, PgInsert};
use super::rejects::{Reject, Rejects};
use super::there_before::ThereBefore;
use super::waiting::Waiting;
use crate::content_sum::Tally;
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::source::{SourceFile, Unit, UnitKey};
use crate::target::{Arrived, Block, Marks, Parcel, Parcels, UnitWriter};

/// What all writers of a load have in common.
pub(crate) struct WriterPlan {
    pub cluster: Arc<Cluster>,
    pub load_id: String,
    pub checkpoints: Checkpoints,
    pub lease: Lease,
    pub table: CrateTable,
    pub plan: Plan,
    /// Everything before the rows of a request, for the first time and for a repetition.
    pub first: Vec<u8>,
    pub repeat: Vec<u8>,
    /// The statements of the PostgreSQL wire and the types of their parameters, where it is used.
    pub unnest: Option<([String; 2], Vec<Type>)>,
    /// An earlier run may have sent any row.
    pub resumed: bool,
    /// Rows gather in a table of this load's own.
    pub gathers: bool,
    /// Rows of the source that were in the table before.
    pub before: ThereBefore,
    /// Units that this run has sent rows of.
    pub begun: Mutex<HashSet<UnitKey>>,
    pub rejects: Option<Rejects>,
    pub max_rejects: u64,
    pub retries: u32,
    pub gzip: bool,
    pub files: Vec<SourceFile>,
    /// Rows refused so far, those of earlier runs included.
    pub rejected: AtomicU64,
    pub retried: AtomicU64,
    pub redone: AtomicU64,
    pub carried: Carried,
    pub writers: AtomicU64,
}

/// What stands after the rows of a request.
const END: &[u8] = b"]}";

/// A connection that sends units.
pub(crate) struct CrateWriter {
    plan: Arc<WriterPlan>,
    client: Client,
    pg: Option<PgInsert>,
    /// The PostgreSQL wire was tried so often in vain that it is left alone.
    pg_failures: u32,
    first_node: usize,
    /// The number of rows of the block under way is known that were in the table before.
    numbered: bool,
    /// Rows of the unit under way may have been sent before, by this load.
    sent_before: bool,
    /// Of the unit under way: rows that do not go in, what those of them come to that were sent, and rows that were in the
    /// table before.
    rejects: Vec<Reject>,
    lost: Tally,
    there_before: Tally,
}

impl CrateWriter {
    pub(crate) fn new(plan: Arc<WriterPlan>) -> Self {
        let client = Client::new(&plan.cluster, plan.gzip);
        let first_node = plan.writers.fetch_add(1, Relaxed) as usize;
        let columns = plan.plan.columns.len();
        Self {
            client,
            pg: None,
            pg_failures: 0,
            first_node,
            numbered: false,
            sent_before: false,
            rejects: Vec::new(),
            lost: Tally::empty(columns),
            there_before: Tally::empty(columns),
            plan,
        }
    }

    /// Sends a block, by column where that is asked for.
    fn block(&mut self, unit: &Unit, block: &Block, control: &Control<'_>) -> Result<()> {
        self.plan.lease.check()?;
        let Some(marks) = &block.marks else {
            return Err(Error::new(Kind::Source, "a block came without the places of its rows"));
        };
        for (row, reason) in &marks.refused {
            self.reject(unit, *row, reason, None, None)?;
        }
        if marks.rows.is_empty() {
            return Ok(());
        }
        let mut repeat = self.sent_before;
        let mut there_before = None;
        if !marks.columns.is_empty() && self.pg_failures < 3 {
            match self.send_columns(marks, repeat, control)? {
                Ok(inserted) if inserted == marks.rows.len() as u64 => {
                    self.plan.carried.by_pg(marks.rows.len());
                    return Ok(());
                }
                // The others were there before. If none went in, this is still their first try.
                Ok(inserted) => {
                    let reason = format!("{inserted} of {} rows of a batch went in", marks.rows.len());
                    self.plan.carried.turn(&reason);
                    let first = !self.plan.gathers && !repeat;
                    there_before = (first && inserted > 0).then_some(marks.rows.len() as u64 - inserted);
                    repeat |= inserted > 0;
                }
                // Some of it may be in.
                Err(reason) => {
                    self.plan.carried.turn(&reason);
                    repeat = true;
                }
            }
            self.plan.redone.fetch_add(1, Relaxed);
        }
        let rejected = self.rejects.len();
        self.numbered = there_before.is_some();
        self.send(unit, &block.bytes, marks, 0..marks.rows.len(), repeat, control)?;
        if let Some(rows) = there_before {
            self.plan.before.add_unnamed(rows.saturating_sub((self.rejects.len() - rejected) as u64));
        }
        self.numbered = false;
        self.plan.carried.by_http(marks.rows.len());
        Ok(())
    }

    /// Sends a block by column, and returns how many of its rows went in; the inner error is why that is not known.
    fn send_columns(
        &mut self,
        marks: &Marks,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<std::result::Result<u64, String>> {
        let Some((statements, types)) = &self.plan.unnest else {
            return Ok(Err("the PostgreSQL wire is not used".to_owned()));
        };
        // Without a key it matters whether a batch was sent at all.
        if matches!(self.plan.plan.key, Key::None) && self.pg.as_ref().is_some_and(|pg| pg.is_closed(control))
        {
            self.plan.cluster.connection_lost();
            self.pg = None;
        }
        if self.pg.is_none() {
            let cluster = &self.plan.cluster;
            let server = pg::server(&cluster.server, cluster.tls.as_ref(), self.first_node);
            let statements = [statements[0].as_str(), statements[1].as_str()];
            match PgInsert::open(&server, statements, types, control) {
                Ok(connection) => self.pg = Some(connection),
                Err(error) if error.kind() == Kind::Cancelled => return Err(error),
                Err(error) => {
                    self.pg_failures += 1;
                    self.first_node += 1;
                    self.plan.cluster.connection_lost();
                    // Nothing was sent: without a key, too, the rows may go another way.
                    return Ok(Err(format!("the PostgreSQL wire cannot be used: {}", error.what())));
                }
            }
        }
        let Some(connection) = &self.pg else {
            return Ok(Err("there is no PostgreSQL wire".to_owned()));
        };
        let inserted = connection.insert(&marks.columns, repeat, control);
        let what = match inserted {
            Ok(rows) if rows == marks.rows.len() as u64 => {
                self.pg_failures = 0;
                return Ok(Ok(rows));
            }
            Ok(rows) if self.plan.plan.key != Key::None => return Ok(Ok(rows)),
            Ok(rows) => format!("{rows} of {} rows of a batch went in", marks.rows.len()),
            Err(error) if error.kind() == Kind::Cancelled => return Err(error),
            Err(error) => {
                if error.kind() == Kind::Connection {
                    self.plan.cluster.connection_lost();
                    self.pg = None;
                    self.pg_failures += 1;
                    self.first_node += 1;
                }
                error.what()
            }
        };
        match self.plan.plan.key {
            Key::None => Err(self.keyless(&what)),
            _ => Ok(Err(what)),
        }
    }

    fn keyless(&self, what: &str) -> Error {
        Error::new(
            Kind::Value,
            format!("{what}; which rows of the batch are in the table cannot be told without a key"),
        )
        .at(format!("table {}, {}", self.plan.table, self.client.place()))
        .advise("load with --row-key, or with --transport http, which tells what is wrong with single rows")
    }

    /// Sends rows of a block until all are in or refused.
    fn send(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        rows: Range<usize>,
        mut repeat: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        let Some(last) = rows.end.checked_sub(1).and_then(|last| marks.rows.get(last)) else { return Ok(()) };
        let start = match rows.start {
            0 => 0,
            // After the comma.
            start => marks.rows.get(start - 1).map_or(0, |mark| mark.end as usize + 1),
        };
        let body = &bytes[start..last.end as usize];
        let mut waiting = Waiting::new(self.plan.retries);
        loop {
            let plan = Arc::clone(&self.plan);
            let head = if repeat || plan.plan.key != Key::None { &plan.repeat } else { &plan.first };
            let mut results = Ok(Vec::new());
            let mut read = |body: &[u8]| results = bulk::parse(body, rows.len());
            let error = match self.client.attempt(&[head, body, END], &mut read, control) {
                Attempt::Done => {
                    let results =
                        results.map_err(|what| Error::new(Kind::Server, what).at(self.client.place()))?;
                    match passing(&results) {
                        // With a key all of them may go again at once.
                        Some((code, reason)) if !matches!(plan.plan.key, Key::None) => {
                            repeat = true;
                            self.passing(code, reason)
                        }
                        _ => return self.account(unit, bytes, marks, rows, repeat, results, control),
                    }
                }
                Attempt::Said(said) if plan.cluster.passes(&said) => {
                    // A server that gave up may have begun.
                    if matches!(said.status, 500 | 502 | 504) || said.code == 4040 {
                        self.may_repeat(&said.message)?;
                        repeat = true;
                    }
                    self.client.explain(&said)
                }
                Attempt::Said(said) if matches!(said.status, 400 | 409 | 413 | 500) => {
                    if said.status == 500 {
                        self.may_repeat(&said.message)?;
                        repeat = true;
                    }
                    return self.halve(unit, bytes, marks, rows, repeat, &said, control);
                }
                Attempt::Said(said) => return Err(self.client.explain(&said)),
                Attempt::Broken(broken) => {
                    if let Broken::Unknown(what) = &broken {
                        self.may_repeat(what)?;
                        repeat = true;
                    }
                    self.client.lost(broken)?
                }
            };
            waiting.pause(error, &plan.cluster, control)?;
            plan.retried.fetch_add(1, Relaxed);
        }
    }

    /// Without a key a batch that may be in must not be sent again.
    fn may_repeat(&self, what: &str) -> Result<()> {
        match self.plan.plan.key {
            Key::None => Err(Error::new(
                Kind::Server,
                format!("whether the rows of a batch are in the table is not known: {what}"),
            )
            .at(format!("table {}, {}", self.plan.table, self.client.place()))
            .advise("rows have no key: the same command again sends the rows of unfinished units once more, and some may then be there twice")),
            _ => Ok(()),
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one step of the recursion, all of it is the place where it stands"
    )]
    fn halve(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        rows: Range<usize>,
        repeat: bool,
        said: &Said,
        control: &Control<'_>,
    ) -> Result<()> {
        if rows.len() == 1 {
            let mark = rows.start;
            return self.refuse(
                unit,
                bytes,
                marks,
                mark,
                (said.code > 0).then_some(said.code),
                &said.message,
            );
        }
        let middle = rows.start + rows.len() / 2;
        self.send(unit, bytes, marks, rows.start..middle, repeat, control)?;
        self.send(unit, bytes, marks, middle..rows.end, repeat, control)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one step of the recursion, all of it is the place where it stands"
    )]
    fn account(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        rows: Range<usize>,
        repeat: bool,
        results: Vec<RowResult>,
        control: &Control<'_>,
    ) -> Result<()> {
        let alone = rows.len() == 1;
        let first = rows.start;
        let mut present = Vec::new();
        for (i, result) in results.into_iter().enumerate() {
            let row = first + i;
            match result {
                RowResult::Inserted => {}
                RowResult::Present => present.push(row),
                RowResult::Refused(code, reason) if is_passing_code(code) => {
                    self.once_more(unit, bytes, marks, row, repeat, (code, &reason), control)?;
                }
                RowResult::Refused(code, reason) => {
                    self.refuse(unit, bytes, marks, row, Some(code), &reason)?
                }
                RowResult::Unexplained if alone => {
                    self.refuse(unit, bytes, marks, row, None, "the server gives no reason")?;
                }
                RowResult::Unexplained => self.send(unit, bytes, marks, row..row + 1, repeat, control)?,
            }
        }
        if present.is_empty() {
            return Ok(());
        }
        self.present(unit, bytes, marks, present, repeat, control)
    }

    /// Rows whose key the table has already: of an earlier try, of another load, or of another row of this one.
    fn present(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        present: Vec<usize>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let differing: HashSet<usize> = match &plan.plan.key {
            Key::None => return Ok(()),
            // Nobody else writes to the table of a load, and this run has sent this very row.
            Key::Row(_) if plan.gathers && repeat && !plan.resumed => return Ok(()),
            // A table that began empty has a row of the same key only from another row of this load.
            _ if plan.gathers && !repeat => present.iter().copied().collect(),
            _ => {
                let sent: Vec<Sent<'_>> =
                    present.iter().map(|row| sent_row_of(&plan.plan, bytes, marks, *row)).collect();
                let comparison = Comparison { table: &plan.table, plan: &plan.plan, retries: plan.retries };
                comparison.others(&mut self.client, &sent, control)?.into_iter().collect()
            }
        };
        for row in present {
            if differing.contains(&row) {
                let reason = match plan.plan.key {
                    Key::Row(_) => {
                        "a row with this row key and other values is in the table: the file held something else when it was loaded"
                    }
                    _ => "another row with this primary key is in the table",
                };
                self.refuse(unit, bytes, marks, row, Some(4091), reason)?;
            } else if !plan.gathers && !repeat {
                let values = values_of(&plan.plan, bytes, marks, row);
                self.there_before.add(&canonical::sent_row(values, plan.plan.columns.len()));
            } else if !plan.gathers && !self.numbered {
                plan.before.lose_count();
            }
        }
        Ok(())
    }

    /// A row that was refused for a reason that passes.
    #[allow(
        clippy::too_many_arguments,
        reason = "one step of the recursion, all of it is the place where it stands"
    )]
    fn once_more(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        row: usize,
        repeat: bool,
        said: (u32, &str),
        control: &Control<'_>,
    ) -> Result<()> {
        let body = row_of(bytes, marks, row);
        let repeat = repeat || !matches!(self.plan.plan.key, Key::None);
        let mut waiting = Waiting::new(self.plan.retries);
        loop {
            let error = self.passing(said.0, said.1);
            waiting.pause(error, &Arc::clone(&self.plan.cluster), control)?;
            self.plan.retried.fetch_add(1, Relaxed);
            let plan = Arc::clone(&self.plan);
            let head = if repeat { &plan.repeat } else { &plan.first };
            let mut results = Ok(Vec::new());
            let mut read = |body: &[u8]| results = bulk::parse(body, 1);
            match self.client.attempt(&[head, body, END], &mut read, control) {
                Attempt::Done => {
                    let mut results =
                        results.map_err(|what| Error::new(Kind::Server, what).at(self.client.place()))?;
                    match results.pop() {
                        Some(RowResult::Refused(code, _)) if is_passing_code(code) => {}
                        Some(result) => {
                            return self.account(
                                unit,
                                bytes,
                                marks,
                                row..row + 1,
                                repeat,
                                vec![result],
                                control,
                            );
                        }
                        None => {}
                    }
                }
                Attempt::Broken(Broken::Cancelled(error)) => return Err(error),
                Attempt::Broken(Broken::Unknown(what)) => self.may_repeat(&what)?,
                Attempt::Said(said) if !plan.cluster.passes(&said) => return Err(self.client.explain(&said)),
                Attempt::Broken(Broken::NotSent(_)) | Attempt::Said(_) => {}
            }
        }
    }

    /// A row's refusal that passes, as an error.
    fn passing(&self, code: u32, reason: &str) -> Error {
        Error::new(Kind::Server, format!("the server says: {reason} [{code}]"))
            .at(self.client.place())
            .advise("wait until the cluster has recovered and run the same command again")
    }

    /// A row that the server refuses, for good.
    fn refuse(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        marks: &Marks,
        row: usize,
        code: Option<u32>,
        reason: &str,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let values = values_of(&plan.plan, bytes, marks, row);
        self.lost.add(&canonical::sent_row(values, plan.plan.columns.len()));
        let text = format!("[{}]", String::from_utf8_lossy(values));
        let number = marks.rows.get(row).map_or(0, |mark| mark.row);
        self.reject(unit, number, reason, code, RawValue::from_string(text).ok())
    }

    /// A row that does not go in: written aside, or the end of the load.
    fn reject(
        &mut self,
        unit: &Unit,
        row: u32,
        reason: &str,
        code: Option<u32>,
        values: Option<Box<RawValue>>,
    ) -> Result<()> {
        let file =
            self.plan.files.get(unit.key.file as usize).map(|file| file.name.clone()).unwrap_or_default();
        let (row_group, row) = (unit.key.row_group, unit.key.first_row + u64::from(row));
        let place = format!("{file}, row group {row_group}, row {row}");
        if self.plan.rejects.is_none() {
            let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
            let advice = match is_about_columns(reason) {
                true => MORE_COLUMNS,
                false => {
                    "rows count from 0 in their row group; --rejects FILE puts such rows aside and loads the others"
                }
            };
            return Err(Error::new(Kind::Value, format!("the server refuses a row: {reason}{code}"))
                .at(place)
                .advise(advice));
        }
        self.rejects.push(Reject { file, row_group, row, reason: reason.to_owned(), code, values });
        let rejected = self.plan.rejected.load(Relaxed) + self.rejects.len() as u64;
        if rejected > self.plan.max_rejects {
            self.flush_rejects()?;
            return Err(Error::new(
                Kind::Value,
                format!("{rejected} rows were refused, the last one: {reason}"),
            )
            .at(place)
            .advise("look into the file of refused rows, or raise --max-rejects"));
        }
        Ok(())
    }

    fn flush_rejects(&mut self) -> Result<()> {
        match &self.plan.rejects {
            Some(rejects) => rejects.write(&self.rejects),
            None => Ok(()),
        }
    }
}

/// The first refusal that passes.
fn passing(results: &[RowResult]) -> Option<(u32, &str)> {
    results.iter().find_map(|result| match result {
        RowResult::Refused(code, reason) if is_passing_code(*code) => Some((*code, reason.as_str())),
        _ => None,
    })
}

/// A row's JSON array.
fn row_of<'a>(bytes: &'a [u8], marks: &Marks, row: usize) -> &'a [u8] {
    let start = match row {
        0 => 0,
        row => marks.rows.get(row - 1).map_or(0, |mark| mark.end as usize + 1),
    };
    let end = marks.rows.get(row).map_or(start, |mark| mark.end as usize);
    &bytes[start..end]
}

/// A row as it is compared with the one that is in the table.
fn sent_row_of<'a>(plan: &Plan, bytes: &'a [u8], marks: &Marks, row: usize) -> Sent<'a> {
    let whole = row_of(bytes, marks, row);
    let values = values_of(plan, bytes, marks, row);
    let row_key = match plan.key {
        // Between the bracket and the comma before the values.
        Key::Row(_) => whole.get(1..whole.len().saturating_sub(values.len() + 2)),
        _ => None,
    };
    Sent { number: row, row_key, values }
}

/// A row's values: without brackets and row key. Keys have nothing in them that JSON escapes.
pub(super) fn values_of<'a>(plan: &Plan, bytes: &'a [u8], marks: &Marks, row: usize) -> &'a [u8] {
    let row = row_of(bytes, marks, row);
    let inner = row.get(1..row.len().saturating_sub(1)).unwrap_or_default();
    match plan.key {
        Key::Row(_) => memchr::memmem::find(inner, b"\",").map_or(inner, |at| &inner[at + 2..]),
        _ => inner,
    }
}

impl UnitWriter for CrateWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        let plan = Arc::clone(&self.plan);
        let unit = plan.checkpoints.unit(&mut self.client, &plan.load_id, key, control)?;
        Ok(unit.map(|record| record.tally))
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        self.rejects.clear();
        let first = self.plan.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(unit.key);
        self.sent_before = self.plan.resumed || !first;
        self.lost = Tally::empty(self.plan.plan.columns.len());
        self.there_before = Tally::empty(self.plan.plan.columns.len());
        let tally = loop {
            let parcel = {
                let _empty = wait(WaitKind::ChannelEmpty);
                parcels.blocking_recv()
            };
            match parcel {
                Some(Parcel::Rows(block)) => self.block(unit, &block, control)?,
                Some(Parcel::End(tally)) => break tally,
                Some(Parcel::Failed(error)) => return Err(error),
                Some(Parcel::Unit(_)) => {
                    return Err(Error::new(Kind::Source, "a unit began before the last one ended"));
                }
                None => return Ok(None),
            }
        };
        let tally = tally.minus(&self.lost);
        let rejected = self.rejects.len() as u64;
        if tally.rows + rejected != unit.rows {
            return Err(Error::new(
                Kind::Mismatch,
                format!(
                    "a unit of {} rows was read as {} and {rejected} refused ones",
                    unit.rows, tally.rows
                ),
            ));
        }
        self.flush_rejects()?;
        let plan = Arc::clone(&self.plan);
        let refused = (rejected > 0).then(|| self.lost.clone());
        let there_before = (self.there_before.rows > 0).then(|| self.there_before.clone());
        let record = UnitRecord { tally, rejected, refused, there_before };
        plan.checkpoints.commit(&mut self.client, &plan.load_id, unit, &record, control)?;
        plan.before.add(&self.there_before);
        plan.rejected.fetch_add(rejected, Relaxed);
        plan.retried.fetch_add(std::mem::take(&mut self.client.retries), Relaxed);
        self.rejects.clear();
        Ok(Some(vec![Arrived { unit: *unit, tally: record.tally }]))
    }
}
