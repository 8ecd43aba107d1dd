//! A batch of rows, with the faults that are planned for it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::connection::{Connection, Portal};
use super::message::ended;
use crate::fault::Fault;
use crate::json::Json;
use crate::sql::{OnConflict, Statement, parse};
use crate::store::unnest::unnested;
use crate::store::{Error, RowResult};

impl Connection<'_> {
    pub(super) fn execute(&mut self) -> io::Result<()> {
        let Some(Portal { sql, columns: arguments }) = self.portal.take() else {
            return self.error("34000", "no portal");
        };
        let Ok(Statement::Unnest { name, columns, sources, conflict }) = parse(&sql, "doc") else {
            return self.error("0A000", "only INSERT from UNNEST is supported");
        };
        if let Some(error) = self.shared.not_recovered(&sql) {
            return self.error("XX000", &error.message);
        }
        self.shared.unnests.fetch_add(1, Relaxed);
        let job = self.shared.engine.jobs().begin(&sql);
        let fault = self.shared.pg_faults.take();
        if let Some(Fault::Slow(time)) = fault {
            std::thread::sleep(time);
        }
        let rows = match unnested(&arguments, &sources) {
            Ok(rows) => rows,
            Err(what) => return self.error("22000", &what),
        };
        match fault {
            Some(Fault::Late(time)) => {
                self.shared.later(move |shared| {
                    std::thread::sleep(time);
                    // The client is gone. By now the answer may be that the table is unknown.
                    let _ = shared.engine.insert(&name, &columns, &rows, &conflict, usize::MAX);
                });
                return Err(ended());
            }
            Some(Fault::Orphan(time)) => {
                let (first, rest) = rows.split_at(rows.len() / 2);
                // As above.
                let _ = self.shared.engine.insert(&name, &columns, first, &conflict, usize::MAX);
                self.run_on(sql, (columns, rest.to_vec(), conflict), time);
                return Err(ended());
            }
            Some(Fault::Echo(time)) => {
                self.run_on(sql, (columns.clone(), rows.clone(), conflict.clone()), time);
            }
            // The client gets the second of both answers.
            Some(Fault::Twice) => {
                drop(self.shared.engine.insert(&name, &columns, &rows, &conflict, usize::MAX));
            }
            _ => {}
        }
        let most = match fault {
            Some(Fault::DropBefore) => return Err(ended()),
            Some(Fault::DropInTheMiddle | Fault::Restart(..)) => rows.len() / 2,
            _ => usize::MAX,
        };
        self.shared.row_cost.spend(rows.len());
        let inserted = self.shared.engine.insert(&name, &columns, &rows, &conflict, most);
        match fault {
            Some(Fault::Restart(away, recovering)) => {
                self.shared.restart(0, away, recovering);
                return Err(ended());
            }
            Some(Fault::DropInTheMiddle | Fault::DropAfter) => return Err(ended()),
            Some(Fault::Silent) => {
                drop(job);
                // Until the client has gone.
                while self.message().is_ok() {}
                return Err(ended());
            }
            _ => {}
        }
        match outcome(inserted, self.fail_fast) {
            Ok(inserted) => self.send(b'C', format!("INSERT 0 {inserted}\0").as_bytes()),
            Err(message) => self.error("XX000", &message),
        }
    }
}

impl Connection<'_> {
    /// Has a request without its connection go on for so long, and then insert these rows, unless it was killed.
    fn run_on(
        &self,
        sql: String,
        (columns, rows, conflict): (Vec<String>, Vec<Vec<Json>>, OnConflict),
        time: Duration,
    ) {
        let Ok(planned) = self.shared.engine.planned(&sql, "doc") else { return };
        self.shared.later(move |shared| {
            if !shared.engine.jobs().run_for(&sql, time) {
                let name = shared.engine.name_now(&planned);
                // Its answer has no reader.
                let _ = shared.engine.insert(&name, &columns, &rows, &conflict, usize::MAX);
            }
        });
    }
}

/// The number of rows inserted. A rejected row either ends the statement, keeping the rows before it, or
/// disappears.
fn outcome(results: Result<Vec<RowResult>, Error>, fail_fast: bool) -> Result<i64, String> {
    let mut inserted = 0;
    for result in results.map_err(|error| error.message)? {
        match result {
            RowResult::Count(rows) => inserted += rows,
            RowResult::Refused(_, message) if fail_fast => return Err(message),
            RowResult::Refused(..) | RowResult::Bare => {}
        }
    }
    Ok(inserted)
}
