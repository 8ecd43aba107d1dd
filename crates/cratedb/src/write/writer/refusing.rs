//! Rejected rows.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Result, Unit};
use serde_json::value::RawValue;

use super::CrateWriter;
use super::batch::Batch;
use crate::connect::client::{MORE_COLUMNS, is_about_columns};
use crate::encode::canonical;
use crate::write::rejects::Reject;

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
