//! Requests with tags: the rows that they inserted, and the outcome of a request whose answer was lost.

use sawmill_source::{Control, Result};

use super::CrateWriter;
use super::batch::Batch;
use crate::tags::audit::Audit;
use crate::tags::{Tagged, jobs};

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
