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
use crate::connect::pg::PgInsert;
use crate::connect::sql::Waiting;
use crate::table::columns::Key;
use crate::tags::Tags;
use crate::write::bulk::{self, RowResult};

impl CrateWriter {
    /// Sends a batch, by column if the PostgreSQL wire is used.
    pub(super) fn send_batch(&mut self, batch: &Batch, control: &Control<'_>) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        plan.check_lease(&mut self.client.on(control))?;
        let marks = &batch.marks;
        if marks.rows.is_empty() {
            return Ok(());
        }
        let mut repeat = batch.units().any(|unit| self.account_of(unit).sent_before);
        let mut there_before = None;
        if marks.columns.is_empty() && self.plan.unnest.is_some() {
            self.plan.carried.turn("a value is out of the range of the PostgreSQL wire");
        }
        if !marks.columns.is_empty() && self.pg_failures < 3 {
            let tag = self.plan.tags.as_ref().map(Tags::next);
            match self.send_columns(marks, tag, repeat, control)? {
                Ok(inserted) if inserted == marks.rows.len() as u64 => {
                    self.came(batch, tag, 0..marks.rows.len());
                    for (unit, rows) in batch.rows_of_units() {
                        self.account_of(unit).carried.pg += rows;
                    }
                    return Ok(());
                }
                // The final audit removes the inserted rows.
                Ok(inserted) if self.plan.tags.is_some() => {
                    self.plan
                        .carried
                        .turn(&format!("{inserted} of {} rows of a batch went in", marks.rows.len()));
                }
                // The others were there before. If no row was inserted, this still counts as their first try.
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
            let unnamed = rows.saturating_sub(self.rejecting - rejected);
            self.plan.before.unnamed.fetch_add(unnamed, Relaxed);
        }
        self.numbered = false;
        for (unit, rows) in batch.rows_of_units() {
            self.account_of(unit).carried.http += rows;
        }
        Ok(())
    }

    /// Sends rows of a block until all are in or refused.
    pub(super) fn send(
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
        let mut waiting = Waiting::new(self.plan.cluster.retries);
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
                    let results = results.map_err(|what| {
                        self.doubt(rows.len());
                        Error::new(Kind::Server, what).at(self.client.place())
                    })?;
                    match passing(&results) {
                        // With a key or tags, all rows may be sent again at once.
                        Some((code, reason)) if plan.plan.key != Key::None => {
                            repeat = true;
                            plan.tags.iter().for_each(Tags::doubt);
                            self.doubt(rows.len());
                            self.passing(code, reason)
                        }
                        Some((code, reason)) if rows.len() == 1 => self.passing(code, reason),
                        _ => return self.account(batch, rows, (repeat, tag), results, control),
                    }
                }
                Attempt::ServerError(refusal) if plan.cluster.passes(&refusal) => {
                    // A server that gave up may have begun.
                    if matches!(refusal.status, 500 | 502 | 504) || refusal.code == 4040 {
                        self.may_repeat(&refusal.message, rows.len())?;
                        repeat = true;
                    }
                    self.client.explain(&refusal)
                }
                Attempt::ServerError(refusal) if matches!(refusal.status, 400 | 409 | 413 | 500) => {
                    if refusal.status == 500 {
                        self.may_repeat(&refusal.message, rows.len())?;
                        repeat = true;
                    }
                    return self.halve(batch, rows, repeat, &refusal, control);
                }
                Attempt::ServerError(refusal) => return Err(self.client.explain(&refusal)),
                Attempt::TransportError(broken) => {
                    if let TransportError::Unknown(what) = &broken {
                        self.may_repeat(what, rows.len())?;
                        repeat = true;
                        if self.came_unanswered(batch, &rows, tag, control)? {
                            return Ok(());
                        }
                    }
                    self.client.lost(broken)?
                }
            };
            waiting.pause(error, &plan.cluster, control)?;
            // Another run may have taken the load for broken off while this one waited.
            plan.check_lease(&mut self.client.on(control))?;
            plan.retried.fetch_add(1, Relaxed);
        }
    }

    /// Whether all rows of an unanswered request are in; `false` without tags, which cannot tell.
    fn came_unanswered(
        &mut self,
        batch: &Batch,
        rows: &Range<usize>,
        tag: Option<i64>,
        control: &Control<'_>,
    ) -> Result<bool> {
        let Some(tag) = tag else { return Ok(false) };
        let mark = format!(",{tag})");
        let came = self.landed(tag, rows.len(), &|statement: &str| statement.ends_with(&mark), control)?;
        if came {
            self.came(batch, Some(tag), rows.clone());
            self.plan.retried.fetch_add(1, Relaxed);
        }
        Ok(came)
    }

    /// Notes that this many rows may be in the table, though the server has counted none.
    fn doubt(&self, rows: usize) {
        match self.plan.plan.key {
            Key::None => drop(self.plan.unanswered.fetch_add(rows as u64, Relaxed)),
            _ => self.plan.in_doubt.store(true, Relaxed),
        }
    }

    /// Without a key or tags a batch that may be in must not be sent again.
    fn may_repeat(&self, what: &str, rows: usize) -> Result<()> {
        self.plan.tags.iter().for_each(Tags::doubt);
        self.doubt(rows);
        if self.plan.plan.key != Key::None {
            return Ok(());
        }
        let what = format!("it is unknown whether the rows of a batch are in the table: {what}");
        let error =
            Error::new(Kind::Server, what).at(format!("table {}, {}", self.plan.table, self.client.place()));
        // A statement reports its leftovers at its end.
        Err(match self.plan.of_statement {
            true => error,
            false => error.advise("rows have no key: the same command again sends the rows of unfinished units once more, and some may then be there twice"),
        })
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

impl CrateWriter {
    /// Sends a block by column, and returns how many of its rows were inserted. The inner error says why that is
    /// not known.
    pub(super) fn send_columns(
        &mut self,
        marks: &Marks,
        tag: Option<i64>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<std::result::Result<u64, String>> {
        let all = marks.rows.len() as u64;
        if let Err(reason) = self.connect_wire(control)? {
            return Ok(Err(reason));
        }
        let Some(connection) = &self.pg else { return Ok(Err("the load has no PostgreSQL wire".to_owned())) };
        let what = match connection.insert(&marks.columns, tag, repeat, control) {
            Ok(rows) if rows == all => {
                self.pg_failures = 0;
                return Ok(Ok(rows));
            }
            Ok(rows) if self.plan.plan.key != Key::None => {
                self.plan.tags.iter().for_each(Tags::doubt);
                return Ok(Ok(rows));
            }
            Ok(rows) => format!("{rows} of {all} rows of a batch went in"),
            Err(error) if error.kind() == Kind::Cancelled => return Err(error),
            Err(error) => {
                if error.kind() == Kind::Connection && self.landed_by_wire(tag, marks.rows.len(), control)? {
                    return Ok(Ok(all));
                }
                self.plan.tags.iter().for_each(Tags::doubt);
                error.what()
            }
        };
        match self.plan.plan.key {
            Key::None => Err(self.keyless(&what)),
            _ => Ok(Err(what)),
        }
    }

    /// Makes sure that a connection of the PostgreSQL wire is open; the inner error says why there is none. Nothing
    /// was sent then, so even rows without a key may be sent another way.
    fn connect_wire(&mut self, control: &Control<'_>) -> Result<std::result::Result<(), String>> {
        let plan = Arc::clone(&self.plan);
        let Some((statements, types)) = &plan.unnest else {
            return Ok(Err("the PostgreSQL wire is not used".to_owned()));
        };
        // Without a key it matters whether a batch was sent at all.
        if plan.plan.key == Key::None && self.pg.as_ref().is_some_and(|pg| pg.is_closed(control)) {
            plan.cluster.connection_lost();
            self.pg = None;
        }
        if self.pg.is_some() {
            return Ok(Ok(()));
        }
        self.pg_comment = plan.tags.as_ref().map(Tags::next_comment).unwrap_or_default();
        let statements = statements.each_ref().map(|statement| format!("{statement} {}", self.pg_comment));
        let statements = statements.each_ref().map(|text| text.trim_end());
        match PgInsert::open(&plan.cluster, self.first_node, statements, types, control) {
            Ok(connection) => {
                self.pg = Some(connection);
                Ok(Ok(()))
            }
            Err(error) if error.kind() == Kind::Cancelled => Err(error),
            Err(error) => {
                self.wire_lost();
                Ok(Err(format!("the PostgreSQL wire cannot be used: {}", error.what())))
            }
        }
    }

    /// Drops the connection; the next one goes to another node.
    fn wire_lost(&mut self) {
        self.pg = None;
        self.pg_failures += 1;
        self.first_node += 1;
        self.plan.cluster.connection_lost();
    }

    /// Whether all rows of a block are in whose connection was lost. Without tags it is not known.
    fn landed_by_wire(&mut self, tag: Option<i64>, rows: usize, control: &Control<'_>) -> Result<bool> {
        self.wire_lost();
        let Some(tag) = tag else { return Ok(false) };
        let comment = self.pg_comment.clone();
        self.landed(tag, rows, &|statement: &str| statement.ends_with(&comment), control)
    }

    fn keyless(&self, what: &str) -> Error {
        Error::new(
            Kind::Value,
            format!("{what}; without a key it is unknown which rows of the batch are in the table"),
        )
        .at(format!("table {}, {}", self.plan.table, self.client.place()))
        .advise("load with --row-key, or with --transport http, which reports errors row by row")
    }
}
