//! Sends a batch until each of its rows is in or refused.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::Marks;
use sawmill_source::{Control, Error, Kind, Result};

use super::batch::Batch;
use super::{CrateWriter, END};
use crate::connect::client::{Attempt, ServerError, is_passing_code};
use crate::connect::http::TransportError;
use crate::connect::pg;
use crate::connect::pg::PgInsert;
use crate::connect::waiting::Waiting;
use crate::encode::canonical;
use crate::table::columns::Key;
use crate::tags::Tags;
use crate::verify::compare::{Compared, Comparison, Sent};
use crate::write::bulk;
use crate::write::bulk::RowResult;

impl CrateWriter {
    /// Sends a batch, by column where that is asked for.
    pub(super) fn send_batch(&mut self, batch: &Batch, control: &Control<'_>) -> Result<()> {
        self.plan.lease.check()?;
        let marks = &batch.marks;
        if marks.rows.is_empty() {
            return Ok(());
        }
        let mut repeat = batch.units().any(|unit| self.account_of(unit).sent_before);
        let mut there_before = None;
        if !marks.columns.is_empty() && self.pg_failures < 3 {
            let tag = self.plan.tags.as_ref().map(Tags::next);
            match self.send_columns(marks, tag, repeat, control)? {
                Ok(inserted) if inserted == marks.rows.len() as u64 => {
                    self.came(batch, tag, 0..marks.rows.len());
                    self.plan.carried.by_pg(marks.rows.len());
                    return Ok(());
                }
                // What went in is removed in the end.
                Ok(inserted) if self.plan.tags.is_some() => {
                    self.plan
                        .carried
                        .turn(&format!("{inserted} of {} rows of a batch went in", marks.rows.len()));
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
        let rejected = self.rejecting;
        self.numbered = there_before.is_some();
        self.send(batch, 0..marks.rows.len(), repeat, control)?;
        if let Some(rows) = there_before {
            self.plan.before.add_unnamed(rows.saturating_sub(self.rejecting - rejected));
        }
        self.numbered = false;
        self.plan.carried.by_http(marks.rows.len());
        Ok(())
    }

    /// Sends a block by column, and returns how many of its rows went in; the inner error is why that is not
    /// known.
    fn send_columns(
        &mut self,
        marks: &Marks,
        tag: Option<i64>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<std::result::Result<u64, String>> {
        let plan = Arc::clone(&self.plan);
        let Some((statements, types)) = &plan.unnest else {
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
            self.pg_comment = plan.tags.as_ref().map(Tags::next_comment).unwrap_or_default();
            let statements =
                statements.each_ref().map(|statement| format!("{statement} {}", self.pg_comment));
            match PgInsert::open(&server, statements.each_ref().map(|text| text.trim_end()), types, control) {
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
        let inserted = connection.insert(&marks.columns, tag, repeat, control);
        let what = match inserted {
            Ok(rows) if rows == marks.rows.len() as u64 => {
                self.pg_failures = 0;
                return Ok(Ok(rows));
            }
            Ok(rows) if self.plan.plan.key != Key::None => {
                plan.tags.iter().for_each(Tags::doubt);
                return Ok(Ok(rows));
            }
            Ok(rows) => format!("{rows} of {} rows of a batch went in", marks.rows.len()),
            Err(error) if error.kind() == Kind::Cancelled => return Err(error),
            Err(error) => {
                if error.kind() == Kind::Connection {
                    self.plan.cluster.connection_lost();
                    self.pg = None;
                    self.pg_failures += 1;
                    self.first_node += 1;
                    if let Some(tag) = tag {
                        let comment = self.pg_comment.clone();
                        let is_meant = |statement: &str| statement.ends_with(&comment);
                        if self.landed(tag, marks.rows.len(), &is_meant, control)? {
                            return Ok(Ok(marks.rows.len() as u64));
                        }
                    }
                }
                plan.tags.iter().for_each(Tags::doubt);
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
            format!("{what}; without a key it is unknown which rows of the batch are in the table"),
        )
        .at(format!("table {}, {}", self.plan.table, self.client.place()))
        .advise("load with --row-key, or with --transport http, which reports errors row by row")
    }

    /// Sends rows of a block until all are in or refused.
    fn send(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        mut repeat: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let body = batch.range(rows.clone());
        let mut waiting = Waiting::new(self.plan.retries);
        loop {
            let plan = Arc::clone(&self.plan);
            let head = if repeat || plan.plan.key != Key::None { &plan.repeat } else { &plan.first };
            let tag = plan.tags.as_ref().map(Tags::next);
            let digits = tag.map(|tag| tag.to_string()).unwrap_or_default();
            let request = [&head.before, digits.as_bytes(), &head.after, body, END];
            let mut results = Ok(Vec::new());
            let mut read = |body: &[u8]| results = bulk::parse(body, rows.len());
            let error = match self.client.attempt(&request, &mut read, control) {
                Attempt::Done => {
                    let results =
                        results.map_err(|what| Error::new(Kind::Server, what).at(self.client.place()))?;
                    match passing(&results) {
                        // With a key or tags all of them may go again at once.
                        Some((code, reason)) if !matches!(plan.plan.key, Key::None) => {
                            repeat = true;
                            plan.tags.iter().for_each(Tags::doubt);
                            self.passing(code, reason)
                        }
                        _ => return self.account(batch, rows, (repeat, tag), results, control),
                    }
                }
                Attempt::ServerError(refusal) if plan.cluster.passes(&refusal) => {
                    // A server that gave up may have begun.
                    if matches!(refusal.status, 500 | 502 | 504) || refusal.code == 4040 {
                        self.may_repeat(&refusal.message)?;
                        repeat = true;
                    }
                    self.client.explain(&refusal)
                }
                Attempt::ServerError(refusal) if matches!(refusal.status, 400 | 409 | 413 | 500) => {
                    if refusal.status == 500 {
                        self.may_repeat(&refusal.message)?;
                        repeat = true;
                    }
                    return self.halve(batch, rows, repeat, &refusal, control);
                }
                Attempt::ServerError(refusal) => return Err(self.client.explain(&refusal)),
                Attempt::TransportError(broken) => {
                    if let TransportError::Unknown(what) = &broken {
                        self.may_repeat(what)?;
                        repeat = true;
                        let mark = format!(",{digits})");
                        let is_meant = |statement: &str| statement.ends_with(&mark);
                        if let Some(tag) = tag
                            && self.landed(tag, rows.len(), &is_meant, control)?
                        {
                            self.came(batch, Some(tag), rows);
                            plan.retried.fetch_add(1, Relaxed);
                            return Ok(());
                        }
                    }
                    self.client.lost(broken)?
                }
            };
            waiting.pause(error, &plan.cluster, control)?;
            plan.retried.fetch_add(1, Relaxed);
        }
    }

    /// Without a key or tags a batch that may be in must not be sent again.
    fn may_repeat(&self, what: &str) -> Result<()> {
        self.plan.tags.iter().for_each(Tags::doubt);
        match self.plan.plan.key {
            Key::None => Err(Error::new(
                Kind::Server,
                format!("it is unknown whether the rows of a batch are in the table: {what}"),
            )
            .at(format!("table {}, {}", self.plan.table, self.client.place()))
            .advise("rows have no key: the same command again sends the rows of unfinished units once more, and some may then be there twice")),
            _ => Ok(()),
        }
    }

    fn halve(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        repeat: bool,
        refusal: &ServerError,
        control: &Control<'_>,
    ) -> Result<()> {
        if rows.len() == 1 {
            let mark = rows.start;
            return self.refuse(batch, mark, (refusal.code > 0).then_some(refusal.code), &refusal.message);
        }
        let middle = rows.start + rows.len() / 2;
        self.send(batch, rows.start..middle, repeat, control)?;
        self.send(batch, middle..rows.end, repeat, control)
    }

    fn account(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        (repeat, tag): (bool, Option<i64>),
        results: Vec<RowResult>,
        control: &Control<'_>,
    ) -> Result<()> {
        let alone = rows.len() == 1;
        let first = rows.start;
        let mut present = Vec::new();
        let inserted = |(_, result): &(usize, &RowResult)| **result == RowResult::Inserted;
        self.came(batch, tag, (first..).zip(&results).filter(inserted).map(|(row, _)| row));
        for (i, result) in results.into_iter().enumerate() {
            let row = first + i;
            match result {
                RowResult::Inserted => {}
                RowResult::Present => present.push(row),
                RowResult::Refused(code, reason) if is_passing_code(code) => {
                    self.once_more(batch, row, repeat, (code, &reason), control)?;
                }
                RowResult::Refused(code, reason) => self.refuse(batch, row, Some(code), &reason)?,
                RowResult::Unexplained if alone => {
                    self.refuse(batch, row, None, "the server states no reason")?;
                }
                RowResult::Unexplained => self.send(batch, row..row + 1, repeat, control)?,
            }
        }
        if present.is_empty() {
            return Ok(());
        }
        self.present(batch, present, repeat, control)
    }

    /// Rows whose key the table has already: of an earlier try, of another load, or of another row of this
    /// one.
    fn present(
        &mut self,
        batch: &Batch,
        present: Vec<usize>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        // Among the rows of a load only those of its own primary key may have the same one.
        let gathers_own = plan.gathers && matches!(plan.plan.key, Key::Own(_));
        let Compared { mut different, again } = match &plan.plan.key {
            Key::Tags(_) | Key::None => return Ok(()),
            // Only this load writes to its staging table, and this run has sent this very row.
            Key::Row(_) if plan.gathers && repeat && !plan.resumed => return Ok(()),
            // A table that began empty has a row of the same key only from another row of this load.
            _ if plan.gathers && !repeat => {
                Compared { different: present.iter().copied().collect(), ..Compared::default() }
            }
            _ => {
                let sent: Vec<Sent<'_>> =
                    present.iter().map(|row| batch.sent_row(&plan.plan, *row)).collect();
                let comparison = Comparison { table: &plan.table, plan: &plan.plan, retries: plan.retries };
                comparison.run(&mut self.client, &sent, control)?
            }
        };
        if gathers_own {
            different.extend(again);
            different.extend(present.iter().filter(|row| plan.is_one_too_many(&batch.place_of(**row))));
        }
        for row in present {
            if different.contains(&row) {
                let reason = match &plan.plan.key {
                    Key::Own(names) => format!(
                        "another row with this primary key is in the table: {}",
                        batch.key_of(&plan.plan, names, row)
                    ),
                    _ => "a row with this row key and other values is in the table: the file held something else when it was loaded"
                        .to_owned(),
                };
                self.refuse(batch, row, Some(4091), &reason)?;
            } else if gathers_own {
                plan.taken_as_sent.store(true, Relaxed);
            } else if !plan.gathers && !repeat {
                let there = canonical::sent_row(batch.values(&plan.plan, row), plan.plan.columns.len());
                self.account_of(batch.unit_of(row)).there_before.add(&there);
            } else if !plan.gathers && !self.numbered {
                plan.before.lose_count();
            }
        }
        Ok(())
    }

    /// A row that was refused for a reason that passes.
    fn once_more(
        &mut self,
        batch: &Batch,
        row: usize,
        repeat: bool,
        refusal: (u32, &str),
        control: &Control<'_>,
    ) -> Result<()> {
        let body = batch.row(row);
        let repeat = repeat || !matches!(self.plan.plan.key, Key::None);
        let mut waiting = Waiting::new(self.plan.retries);
        loop {
            let error = self.passing(refusal.0, refusal.1);
            waiting.pause(error, &Arc::clone(&self.plan.cluster), control)?;
            self.plan.retried.fetch_add(1, Relaxed);
            let plan = Arc::clone(&self.plan);
            let head = if repeat { &plan.repeat } else { &plan.first };
            let mut results = Ok(Vec::new());
            let mut read = |body: &[u8]| results = bulk::parse(body, 1);
            match self.client.attempt(&[&head.before, body, END], &mut read, control) {
                Attempt::Done => {
                    let mut results =
                        results.map_err(|what| Error::new(Kind::Server, what).at(self.client.place()))?;
                    match results.pop() {
                        Some(RowResult::Refused(code, _)) if is_passing_code(code) => {}
                        Some(result) => {
                            return self.account(batch, row..row + 1, (repeat, None), vec![result], control);
                        }
                        None => {}
                    }
                }
                Attempt::TransportError(TransportError::Cancelled(error)) => return Err(error),
                Attempt::TransportError(TransportError::Unknown(what)) => self.may_repeat(&what)?,
                Attempt::ServerError(refusal) if !plan.cluster.passes(&refusal) => {
                    return Err(self.client.explain(&refusal));
                }
                Attempt::TransportError(TransportError::NotSent(_)) | Attempt::ServerError(_) => {}
            }
        }
    }

    /// A row's refusal that passes, as an error.
    fn passing(&self, code: u32, reason: &str) -> Error {
        Error::new(Kind::Server, format!("the server says: {reason} [{code}]"))
            .at(self.client.place())
            .advise("wait until the cluster has recovered and run the same command again")
    }
}

/// The first refusal that passes.
fn passing(results: &[RowResult]) -> Option<(u32, &str)> {
    results.iter().find_map(|result| match result {
        RowResult::Refused(code, reason) if is_passing_code(*code) => Some((*code, reason.as_str())),
        _ => None,
    })
}
