//! Gives the staging table its final name.

use sawmill_loader::{Mode, Tally};
use sawmill_source::{Error, Kind, Result};

use super::{CrateSession, FORGET};
use crate::connect::sql::{Failed, Sql};
use crate::records::checkpoint::State;
use crate::table::catalogue;
use crate::table::names::{CrateTable, quote};

/// What is known of the statement that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    No,
    Refused,
    /// Its answer was lost.
    Lost,
}

impl CrateSession<'_> {
    /// Gives the table, which has these rows, its name. If the answer gets lost, the catalogue shows whether it was done.
    pub(super) fn place(&self, from: &CrateTable, total: &Tally, sql: &mut Sql<'_>) -> Result<()> {
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
