//! The server's results, row by row: inserted, refused, or already in the table.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::{Arrived, RecordedUnit, Tally};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Error, Kind, Result, Unit};
use serde_json::value::RawValue;

use super::CrateWriter;
use super::batch::Batch;
use crate::connect::client::{MORE_COLUMNS, is_about_columns, is_passing_code};
use crate::encode::canonical;
use crate::records::checkpoint::UnitRecord;
use crate::table::columns::Key;
use crate::tags::audit::Audit;
use crate::tags::{Tagged, jobs};
use crate::verify::rows::{Compared, Comparison, Sent};
use crate::write::bulk::RowResult;
use crate::write::rejects::Reject;

impl CrateWriter {
    pub(super) fn account(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        (repeat, tag): (bool, Option<i64>),
        results: Vec<RowResult>,
        control: &Control<'_>,
    ) -> Result<()> {
        let alone = rows.len() == 1;
        let first = rows.start;
        let (mut present, mut inserted) = (Vec::new(), Vec::new());
        for (row, result) in (first..).zip(&results) {
            match result {
                RowResult::Inserted => inserted.push(row),
                RowResult::Present => present.push(row),
                RowResult::Refused(..) | RowResult::Unexplained => {}
            }
        }
        self.came(batch, tag, inserted.iter().copied());
        self.plan.inserted.fetch_add(inserted.len() as u64, Relaxed);
        for (i, result) in results.into_iter().enumerate() {
            let row = first + i;
            match result {
                RowResult::Inserted | RowResult::Present => {}
                // Rows without a key are sent again one by one.
                RowResult::Refused(code, _) if is_passing_code(code) => {
                    self.plan.retried.fetch_add(1, Relaxed);
                    self.send(batch, row..row + 1, repeat, control)?;
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
        self.present(batch, (present, &inserted), repeat, control)
    }

    /// Rows whose key the table has already: of an earlier try, of another load, or of another row of this
    /// one. A first try tells nothing about it, because a proxy or the server itself may deliver a request twice.
    fn present(
        &mut self,
        batch: &Batch,
        (present, inserted): (Vec<usize>, &[usize]),
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        // Rows of one load can only share a key if it is their own primary key.
        let gathers_own = plan.gathers && matches!(plan.plan.key, Key::Own(_));
        let Compared { mut different, again } = match &plan.plan.key {
            Key::Tags(_) | Key::None => return Ok(()),
            // Only this load writes to its staging table, and this run has sent this very row.
            Key::Row(_) if plan.gathers && repeat && !plan.resumed => return Ok(()),
            _ => {
                let sent: Vec<Sent<'_>> =
                    present.iter().map(|row| batch.sent_row(&plan.plan, *row)).collect();
                let comparison = Comparison { table: &plan.table, plan: &plan.plan };
                comparison.run(&sent, &mut self.client.on(control))?
            }
        };
        if gathers_own {
            different.extend(again);
            // One answer does not count a row as inserted and as present.
            let inserted: HashSet<&[u8]> =
                inserted.iter().map(|row| batch.values(&plan.plan, *row)).collect();
            different.extend(present.iter().filter(|row| inserted.contains(batch.values(&plan.plan, **row))));
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
                plan.before.uncounted.store(true, Relaxed);
            }
        }
        Ok(())
    }
}

impl CrateWriter {
    /// Rejects a row that the server refuses permanently.
    pub(super) fn refuse(
        &mut self,
        batch: &Batch,
        row: usize,
        code: Option<u32>,
        reason: &str,
    ) -> Result<()> {
        let of_table = match reason {
            blocked if blocked.starts_with("ClusterBlockException") => Some(
                "a full disk blocks tables, and so does blocks.read_only_allow_delete: end the block and run the same command \
                 again to go on",
            ),
            // Its partition would exceed the limit.
            full if full.contains("maximum shards open") => Some(
                "drop tables, or allow more shards (cluster.max_shards_per_node), and run the same command again to go on; fewer \
                 partitions or --shards need fewer",
            ),
            _ => None,
        };
        if let Some(advice) = of_table {
            return Err(Error::new(Kind::Server, format!("the table takes no rows: {reason}"))
                .at(format!("table {}, {}", self.plan.table, self.client.place()))
                .advise(advice));
        }
        let plan = Arc::clone(&self.plan);
        let (unit, values) = (batch.unit_of(row), batch.values(&plan.plan, row));
        self.account_of(unit).lost.add(&canonical::sent_row(values, plan.plan.columns.len()));
        let text = format!("[{}]", String::from_utf8_lossy(values));
        let number = batch.marks.rows.get(row).map_or(0, |mark| mark.row);
        self.reject(unit, number, reason, code, RawValue::from_string(text).ok())
    }

    /// A row that does not go in: written to the file of rejected rows, or the end of the load.
    pub(super) fn reject(
        &mut self,
        unit: &Unit,
        row: u32,
        reason: &str,
        code: Option<u32>,
        values: Option<Box<RawValue>>,
    ) -> Result<()> {
        if self.plan.of_statement {
            return Err(self.refused_of_statement(unit, row, reason, code));
        }
        let file =
            self.plan.files.get(unit.key.file as usize).map(|file| file.name.clone()).unwrap_or_default();
        let (row_group, row) = (unit.key.row_group, unit.key.first_row + u64::from(row));
        let place = format!("{file}, row group {row_group}, row {row}");
        if self.plan.rejects.is_none() {
            let advice = "rows count from 0 in their row group; --rejects FILE writes rejected rows to a file and loads the others";
            return Err(refused(reason, code, advice).at(place));
        }
        let reject = Reject { file, row_group, row, reason: reason.to_owned(), code, values };
        self.account_of(unit).rejects.push(reject);
        self.rejecting += 1;
        let rejected = self.plan.rejected.load(Relaxed) + self.rejecting;
        if rejected > self.plan.max_rejects {
            self.accounts.values().try_for_each(|account| self.write_rejects(&account.rejects))?;
            return Err(Error::new(
                Kind::Value,
                format!("the server refused {}, the last one: {reason}", format_counted(rejected, "row")),
            )
            .at(place)
            .advise("see the file of rejected rows, or raise --max-rejects"));
        }
        Ok(())
    }

    /// The error for a row of a statement.
    fn refused_of_statement(&self, unit: &Unit, row: u32, reason: &str, code: Option<u32>) -> Error {
        let row = unit.key.first_row + u64::from(row) + 1;
        refused(reason, code, "correct the value or leave the row out in the SELECT").at(format!(
            "table {}, partition {} of the query, row {row}",
            self.plan.table.gathered_for(),
            unit.key.file
        ))
    }

    /// Writes rejected rows to their file.
    pub(super) fn write_rejects(&self, rows: &[Reject]) -> Result<()> {
        self.plan.rejects.as_ref().map_or(Ok(()), |rejects| rejects.write(rows))
    }
}

/// The error for a refused row, with this advice unless the reason has its own.
fn refused(reason: &str, code: Option<u32>, advice: &str) -> Error {
    let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
    let advice = if is_about_columns(reason) { MORE_COLUMNS } else { advice };
    Error::new(Kind::Value, format!("the server refused a row: {reason}{code}")).advise(advice)
}

/// Units that are recorded at once at most.
const MAX_UNITS: usize = 200;

impl CrateWriter {
    /// Holds a small unit back to send it with others; all its rows are in `batch`. Returns the units that were
    /// sent to make room.
    pub(super) fn wait_for_others(
        &mut self,
        (unit, tally): (&Unit, Tally),
        batch: Option<Batch>,
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        let mut arrived = Vec::new();
        if let Some(batch) = &batch {
            let rows = self.together.rows() + batch.rows();
            let size = self.together.size() + batch.size();
            if rows > self.plan.batch_rows || size > self.plan.batch_bytes {
                arrived = self.send_together(control)?;
            }
            self.together.append(batch);
        }
        self.waiting.push((*unit, tally));
        if self.waiting.len() >= MAX_UNITS {
            arrived.extend(self.send_together(control)?);
        }
        Ok(arrived)
    }

    /// Sends the units that wait, and records them.
    pub(super) fn send_together(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let (batch, waiting) = (self.together.take(), std::mem::take(&mut self.waiting));
        self.send_batch(&batch, control)?;
        self.record(waiting, control)
    }

    /// Records units together with earlier ones, once their rows add up to a whole unit. The last units of a source
    /// are small, and each record waits for the disk. Rows without a key do not wait, because a crash would
    /// duplicate them.
    pub(super) fn record_with_others(
        &mut self,
        unit: (Unit, Tally),
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        self.sent.push(unit);
        let rows: u64 = self.sent.iter().map(|(unit, _)| unit.rows).sum();
        let may_wait = self.plan.plan.key != Key::None && self.sent.len() < MAX_UNITS;
        if may_wait && rows < self.plan.unit_rows {
            return Ok(Vec::new());
        }
        let sent = std::mem::take(&mut self.sent);
        self.record(sent, control)
    }

    /// Records units whose rows are all in or refused.
    pub(crate) fn record(
        &mut self,
        units: Vec<(Unit, Tally)>,
        control: &Control<'_>,
    ) -> Result<Vec<Arrived>> {
        let (mut records, mut arrived) = (Vec::with_capacity(units.len()), Vec::with_capacity(units.len()));
        let mut rejects = Vec::new();
        for (unit, tally) in units {
            let account = self.accounts.remove(&unit.key).unwrap_or_default();
            let rejected = account.rejects.len() as u64;
            self.rejecting -= rejected;
            let tally = tally.minus(&account.lost);
            // A statement does not say beforehand how many rows it will send.
            if !self.plan.of_statement && tally.rows + rejected != unit.rows {
                return Err(Error::new(
                    Kind::Mismatch,
                    format!(
                        "of {} rows of a unit {} were read and {rejected} refused",
                        unit.rows, tally.rows
                    ),
                ));
            }
            rejects.extend(account.rejects);
            arrived.push(Arrived { unit, tally: tally.clone() });
            self.plan.carried.unit(unit.key, account.carried);
            records.push(UnitRecord {
                unit: unit.key,
                rows: RecordedUnit { tally, rejected, refused: (rejected > 0).then_some(account.lost) },
                there_before: (account.there_before.rows > 0).then_some(account.there_before),
                tags: account.tags,
            });
        }
        self.write_rejects(&rejects)?;
        let plan = Arc::clone(&self.plan);
        if !plan.of_statement {
            plan.checkpoints.on(&mut self.client.on(control)).commit(&plan.load_id, &records)?;
        }
        for record in &records {
            record.there_before.iter().for_each(|rows| plan.before.add(rows));
            if let Some(tags) = &plan.tags {
                tags.recorded().insert(record.unit, record.tags.clone());
            }
            plan.rejected.fetch_add(record.rows.rejected, Relaxed);
        }
        plan.retried.fetch_add(std::mem::take(&mut self.client.retried), Relaxed);
        Ok(arrived)
    }
}

impl CrateWriter {
    /// Records which units the rows of one request belong to. Does nothing without tags.
    pub(super) fn came(&mut self, batch: &Batch, tag: Option<i64>, rows: impl Iterator<Item = usize>) {
        let Some(tag) = tag else { return };
        if batch.units().nth(1).is_none() {
            let (unit, rows) = (*batch.unit_of(0), rows.count() as u64);
            if rows > 0 {
                self.account_of(&unit).tags.push(Tagged { tag, rows });
            }
            return;
        }
        let mut last = None;
        for row in rows {
            let unit = *batch.unit_of(row);
            let tags = &mut self.account_of(&unit).tags;
            match tags.last_mut().filter(|_| last == Some(unit.key)) {
                Some(tagged) => tagged.rows += 1,
                None => tags.push(Tagged { tag, rows: 1 }),
            }
            last = Some(unit.key);
        }
    }

    /// Whether all rows of a request are in whose answer was lost. Waits for a server that restarts, and ends
    /// the request if it still runs; `is_meant` tells its statement from others.
    pub(super) fn landed(
        &mut self,
        tag: i64,
        rows: usize,
        is_meant: &dyn Fn(&str) -> bool,
        control: &Control<'_>,
    ) -> Result<bool> {
        let plan = std::sync::Arc::clone(&self.plan);
        let Some(tags) = &plan.tags else { return Ok(false) };
        tags.doubt();
        let insert = format!("INSERT INTO {} ", plan.table.quoted());
        let is_ours = |statement: &str| statement.starts_with(&insert) && is_meant(statement);
        let sql = &mut self.client.on(control);
        jobs::end(sql, &is_ours, true)?;
        let audit = Audit { table: &plan.table, column: &tags.column };
        Ok(audit.rows_of(tag, sql)? == rows as u64)
    }
}
