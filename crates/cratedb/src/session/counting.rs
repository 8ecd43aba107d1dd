//! Whether the table has as many rows as were acknowledged.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use sawmill_loader::{LoadState, Mode, Reread, Session, Tally};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Control, Error, Kind, Result, UnitKey};

use super::{CrateSession, FORGET};
use crate::connect::client::Client;
use crate::connect::sql::Sql;
use crate::encode::encoder::EncodePlan;
use crate::session::prepare::not_summed_up;
use crate::table::columns::Key;
use crate::verify::rows::{Comparison, Sent};
use crate::verify::source::{Equal, Place, equal_rows, reread, rows_of};
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

    /// Rows of this run that were in the table when they were sent first, before the load.
    pub(super) fn found_before(&self) -> u64 {
        self.writers.before.rows().saturating_sub(self.since.load(Relaxed))
    }

    /// Rows of this run that the table did not gain in any run of the load. Of a row that was there when it was sent
    /// again only the table's count tells whether an earlier run brought it, whose rows the run loads that records them.
    pub(super) fn not_gained(&self) -> u64 {
        let in_doubt = self.state == LoadState::Resumed || !self.writers.before.is_counted();
        let appends = !self.writers.gathers && self.encode.plan.key != Key::None;
        let Some(rows) = self.counted().filter(|_| appends && in_doubt && self.state != LoadState::Complete)
        else {
            return 0;
        };
        let earlier: u64 = self.earlier.done.values().map(|tally| tally.rows).sum();
        let sent = self.loaded.load(Relaxed).saturating_sub(earlier);
        let of_earlier = earlier.saturating_sub(self.earlier.there_before.rows);
        let gained = rows.saturating_sub(self.record.rows_before());
        sent.saturating_sub(gained.saturating_sub(of_earlier))
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

impl CrateSession<'_> {
    /// The units of equal rows if more than one of the rows counted as sent. Deletes their records; the writers
    /// then reject all but one of the rows.
    pub(super) fn with_equal_rows(&self, total: &Tally, control: &Control<'_>) -> Result<Vec<UnitKey>> {
        let writers = &self.writers;
        let gathers = writers.gathers && self.written != self.table;
        let by_own_key = matches!(self.encode.plan.key, Key::Own(_));
        if !(gathers && by_own_key && writers.taken_as_sent.load(Relaxed)) {
            return Ok(Vec::new());
        }
        let mut client = Client::new(&self.cluster);
        let sql = &mut client.on(control);
        let rows = sql.count(&self.written)?;
        if rows >= total.rows {
            return Ok(Vec::new());
        }
        let (mut units, mut too_many) = (BTreeSet::new(), None);
        {
            let mut equal = writers.equal.lock().unwrap_or_else(PoisonError::into_inner);
            for Equal { rows, key, .. } in self.equal_rows(control)? {
                let places = || rows.iter().map(|(place, _)| *place);
                let kept = places().find(|place| !writers.is_rejected(place)).or(places().next());
                let Some(kept) = kept else { continue };
                let others = places().filter(|place| *place != kept);
                let unknown: Vec<Place> = others.filter(|place| !equal.contains(place)).collect();
                if let Some(first) = unknown.iter().find(|place| !writers.is_rejected(place)) {
                    too_many.get_or_insert((*first, kept, key));
                    equal.extend(unknown);
                    units.extend(rows.iter().map(|(_, unit)| *unit));
                }
            }
        }
        if writers.rejects.is_none() {
            return match too_many {
                None => Ok(Vec::new()),
                Some((place, kept, key)) => Err(self.equal_row(place, kept, &key, total.rows - rows)),
            };
        }
        self.forget_units(&units, sql)?;
        Ok(units.into_iter().collect())
    }

    /// How many rows of the source are equal to an earlier one.
    pub(super) fn equal_to_others(&self, control: &Control<'_>) -> Result<u64> {
        Ok(self.equal_rows(control)?.iter().map(|equal| equal.rows.len() as u64 - 1).sum())
    }

    fn equal_rows(&self, control: &Control<'_>) -> Result<Vec<Equal>> {
        let encode = Arc::new(EncodePlan { columns: false, ..EncodePlan::clone(&self.encode) });
        let Key::Own(names) = &self.encode.plan.key else { return Ok(Vec::new()) };
        let (source, options, unit_rows) = (self.source, self.options, self.record.load.unit_rows);
        equal_rows(source, &encode, (options, unit_rows), names, control)
    }

    /// The error of a row that is equal to one that is kept; `count` rows are like that.
    fn equal_row(&self, place: Place, kept: Place, key: &str, count: u64) -> Error {
        let shown = |(file, row_group, row): Place| {
            format!("{}, row group {row_group}, row {row}", self.source.name_of(file))
        };
        let more = match count {
            0 | 1 => String::new(),
            2 => "; 1 more row is equal to another one".to_owned(),
            count => format!("; {} more rows are equal to other ones", count - 1),
        };
        let what = format!(
            "another row with this primary key and the same values is in the table: {key}, of {}{more}",
            shown(kept)
        );
        Error::new(Kind::Value, what).at(shown(place)).advise(
            "all other rows are loaded: run the same command with --rejects FILE, which writes such rows to a file and \
             finishes the load",
        )
    }
}

impl CrateSession<'_> {
    /// What the table must have of these files' rows, `expected`, and the rows of others in it, which has `now`.
    pub(super) fn with_rows_of_others(
        &self,
        (expected, now): (&Tally, &Tally),
        control: &Control<'_>,
    ) -> Result<(Tally, Tally)> {
        let equal = self.equal_rows_in_table_once(control)?;
        let ours = expected.minus(&equal);
        let others = match &self.of_all_loads {
            Ok(Some(all)) => Some(all.minus(&ours)),
            _ => self.before_without_ours(&equal, (now.rows, expected.rows))?,
        };
        // Of rows that were there when a run sent them again, only the keys tell that the table has them.
        let by_key = matches!(self.encode.plan.key, Key::Own(_));
        if let Some(others) = others.filter(|others| !by_key || now.minus(others) == ours) {
            return Ok((ours, others));
        }
        self.compare_by_key(control)?;
        Ok((ours.clone(), now.minus(&ours)))
    }

    /// The sum of all rows that are equal to an earlier one of the files, and not in the table twice.
    fn equal_rows_in_table_once(&self, control: &Control<'_>) -> Result<Tally> {
        let mut sum = Tally::empty(self.encode.plan.columns.len());
        let found = self.writers.before.rows() + self.earlier.there_before.rows;
        let is_counted = self.writers.before.is_counted();
        if !matches!(self.encode.plan.key, Key::Own(_)) || found == 0 && is_counted || self.rejected() > 0 {
            return Ok(sum);
        }
        for equal in self.equal_rows(control)? {
            equal.rows.iter().skip(1).for_each(|_| sum.add(&equal.one));
        }
        self.equal.store(sum.rows, Relaxed);
        Ok(sum)
    }

    /// The table's content before this load, without the rows that this load has as well. The table has `now` rows,
    /// and the load has inserted or found `total`, among them `equal` ones. `None` if only the rows' keys tell.
    fn before_without_ours(&self, equal: &Tally, (now, total): (u64, u64)) -> Result<Option<Tally>> {
        let place = format!("table {}", self.table);
        let Some(before) = &self.record.load.before else { return Err(not_summed_up(&place)) };
        let found = self.writers.before.rows() + self.earlier.there_before.rows;
        match (self.came_since(now, before.rows, total), self.writers.before.tally()) {
            (0, Some(mut ours)) => {
                ours.add(&self.earlier.there_before);
                Ok(Some(before.minus(&ours.minus(equal))))
            }
            // All rows that were found appeared during the load.
            (since, _) if since == found => Ok(Some(before.clone())),
            _ if matches!(self.encode.plan.key, Key::Own(_)) => Ok(None),
            _ => Err(self
                .error(
                    Kind::Mismatch,
                    "cannot be verified: of some rows whose key was there it is not known whether they were there before",
                )
                .advise("compare the whole table with all that should be in it (sawmill verify)")),
        }
    }

    /// Looks for each row of the files in the table, by its key.
    ///
    /// # Errors
    /// A row whose key the table does not have, or has with other values.
    fn compare_by_key(&self, control: &Control<'_>) -> Result<()> {
        let encode = Arc::new(EncodePlan { columns: false, ..EncodePlan::clone(&self.encode) });
        let unit_rows = self.record.load.unit_rows;
        let look = |(client, different): &mut (Client, u64), found: Reread<'_>| {
            let Reread::Rows(block) = found else { return Ok(()) };
            let rows = rows_of(&encode, block).enumerate();
            let sent: Vec<Sent<'_>> =
                rows.map(|(number, (_, values))| Sent { number, row_key: None, values }).collect();
            let comparison = Comparison { table: &self.written, plan: &encode.plan };
            *different += comparison.run(&sent, &mut client.on(control))?.different.len() as u64;
            Ok(())
        };
        let start = || (Client::new(&self.cluster), 0);
        let threads = reread(self.source, &encode, self.options, unit_rows, control, start, look)?;
        match threads.iter().map(|(_, different)| different).sum() {
            0 => Ok(()),
            rows => Err(self.not_in_table(rows)),
        }
    }

    fn not_in_table(&self, rows: u64) -> Error {
        let what = format!(
            "the table lacks {} of the files, or has others under their keys",
            format_counted(rows, "row")
        );
        self.error(Kind::Mismatch, what).advise(FORGET)
    }
}
