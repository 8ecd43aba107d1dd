//! A target that does nothing: operations are made, scheduled and recorded as for a server, and sent nowhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_source::Result;

use crate::mix::pick::Pick;
use crate::plan::types::{Plan, Work};
use crate::result::proof::Proof;
use crate::result::second::ServerSample;
use crate::work::outcome::{Change, Outcome};
use crate::work::rows::{Rows, SharedTable};
use crate::work::target::{Session, Target};

pub(crate) struct NullTarget;

impl Target for NullTarget {
    fn set_up(&self, _: &Plan, _: &Arc<Vec<Arc<SharedTable>>>, _: &AtomicBool) -> Result<()> {
        Ok(())
    }

    fn session<'a>(&'a self, plan: &'a Plan, rows: Rows, _: &'a AtomicBool) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(NullSession { plan, rows, made: Vec::new(), count: 0 }))
    }

    fn watch<'a>(&'a self, _: &'a Plan) -> Option<Box<dyn FnMut() -> Option<ServerSample> + Send + 'a>> {
        None
    }

    fn prove(&self, _: &SharedTable, _: &AtomicBool) -> Result<Proof> {
        Ok(Proof::default())
    }

    fn tear_down(&self, _: &[Arc<SharedTable>]) -> Result<()> {
        Ok(())
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn name(&self) -> String {
        "null".to_owned()
    }

    fn listener(&self) -> Option<sawmill_profile::Target> {
        None
    }

    fn keeps_rows(&self) -> bool {
        false
    }
}

struct NullSession<'a> {
    plan: &'a Plan,
    rows: Rows,
    made: Vec<u8>,
    count: u64,
}

impl Session for NullSession<'_> {
    fn open(&mut self) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        (self.count, _) = (0, self.made.clear());
        for step in &self.plan.operations[operation].steps {
            match step {
                Work::Insert { table, rows, .. }
                | Work::Copy { table, rows }
                | Work::Bulk { table, rows } => {
                    for _ in 0..*rows {
                        let made = &mut self.made;
                        self.rows.fresh(*table, Change::Insert, |_, row| made.extend_from_slice(row))?;
                    }
                    self.count += rows;
                }
                Work::Update { table, pick, .. }
                | Work::Delete { table, pick, .. }
                | Work::Select { table, pick, .. } => {
                    self.choose(*table, *pick, draw);
                }
                Work::Sql { .. } => self.count += 1,
            }
        }
        Ok(None)
    }

    fn execute(&mut self) -> Outcome {
        std::hint::black_box(&self.made);
        Outcome::Ok(self.count)
    }

    fn settle(&mut self, outcome: &Outcome) {
        self.rows.settle(outcome);
    }
}

impl NullSession<'_> {
    fn choose(&mut self, table: usize, pick: Pick, draw: u64) {
        std::hint::black_box(self.rows.pick(table, pick, draw));
        self.count += 1;
    }
}
