//! Gives the staging table its final name.

use sawmill_loader::Mode;
use sawmill_source::{Kind, Result};

use super::{CrateSession, FORGET};
use crate::connect::sql::{Failed, Sql};
use crate::table::catalogue;
use crate::table::names::{CrateTable, quote};

impl CrateSession<'_> {
    /// Gives the table its name. If the answer gets lost, the catalogue shows whether it was done.
    pub(super) fn place(&self, from: &CrateTable, sql: &mut Sql<'_>) -> Result<()> {
        let (mut waiting, mut refused) = (sql.waiting(), 0);
        // The name of a new table is free, most often: the first try tells.
        let mut is_assumed = self.crate_db.mode == Mode::Create;
        loop {
            let was_assumed = std::mem::take(&mut is_assumed);
            let exist = match was_assumed {
                true => [true, false],
                false => catalogue::which_exist(sql, [from, &self.table])?,
            };
            let statement = match exist {
                [false, true] => return Ok(()),
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
            let error = match sql.once(&statement, &[]) {
                Ok(_) => return Ok(()),
                Err(Failed::Refused(_)) if was_assumed => continue,
                Err(Failed::Refused(error)) if refused >= self.options.retries => return Err(error),
                Err(Failed::Refused(_)) => {
                    refused += 1;
                    sql.control().sleep(sawmill_loader::backoff(refused))?;
                    continue;
                }
                Err(Failed::Passing(error)) => error,
                Err(Failed::Lost(broken)) => sql.client().lost(broken)?,
            };
            sql.pause(&mut waiting, error)?;
        }
    }
}
