//! The end of a load: rows counted by tag, the column dropped, the table in its place.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::{Mode, Tally};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Control, Error, Kind, Result, UnitKey};

use super::{CrateSession, FORGET};
use crate::connect::client::Client;
use crate::connect::sql::{Failed, Sql};
use crate::records::checkpoint::State;
use crate::session::prepare::{rename, unseal};
use crate::table::catalogue;
use crate::table::names::{CrateTable, quote};
use crate::tags::audit::{Audit, Audited};
use crate::tags::{Tags, jobs};
use crate::write::durable;

/// Audits in a row that find no fewer units to send again, after which a load ends.
const FRUITLESS: u32 = 10;

impl CrateSession<'_> {
    /// The units whose rows the table does not have as recorded; they are sent again. Removes all other rows.
    ///
    /// Seals the table first: a late request then finds no table of that name. In most versions renaming closes and
    /// opens the table's shards, which makes all rows visible; a `REFRESH` before would do the same work twice.
    pub(super) fn not_as_recorded(&self, tags: &Tags, control: &Control<'_>) -> Result<Vec<UnitKey>> {
        let mut client = Client::new(&self.cluster);
        let sql = &mut client.on(control);
        self.writers.confirm_lease(sql)?;
        let sealed = self.table.sealed();
        if !self.sealed.load(Relaxed) {
            self.seal(tags, &sealed, sql)?;
        }
        if self.crate_db.options.is_asynchronous() {
            durable::make_durable(sql, &sealed)?;
        }
        let audited = self.audit(tags, &sealed, sql)?;
        if !audited.lacking.is_empty() {
            self.forget_units(&audited.lacking, sql)?;
            unseal(&sealed, &self.written, sql)?;
            self.sealed.store(false, Relaxed);
            if tags.found_lacking(audited.lacking.len()) >= FRUITLESS {
                let what = "the table never has the rows that the server acknowledged: requests seem to arrive twice each time";
                return Err(self.error(Kind::Server, what).advise(
                    "load without the proxy before the server; or forget this load (sawmill load forget) and give rows a key \
                     (--row-key), by which a row that arrives twice is stored once",
                ));
            }
        }
        Ok(audited.lacking.into_iter().collect())
    }

    /// Shuts out late requests by renaming the table. Requests that the server planned earlier are killed or waited
    /// for, because not every version closes the shards with a rename (6.3.0 to 6.3.5, 6.4.0 and 6.5.0 do not).
    /// Even a load that got all of its answers checks, because a proxy may have delivered a request twice.
    fn seal(&self, tags: &Tags, sealed: &CrateTable, sql: &mut Sql<'_>) -> Result<()> {
        rename(&self.written, sealed, sql)?;
        self.sealed.store(true, Relaxed);
        jobs::end_inserts(sql, &self.written, tags.is_in_doubt())
    }

    /// The table that has the rows now.
    pub(super) fn gathered(&self) -> CrateTable {
        if self.sealed.load(Relaxed) { self.table.sealed() } else { self.written.clone() }
    }

    fn audit(&self, tags: &Tags, table: &CrateTable, sql: &mut Sql<'_>) -> Result<Audited> {
        let audited = Audit { table, column: &tags.column }.run(&mut tags.recorded(), sql)?;
        tags.audited(audited.tags);
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(audited.rows);
        Ok(audited)
    }

    /// Removes the records of units that are sent again.
    pub(super) fn forget_units(&self, units: &BTreeSet<UnitKey>, sql: &mut Sql<'_>) -> Result<()> {
        if units.is_empty() {
            return Ok(());
        }
        let (writers, id) = (&self.writers, &self.writers.load_id);
        let mut records = writers.checkpoints.on(sql);
        let recorded = records.units(id)?;
        for unit in units {
            records.delete_unit(id, *unit)?;
            writers.rejected.fetch_sub(recorded.get(unit).map_or(0, |unit| unit.rows.rejected), Relaxed);
        }
        Ok(())
    }

    /// Drops the tags of an audited table, and gives it its name.
    pub(super) fn finish_tagged(&self, tags: &Tags, total: &Tally, sql: &mut Sql<'_>) -> Result<()> {
        let (checkpoints, id) = (&self.writers.checkpoints, &self.writers.load_id);
        self.writers.confirm_lease(sql)?;
        let from = self.gathered();
        let rows = self.counted.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
        self.compare(rows, total)?;
        self.loaded.store(total.rows, Relaxed);
        let counted = (rows, Some(tags.last_audited()));
        checkpoints.on(sql).set_state(id, State::Placing, counted, (total, &self.facts()))?;
        drop_column(&from, &tags.column, sql)?;
        // Nothing can arrive any more, so this count is final.
        self.compare(sql.count(&from)?, total)?;
        self.place(&from, total, sql)?;
        let mut records = checkpoints.on(sql);
        records.delete_others(&self.table.to_string(), id)?;
        records.set_state(id, State::Complete, counted, (total, &self.facts()))
    }

    /// The table has exactly the rows that were acknowledged.
    pub(super) fn compare(&self, rows: u64, total: &Tally) -> Result<()> {
        if rows == total.rows {
            return Ok(());
        }
        let what = format!(
            "{} were acknowledged, the table has {}",
            format_counted(total.rows, "row"),
            format_grouped(rows)
        );
        Err(self.error(Kind::Mismatch, what).advise(FORGET))
    }
}

/// Drops the column of the tags. If the answer gets lost, the catalogue shows whether the column is gone.
fn drop_column(table: &CrateTable, column: &str, sql: &mut Sql<'_>) -> Result<()> {
    let statement = format!("ALTER TABLE {} DROP COLUMN {}", table.quoted(), quote(column));
    match sql.settled(&statement, &[]) {
        Ok(_) => Ok(()),
        Err(error) => match catalogue::has_column(sql, table, column) {
            Ok(false) => Ok(()),
            _ => Err(error.advise(
                "CrateDB drops columns since version 5.5: with an earlier one give rows a key (--row-key or --primary-key)",
            )),
        },
    }
}

/// What is known of the statement that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    No,
    Refused,
    /// Its answer was lost.
    Lost,
}

impl CrateSession<'_> {
    /// Gives the table, which has these rows, its name. Returns when no earlier try can rename a table later.
    pub(super) fn place(&self, from: &CrateTable, total: &Tally, sql: &mut Sql<'_>) -> Result<()> {
        let tries = sql.client.retried;
        self.give_name(from, total, sql)?;
        if sql.client.retried > tries { jobs::wait_for_names(sql, &self.table) } else { Ok(()) }
    }

    /// Gives the table its name. If the answer gets lost, the catalogue shows whether it was done.
    fn give_name(&self, from: &CrateTable, total: &Tally, sql: &mut Sql<'_>) -> Result<()> {
        let (mut waiting, mut refused, mut tried) = (sql.waiting(), 0, Tried::No);
        // The name of a new table is free, most often: the first try tells.
        let mut is_assumed = self.crate_db.mode == Mode::Create;
        loop {
            let was_assumed = std::mem::take(&mut is_assumed);
            let exist = match was_assumed {
                true => [true, false],
                false => catalogue::which_exist(sql, [from, &self.table])?,
            };
            let statement = match exist {
                // Nothing was there to be replaced.
                [false, true] if tried == Tried::Lost && self.crate_db.mode != Mode::Replace => return Ok(()),
                // A proxy may have sent it twice, or another program has taken the staging table away.
                [false, true] if tried != Tried::No && self.is_placed(total, sql)? => return Ok(()),
                [false, true] => return Err(self.refuse_gone(sql)?),
                // It was done, and a late request has made an empty table that gathers.
                [true, true] if tried != Tried::No && total.rows > 0 && sql.count(from)? == 0 => {
                    return sql.drop_table(from);
                }
                // A server that has not recovered knows no tables.
                [false, false] => {
                    let what = "neither the table nor the one that gathered its rows is there";
                    let error = self.error(Kind::Server, what).advise(FORGET);
                    sql.pause(&mut waiting, error)?;
                    continue;
                }
                [true, true] if self.crate_db.mode == Mode::Create => {
                    let what = "another table of this name was made while the load ran";
                    return Err(self.error(Kind::Exists, what).advise(
                        "all rows are in: drop or rename that table and run the same command again, or forget the load \
                         (sawmill load forget)",
                    ));
                }
                // One step: readers always see one of the two tables.
                [true, true] => format!(
                    "ALTER CLUSTER SWAP TABLE {} TO {} WITH (drop_source = true)",
                    from.quoted(),
                    self.table.quoted()
                ),
                [true, false] => {
                    format!("ALTER TABLE {} RENAME TO {}", from.quoted(), quote(&self.table.name))
                }
            };
            let (error, answer) = match sql.once(&statement, &[]) {
                Ok(_) => return Ok(()),
                Err(Failed::Refused(_)) if was_assumed => {
                    tried = Tried::Refused;
                    continue;
                }
                Err(Failed::Refused(error)) if refused >= self.options.retries => return Err(error),
                Err(Failed::Refused(_)) => {
                    (refused, tried) = (refused + 1, Tried::Refused);
                    sql.control.sleep(sawmill_loader::backoff(refused))?;
                    continue;
                }
                Err(Failed::Passing(error)) => (error, Tried::Refused),
                Err(Failed::Lost(broken)) => (sql.client.lost(broken)?, Tried::Lost),
            };
            tried = answer;
            sql.pause(&mut waiting, error)?;
            sql.client.retried += 1;
        }
    }

    /// Whether the table has these rows.
    pub(super) fn is_placed(&self, total: &Tally, sql: &mut Sql<'_>) -> Result<bool> {
        match self.read_back(&self.table).run(sql) {
            Err(error) if error.kind() == Kind::Connection => Err(error),
            found => Ok(found.is_ok_and(|found| found == *total)),
        }
    }

    /// The error for a table that is gone although nothing has renamed it. The next run begins again.
    pub(super) fn refuse_gone(&self, sql: &mut Sql<'_>) -> Result<Error> {
        let none = (&Tally::default(), &self.facts());
        let mut records = self.writers.checkpoints.on(sql);
        records.set_state(&self.writers.load_id, State::Loading, (0, None), none)?;
        let what = "another program dropped or renamed the table that gathers the rows while the load ran";
        Ok(self
            .error(Kind::Mismatch, what)
            .advise("run the same command again: it loads everything from the beginning"))
    }
}
