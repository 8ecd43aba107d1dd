//! The comparison of what the table holds with what was sent.

use sawmill_loader::{Tally, Verification, retry_lost};
use sawmill_source::{Control, Error, Kind, Result};

use super::PostgresSession;
use crate::verify::locate::Locating;
use crate::verify::read_back::ReadBack;
use crate::verify::source_sums::SourceSums;

impl PostgresSession<'_> {
    /// Reads the table back and compares it with what was loaded.
    pub(super) fn compare(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        self.assemble(control)?;
        let read = ReadBack {
            server: &self.server,
            table: &self.written,
            columns: &self.columns,
            degree: self.options.degree,
            each_column: false,
            by_value: false,
        };
        let retries = self.options.retries;
        let mut target = retry_lost(retries, control, || read.run(control))?.whole;
        // Later loads may have added rows.
        let since = match self.written == self.table {
            true => self.with_connection(control, |connection| {
                self.plan.checkpoints.since(connection, &self.record, control)
            })?,
            false => None,
        };
        let since = since.unwrap_or_default();
        target = target.minus(&since);
        match (&self.record.before, self.postgres.mode.gathers()) {
            (Some(before), _) => target = target.minus(before),
            (None, true) => {}
            (None, false) => {
                return Err(Error::new(
                    Kind::Mismatch,
                    "cannot be verified: the rows that the table held before the load were not summed",
                )
                .at(format!("table {}", self.table))
                .advise("use --verify from the first run of an append on"));
            }
        }
        let columns = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut verification = Verification {
            columns,
            source: expected.clone(),
            target,
            put_aside: 0,
            not_compared: Vec::new(),
            differing: Vec::new(),
            located: None,
        };
        if verification.matches() {
            return Ok(verification);
        }
        let refused = self.with_connection(control, |connection| self.refused(connection, control))?;
        let before = since.rows + self.record.before.as_ref().map_or(0, |before| before.rows);
        if self.options.locate {
            let locating = Locating {
                source: self.source,
                server: &self.server,
                table: &self.written,
                columns: &self.columns,
                options: self.options,
                unit_rows: self.record.unit_rows,
                put_aside: None,
                refused: refused.as_ref(),
                records: self.postgres.several.as_ref().map(|several| &several.records),
            };
            let mut located = locating.run(verification.target.rows + before, control)?;
            located.rows_of_none = located.rows_of_none.saturating_sub(before);
            verification.located = Some(located);
        }
        // If the table holds other rows as well, the columns' own sums cannot be separated.
        if before == 0 {
            let (source, _) = SourceSums {
                source: self.source,
                columns: &self.columns,
                options: self.options,
                unit_rows: self.record.unit_rows,
                each_column: true,
                by_value: false,
                leave_out: refused.is_some(),
                refused: refused.as_ref(),
            }
            .run(control)?;
            let read = ReadBack { each_column: true, ..read };
            let target = retry_lost(retries, control, || read.run(control))?;
            verification.differing = source.differing(&target, &self.columns);
        }
        verification.into_result(&format!("table {}, {}", self.table, self.postgres.server))
    }
}
