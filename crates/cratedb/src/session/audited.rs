//! The end of a load with tags: rows counted by tag, the column dropped, the table in its place.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_loader::Tally;
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Control, Error, Kind, Result, UnitKey};

use super::{CrateSession, FORGET};
use crate::connect::client::Client;
use crate::records::checkpoint::State;
use crate::session::prepare::rename;
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
        let mut client = Client::new(&self.cluster, false);
        self.writers.confirm_lease(&mut client, control)?;
        let (sealed, retries) = (self.table.sealed(), self.options.retries);
        if !self.sealed.load(Relaxed) {
            self.seal(tags, &sealed, &mut client, control)?;
        }
        if self.crate_db.options.is_asynchronous() {
            durable::make_durable(&mut client, &sealed, retries, control)?;
        }
        let audited = self.audit(tags, &sealed, &mut client, control)?;
        if !audited.lacking.is_empty() {
            self.forget_units(&audited.lacking, &mut client, control)?;
            rename(&mut client, &sealed, &self.written, retries, control)?;
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
    fn seal(
        &self,
        tags: &Tags,
        sealed: &CrateTable,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<()> {
        let retries = self.options.retries;
        rename(client, &self.written, sealed, retries, control)?;
        self.sealed.store(true, Relaxed);
        let insert = format!("INSERT INTO {} ", self.written.quoted());
        jobs::end(client, &|statement| statement.starts_with(&insert), tags.is_in_doubt(), retries, control)
    }

    /// The table that has the rows now.
    pub(super) fn gathered(&self) -> CrateTable {
        match self.sealed.load(Relaxed) {
            true => self.table.sealed(),
            false => self.written.clone(),
        }
    }

    fn audit(
        &self,
        tags: &Tags,
        table: &CrateTable,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<Audited> {
        let audit = Audit { table, column: &tags.column, retries: self.options.retries };
        let audited = audit.run(&mut tags.recorded(), client, control)?;
        tags.audited(audited.tags);
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(audited.rows);
        Ok(audited)
    }

    /// Removes the records of units that are sent again.
    pub(super) fn forget_units(
        &self,
        units: &BTreeSet<UnitKey>,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<()> {
        if units.is_empty() {
            return Ok(());
        }
        let (writers, id) = (&self.writers, &self.writers.load_id);
        let mut records = writers.checkpoints.on(client, control);
        let recorded = records.units(id)?;
        for unit in units {
            records.delete_unit(id, *unit)?;
            writers.rejected.fetch_sub(recorded.get(unit).map_or(0, |unit| unit.rows.rejected), Relaxed);
        }
        Ok(())
    }

    /// Drops the tags of an audited table, and gives it its name.
    pub(super) fn finish_tagged(
        &self,
        tags: &Tags,
        total: &Tally,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<()> {
        let (checkpoints, id) = (&self.writers.checkpoints, &self.writers.load_id);
        let retries = self.options.retries;
        self.writers.confirm_lease(client, control)?;
        let from = self.gathered();
        let rows = self.counted.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
        self.compare(rows, total)?;
        self.loaded.store(total.rows, Relaxed);
        let counted = (rows, Some(tags.last_audited()));
        checkpoints.on(client, control).set_state(id, State::Placing, counted, (total, &self.facts()))?;
        drop_column(client, &from, &tags.column, retries, control)?;
        // Nothing can arrive any more, so this count is final.
        self.compare(self.read_back(&from).count(client, control)?, total)?;
        self.place(&from, client, control)?;
        let mut records = checkpoints.on(client, control);
        records.delete_others(&self.table.to_string(), id)?;
        records.set_state(id, State::Complete, counted, (total, &self.facts()))
    }

    /// The table has exactly the rows that were acknowledged.
    fn compare(&self, rows: u64, total: &Tally) -> Result<()> {
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
fn drop_column(
    client: &mut Client,
    table: &CrateTable,
    column: &str,
    retries: u32,
    control: &Control<'_>,
) -> Result<()> {
    let statement = format!("ALTER TABLE {} DROP COLUMN {}", table.quoted(), quote(column));
    match client.sql(&statement, &[], retries, control) {
        Ok(_) => Ok(()),
        Err(error) => match catalogue::has_column(client, table, column, retries, control) {
            Ok(false) => Ok(()),
            _ => Err(Error::new(error.kind(), error.what()).at(error.place()).advise(
                "CrateDB drops columns since version 5.5: with an earlier one give rows a key (--row-key or --primary-key)",
            )),
        },
    }
}
