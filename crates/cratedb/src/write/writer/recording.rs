//! Units whose rows are in: sent together where they are small, and recorded together.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::{Arrived, RecordedUnit, Tally};
use sawmill_source::{Control, Error, Kind, Result, Unit};

use super::CrateWriter;
use super::batch::Batch;
use crate::records::checkpoint::UnitRecord;
use crate::table::columns::Key;

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
