//! Whether the table has as many rows as were acknowledged.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::{LoadState, Mode, Session, Tally};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Control, Error, Kind, Result};

use super::{CrateSession, FORGET};
use crate::connect::sql::Sql;
use crate::table::columns::Key;
use crate::write::durable;

impl CrateSession<'_> {
    /// Counts the rows of the table that is written to, and makes sure that the acknowledged rows are there. `how`
    /// says how they are known. `may_lose_rows` says whether the table may, if that is known: only at the end.
    pub(super) fn count(
        &self,
        acknowledged: u64,
        (how, may_lose_rows): (&str, Option<bool>),
        sql: &mut Sql<'_>,
    ) -> Result<u64> {
        let written = &self.written;
        let rows = sql.count(written)?;
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        let least = self.least(rows, acknowledged, may_lose_rows.is_some(), sql.control)?;
        let own_rows = self.own_rows().filter(|_| rows >= least);
        if rows >= least && own_rows.is_none() {
            return Ok(rows);
        }
        let may_lose_rows = match may_lose_rows {
            Some(known) => known,
            None => durable::may_lose_rows(sql, written)?,
        };
        // Rows of others must not hide those that a crash took.
        let of_load = match own_rows {
            Some(_) if !may_lose_rows => return Ok(rows),
            own_rows => own_rows.map(|of_files| of_files.count(written, sql)).transpose()?,
        };
        if of_load.is_some_and(|own| own >= acknowledged) {
            return Ok(rows);
        }
        Err(self.rows_missing((acknowledged, how), (rows, of_load), may_lose_rows))
    }

    /// The fewest rows that the table can have if none is lost; it has `rows`.
    fn least(&self, rows: u64, acknowledged: u64, at_end: bool, control: &Control<'_>) -> Result<u64> {
        let before = self.record.rows_before();
        let there_before = &self.writers.before;
        let least = match self.encode.plan.key {
            Key::Tags(_) | Key::None => before + acknowledged,
            _ if self.state == LoadState::New && there_before.is_counted() => {
                (before + acknowledged).saturating_sub(there_before.rows())
            }
            // If a row's key was there, an earlier run may or may not have sent the row.
            Key::Row(_) | Key::Own(_) => before.max(acknowledged),
        };
        // Equal rows under one primary key are a single row of the table.
        match &self.encode.plan.key {
            Key::Own(_) if rows < least && !(at_end && self.writers.gathers) => {
                Ok(least - self.equal_to_others(control)?.min(least))
            }
            _ => Ok(least),
        }
    }

    /// The error for a table with fewer rows than were acknowledged. `how` says how the acknowledged rows are
    /// known. `of_load` counts this load's rows if only they were counted.
    fn rows_missing(
        &self,
        (acknowledged, how): (u64, &str),
        (rows, of_load): (u64, Option<u64>),
        may_lose_rows: bool,
    ) -> Error {
        let counted = |count| format_counted(count, "row");
        let mut what = match (of_load, self.record.rows_before()) {
            (Some(own), _) => {
                format!("{} {how}, the table has {} of them", counted(acknowledged), format_grouped(own))
            }
            (None, 0) => format!("{} {how}, the table has {}", counted(acknowledged), format_grouped(rows)),
            (None, before) => format!(
                "{} {how}, the table had {} before and has {}",
                counted(acknowledged),
                counted(before),
                format_grouped(rows)
            ),
        };
        if may_lose_rows {
            what += "; its translog.durability is ASYNC: a server that crashes loses rows that it had acknowledged";
        }
        let advice = match (self.crate_db.mode, &self.encode.plan.key) {
            (Mode::Append, Key::None) => {
                "rows have no key, so that this load's rows cannot be distinguished from others: bring the table back to what it held \
                 before, forget this load (sawmill load forget) and start it again"
            }
            (Mode::Append, _) => {
                "forget this load (sawmill load forget) and start it again: rows whose key is in the table are not added twice"
            }
            _ => FORGET,
        };
        self.error(Kind::Mismatch, what).advise(advice)
    }

    /// The same at the end, when nothing that was counted can be lost any more. A table that gathered has no
    /// other rows.
    pub(super) fn count_all(&self, total: &Tally, sql: &mut Sql<'_>) -> Result<u64> {
        let may_lose_rows = durable::may_lose_rows(sql, &self.written)?;
        if may_lose_rows {
            durable::make_durable(sql, &self.written)?;
        }
        let rows = self.count(total.rows, ("were acknowledged", Some(may_lose_rows)), sql)?;
        if !self.writers.gathers {
            self.since.store(
                self.came_since(rows, self.record.rows_before(), total.rows).min(self.writers.before.rows()),
                Relaxed,
            );
        }
        // Rows of batches that were repeated without a key may be in the table twice.
        let more = rows > total.rows && self.encode.plan.key != Key::None;
        if more && self.crate_db.mode != Mode::Append {
            self.compare(rows, total)?;
        }
        Ok(rows)
    }

    /// How many of the rows that were found when first sent appeared only during the load: their request arrived
    /// twice, or others wrote them. The table had `before` rows and has `now`; the load has inserted or found
    /// `total`.
    pub(super) fn came_since(&self, now: u64, before: u64, total: u64) -> u64 {
        let found = self.writers.before.rows() + self.earlier.there_before.rows;
        let explained = (before + total).saturating_sub(found);
        now.saturating_sub(explained).min(found)
    }

    /// The note on a load whose rows may be in the table twice.
    pub(super) fn sent_twice(&self, loaded: u64) -> Option<String> {
        let rows = self.counted()?;
        let shows = match self.state {
            LoadState::Resumed => true,
            // Even in a first run, a request may arrive twice. Rows of others in the table would hide that.
            LoadState::New => self.writers.gathers,
            LoadState::Complete => false,
        };
        let keyless = self.encode.plan.key == Key::None && shows;
        let more = rows.saturating_sub(self.record.rows_before() + loaded);
        (keyless && more > 0).then(|| {
            let other = match self.crate_db.mode {
                Mode::Append => " (of other loads, too)",
                _ => "",
            };
            format!(
                "rows have no key: {}; the table has {}, {} more than this load's source accounts for{other}",
                match self.state {
                    LoadState::Resumed => "batches of units that an earlier run had begun were sent twice",
                    _ => "requests arrived twice",
                },
                format_counted(rows, "row"),
                format_grouped(more)
            )
        })
    }
}
