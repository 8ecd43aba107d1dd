//! The server's results, row by row: inserted, refused, or already in the table.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_source::{Control, Result};

use super::CrateWriter;
use super::batch::Batch;
use crate::connect::client::is_passing_code;
use crate::encode::canonical;
use crate::table::columns::Key;
use crate::verify::compare::{Compared, Comparison, Sent};
use crate::write::bulk::RowResult;

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
