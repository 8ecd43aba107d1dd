//! A target that does nothing: operations are made, scheduled and recorded as for a server, and sent nowhere.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_pgcopy::PgType;
use sawmill_source::Result;

use crate::plan::types::Plan;
use crate::result::proof::Proof;
use crate::work::outcome::Outcome;
use crate::work::rows::{Rows, SharedTable};
use crate::work::step::{Arguments, Expect, arguments};
use crate::work::target::{Session, Target, TextRows};

pub(crate) struct NullTarget;

impl Target for NullTarget {
    fn set_up(&self, _: &Plan, _: &Arc<Vec<Arc<SharedTable>>>, _: &AtomicBool) -> Result<()> {
        Ok(())
    }

    fn session<'a>(&'a self, plan: &'a Plan, rows: Rows, _: &'a AtomicBool) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(NullSession { plan, rows, made: Made::default(), count: 0 }))
    }

    fn prove(&self, _: &SharedTable, _: &AtomicBool) -> Result<Proof> {
        Ok(Proof::default())
    }

    fn query(&self, _: &str, _: &AtomicBool) -> Result<TextRows> {
        Ok(Vec::new())
    }

    fn tear_down(&self, _: &[Arc<SharedTable>], _: &AtomicBool) -> Result<()> {
        Ok(())
    }

    fn name(&self) -> String {
        "null".to_owned()
    }

    fn keeps_rows(&self) -> bool {
        false
    }
}

struct NullSession<'a> {
    plan: &'a Plan,
    rows: Rows,
    made: Made,
    count: u64,
}

/// The arguments of an operation, as bytes that are sent nowhere.
#[derive(Default)]
struct Made(Vec<u8>);

impl Arguments for Made {
    fn row(&mut self, row: &[u8]) {
        self.0.extend_from_slice(row);
    }

    fn key(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn field(&mut self, _: PgType, field: Option<&[u8]>) {
        self.0.extend_from_slice(field.unwrap_or_default());
    }
}

impl Session for NullSession<'_> {
    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        self.made.0.clear();
        self.count = 0;
        let operation = &self.plan.operations[operation];
        if !self.rows.choose(&operation.rows, draw)? {
            return Ok(Some(Outcome::no_row()));
        }
        for step in &operation.steps {
            match arguments(&mut self.rows, step, draw, &mut self.made)? {
                None => return Ok(Some(Outcome::no_row())),
                Some(Expect::Rows(count)) => self.count += count,
                Some(_) => self.count += 1,
            }
        }
        Ok(None)
    }

    fn execute(&mut self) -> Outcome {
        std::hint::black_box(&self.made.0);
        Outcome::Ok(self.count)
    }

    fn has_server(&self) -> bool {
        false
    }

    fn settle(&mut self, outcome: &Outcome) {
        self.rows.settle(outcome);
    }
}
