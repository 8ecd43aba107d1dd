//! A connection to CrateDB that carries out operations: bodies of requests are made before they are due.

use std::sync::atomic::AtomicBool;

use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};
use sawmill_pgcopy::PgType;
use sawmill_source::Result;
use serde_json::Value;

use crate::plan::types::{Operation, Plan, Variable, Work};
use crate::work::crate_db::arguments::{BulkRows, Columns, List};
use crate::work::crate_db::json;
use crate::work::outcome::{CHECK, Failure, Outcome};
use crate::work::rows::{DRAWS, Rows};
use crate::work::statements;
use crate::work::step::{Expect, arguments};
use crate::work::target::Session;

/// The most bytes of answers that connections hold at the same time, except for a MiB of each.
const MAX_ANSWERS: usize = 64 << 20;

pub(super) struct CrateSession<'a> {
    server: &'a CrateServer,
    statements: CrateStatements,
    plan: &'a Plan,
    rows: Rows,
    cancel: &'a AtomicBool,
    /// The statements of each operation.
    sql: Vec<Vec<String>>,
    types: Vec<Vec<PgType>>,
    operation: usize,
    /// The requests of the operation's steps.
    requests: Vec<Request>,
    /// The values that steps of the operation have read.
    variables: Vec<Value>,
}

/// A request that is ready to be sent.
#[derive(Default)]
struct Request {
    body: String,
    expect: Expect,
}

impl<'a> CrateSession<'a> {
    pub(super) fn new(
        server: &'a CrateServer,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        let statements = |operation: &Operation| {
            operation.steps.iter().map(|step| statement(plan, step, &rows)).collect::<Result<Vec<String>>>()
        };
        let sql = plan.operations.iter().map(statements).collect::<Result<_>>()?;
        let types = rows.types();
        let statements = CrateStatements::new(server, plan.timeout, max_answer(plan))?;
        let (requests, variables) = (Vec::new(), Vec::new());
        Ok(Self { server, statements, plan, rows, cancel, sql, types, operation: 0, requests, variables })
    }

    /// Makes the request of a step, or returns an outcome if the step finds no row.
    fn make(&mut self, at: usize, draw: u64) -> Result<Option<Outcome>> {
        let Self { rows, requests, types, variables, plan, operation, .. } = self;
        let step = &plan.operations[*operation].steps[at];
        let Request { body, expect } = &mut requests[at];
        let types = |table: usize| types.get(table).map_or(&[][..], Vec::as_slice);
        body.clear();
        body.push_str("{\"stmt\":");
        body.push_str(&Value::from(self.sql[*operation][at].as_str()).to_string());
        body.push_str(if is_bulk(step) { ",\"bulk_args\":[" } else { ",\"args\":[" });
        let made = match step {
            Work::Copy { table, .. } => {
                arguments(rows, step, draw, &mut BulkRows { body, types: types(*table), empty: true })
            }
            Work::Unnest { table, .. } => {
                let mut columns = Columns { columns: Vec::new(), types: types(*table) };
                let made = arguments(rows, step, draw, &mut columns);
                columns.append_to(body);
                made
            }
            Work::Insert { table, .. }
            | Work::Update { table, .. }
            | Work::Delete { table, .. }
            | Work::Select { table, .. } => {
                arguments(rows, step, draw, &mut List { body, types: types(*table), variables, empty: true })
            }
            Work::Sql { .. } => {
                arguments(rows, step, draw, &mut List { body, types: &[], variables, empty: true })
            }
        };
        body.push_str("]}");
        let Some(made) = made? else { return Ok(Some(Outcome::no_row())) };
        *expect = made;
        Ok(None)
    }

    /// Sends the request of a step, and judges its answer.
    fn run(&mut self, at: usize) -> std::result::Result<u64, Failure> {
        // It takes what earlier steps have read.
        if at > 0 && matches!(self.plan.operations[self.operation].steps[at], Work::Sql { .. }) {
            self.make(at, 0).map_err(|error| Failure::new(CHECK, error.to_string(), true))?;
        }
        match self.statements.send(self.requests[at].body.as_bytes(), self.cancel) {
            CrateReply::Done(body) => self.judge(at, &body),
            // A statement that CrateDB refuses for its own state may have reached some of the shards.
            CrateReply::Refused(code, message) => {
                Err(Failure::new(format!("crate-{code}"), message, (4000..5000).contains(&code)))
            }
            CrateReply::NotSent(what) => Err(Failure::new("connect", what, true)),
            CrateReply::Unknown(what) => {
                let is_late = what.contains("timed out") || what.contains("in time");
                Err(Failure::new(if is_late { "timeout" } else { "lost" }, what, false))
            }
        }
    }

    /// Checks an answer against its expectation, and sets the variables that it has values for.
    fn judge(&mut self, at: usize, body: &[u8]) -> std::result::Result<u64, Failure> {
        let operation = &self.plan.operations[self.operation];
        let (step, expect) = (&operation.steps[at], &self.requests[at].expect);
        let mut version = None;
        let mut read = Vec::new();
        let (count, equal) = match expect {
            Expect::Rows(expected) if is_bulk(step) => match json::bulk_failure(body, *expected) {
                Some(what) => return Err(Failure::new("crate-bulk", what, false)),
                None => (*expected, true),
            },
            Expect::Row { table, row, .. } => {
                let (count, first) = json::first_row(body).unwrap_or_default();
                version = first.get(1).and_then(Value::as_i64);
                (count, count > 0 && json::is_equal(row, &self.types[*table], &first))
            }
            Expect::Variables => {
                let (count, first) = json::first_row(body).unwrap_or_default();
                read = first;
                (count, true)
            }
            Expect::Anything | Expect::Rows(_) | Expect::Changed { .. } => {
                (json::count(body).unwrap_or(0), true)
            }
        };
        let count = expect.judge(&self.rows, count, equal, version)?;
        if let Work::Sql { into, .. } = step {
            for (place, number) in into.iter().enumerate() {
                let Variable { name, pg_type } = &operation.variables[*number];
                let value = read.get(place).cloned().unwrap_or_default();
                if !json::is_of(&value, *pg_type) {
                    let what = format!("{name} has no value: {value} was read where {pg_type} is declared");
                    return Err(Failure::variable(what));
                }
                self.variables.resize(operation.variables.len(), Value::Null);
                self.variables[*number] = value;
            }
        }
        Ok(count)
    }
}

/// The most bytes of an answer: the connections of a run share them, and one row is read of each answer.
fn max_answer(plan: &Plan) -> usize {
    (MAX_ANSWERS / plan.parallel().max(1)).clamp(1 << 20, 16 << 20)
}

/// Whether the request has `bulk_args`.
fn is_bulk(step: &Work) -> bool {
    matches!(step, Work::Copy { .. })
}

impl Session for CrateSession<'_> {
    fn close(&mut self) {
        // The certificates were read before; if that fails now, the connections stay.
        if let Ok(statements) = CrateStatements::new(self.server, self.plan.timeout, max_answer(self.plan)) {
            self.statements = statements;
        }
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        self.operation = operation;
        let Operation { rows, steps, .. } = &self.plan.operations[operation];
        if !self.rows.choose(rows, draw)? {
            return Ok(Some(Outcome::no_row()));
        }
        self.requests.resize_with(steps.len(), Request::default);
        for at in 0..steps.len() {
            if let Some(outcome) = self.make(at, draw.wrapping_add(at as u64 * DRAWS))? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn execute(&mut self) -> Outcome {
        let mut rows = 0;
        for at in 0..self.requests.len() {
            match self.run(at) {
                Ok(count) => rows += count,
                // Earlier steps had their effect.
                Err(failure) => {
                    let without_effect = failure.without_effect && at == 0;
                    return Outcome::Failed(Failure { without_effect, ..failure });
                }
            }
        }
        Outcome::Ok(rows)
    }

    fn settle(&mut self, outcome: &Outcome) {
        self.rows.settle(outcome);
    }
}

/// The statement of a step.
fn statement(plan: &Plan, step: &Work, rows: &Rows) -> Result<String> {
    match step {
        Work::Unnest { table, .. } => {
            let cast = |pg_type| format!("::{}", json::scalar(pg_type));
            Ok(statements::unnest(&rows.tables[*table], &|_| String::new(), &cast))
        }
        Work::Copy { table, .. } => Ok(statements::bulk(&rows.tables[*table])),
        _ => statements::for_step(plan, step, &rows.tables, false),
    }
}
