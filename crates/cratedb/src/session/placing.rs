//! Gives the staging table its final name.

use sawmill_loader::Mode;
use sawmill_source::{Control, Kind, Result};

use super::{CrateSession, FORGET};
use crate::connect::client::{Client, Failed};
use crate::connect::waiting::Waiting;
use crate::table::catalogue;
use crate::table::names::{CrateTable, quote};

impl CrateSession<'_> {
    /// Gives the table its name. If the answer gets lost, the catalogue shows whether it was done.
    pub(super) fn place(&self, from: &CrateTable, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let retries = self.options.retries;
        let (mut waiting, mut refused) = (Waiting::new(retries), 0);
        loop {
            let tables = [from, &self.table];
            let statement = match catalogue::which_exist(client, tables, retries, control)? {
                [false, true] => return Ok(()),
                // A server that has not recovered knows no tables.
                [false, false] => {
                    let what = "neither the table nor the one that gathered its rows is there";
                    let error = self.error(Kind::Server, what).advise(FORGET);
                    waiting.pause(error, &self.cluster, control)?;
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
            let error = match client.once(&statement, &[], control) {
                Ok(_) => return Ok(()),
                Err(Failed::Refused(error)) if refused >= retries => return Err(error),
                Err(Failed::Refused(_)) => {
                    refused += 1;
                    control.sleep(sawmill_loader::backoff(refused))?;
                    continue;
                }
                Err(Failed::Passing(error)) => error,
                Err(Failed::Lost(broken)) => client.lost(broken)?,
            };
            waiting.pause(error, &self.cluster, control)?;
        }
    }
}
