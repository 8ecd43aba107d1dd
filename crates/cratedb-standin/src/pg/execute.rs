//! A batch of rows, with the faults that are planned for it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::connection::{Connection, Portal};
use super::message::ended;
use crate::cluster::{Batch, End};
use crate::sql::{Statement, parse};
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
        let rows = match unnested(&arguments, &sources) {
            Ok(rows) => rows,
            Err(what) => return self.error("22000", &what),
        };
        let (statement, schema) = (sql.clone(), "doc".to_owned());
        let inserted =
            self.shared.insert(0, fault, Batch { statement, schema, name, columns, rows, conflict });
        match inserted {
            Ok(inserted) => match outcome(inserted, self.fail_fast) {
                Ok(inserted) => self.send(b'C', format!("INSERT 0 {inserted}\0").as_bytes()),
                Err(message) => self.error("XX000", &message),
            },
            Err(End::Cut) => Err(ended()),
            Err(End::Silent) => {
                drop(job);
                // Until the client has gone.
                while self.message().is_ok() {}
                Err(ended())
            }
        }
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
