//! A batch of rows on its way in, with the fault that is planned for it.

use std::time::Duration;

use super::Shared;
use crate::fault::Fault;
use crate::json::Json;
use crate::sql::{Name, OnConflict};
use crate::store::{Error, RowResult};

/// The reason for which the server sends no response.
pub(crate) enum End {
    /// The connection has ended.
    Cut,
    /// It stays open and silent.
    Silent,
}

/// A batch that the server has read. Rows have all of their values.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) statement: String,
    pub(crate) schema: String,
    pub(crate) name: Name,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Json>>,
    pub(crate) conflict: OnConflict,
}

impl Shared {
    /// Inserts a batch, unless its fault prevents it.
    pub(crate) fn insert(
        &self,
        node: usize,
        fault: Option<Fault>,
        mut batch: Batch,
    ) -> Result<Result<Vec<RowResult>, Error>, End> {
        let half = batch.rows.len() / 2;
        let mut most = usize::MAX;
        match fault {
            Some(Fault::DropBefore) => return Err(End::Cut),
            Some(Fault::Slow(time)) => std::thread::sleep(time),
            Some(Fault::Held) => {
                while self.faults.hold() || self.pg_faults.hold() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Some(Fault::DropInTheMiddle | Fault::Restart(..)) => most = half,
            Some(Fault::Late(time)) => {
                self.later(move |shared| {
                    std::thread::sleep(time);
                    // The client is gone. By now the answer may be that the table is unknown.
                    let _ = shared.insert_rows(&batch, usize::MAX);
                });
                return Err(End::Cut);
            }
            Some(Fault::Orphan(time)) => {
                let rest = batch.rows.split_off(half);
                // As above.
                let _ = self.insert_rows(&batch, usize::MAX);
                self.run_on(Batch { rows: rest, ..batch }, time);
                return Err(End::Cut);
            }
            Some(Fault::Echo(time)) => self.run_on(batch.clone(), time),
            // The client gets the second of both answers.
            Some(Fault::Twice) => drop(self.insert_rows(&batch, usize::MAX)),
            _ => {}
        }
        self.row_cost.spend(batch.rows.len());
        let inserted = self.insert_rows(&batch, most);
        match fault {
            Some(Fault::Restart(away, recovering)) => {
                self.restart(node, away, recovering);
                Err(End::Cut)
            }
            Some(Fault::DropAfter | Fault::DropInTheMiddle) => Err(End::Cut),
            Some(Fault::Silent) => Err(End::Silent),
            _ => Ok(inserted),
        }
    }

    fn insert_rows(&self, batch: &Batch, most: usize) -> Result<Vec<RowResult>, Error> {
        self.engine.insert(&batch.name, &batch.columns, &batch.rows, &batch.conflict, most)
    }

    /// Has a request without its connection go on for so long, and then insert its rows, unless it was killed.
    fn run_on(&self, batch: Batch, time: Duration) {
        let Ok(planned) = self.engine.planned(&batch.statement, &batch.schema) else { return };
        self.later(move |shared| {
            if !shared.engine.jobs().run_for(&batch.statement, time) {
                let name = shared.engine.name_now(&planned);
                // Its answer has no reader.
                let _ = shared.insert_rows(&Batch { name, ..batch }, usize::MAX);
            }
        });
    }
}
