//! A connection to CrateDB that carries out operations: bodies of requests are made before they are due.

use std::sync::atomic::AtomicBool;

use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};
use sawmill_pgcopy::PgType;
use sawmill_source::Result;
use serde_json::Value;

use crate::plan::types::{Plan, Work};
use crate::work::crate_db::arguments::{BulkRows, Columns, List};
use crate::work::crate_db::json;
use crate::work::outcome::{Failure, Outcome};
use crate::work::rows::Rows;
use crate::work::statements;
use crate::work::step::{Expect, arguments};
use crate::work::target::Session;

pub(super) struct CrateSession<'a> {
    server: &'a CrateServer,
    statements: CrateStatements,
    plan: &'a Plan,
    rows: Rows,
    cancel: &'a AtomicBool,
    sql: Vec<String>,
    types: Vec<Vec<PgType>>,
    body: String,
    expect: Expect,
    /// The request has `bulk_args`.
    bulk: bool,
}

impl<'a> CrateSession<'a> {
    pub(super) fn new(
        server: &'a CrateServer,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        let statement = |step: &Work| statement(plan, step, &rows);
        let sql = plan.operations.iter().flat_map(|operation| &operation.steps).map(statement);
        let sql = sql.collect::<Result<Vec<String>>>()?;
        let types = rows.tables.iter().map(|table| table.maker.column_types().map(|(_, of)| of).collect());
        let types = types.collect();
        let statements = CrateStatements::new(server, plan.timeout)?;
        let (body, expect) = (String::new(), Expect::Anything);
        Ok(Self { server, statements, plan, rows, cancel, sql, types, body, expect, bulk: false })
    }

    /// The arguments of a step, as the rest of a request's body; an outcome if there is no row for it.
    fn arguments(&mut self, step: &Work, draw: u64) -> Result<Option<Outcome>> {
        let Self { rows, body, types, .. } = self;
        let types = |table: usize| types.get(table).map_or(&[][..], Vec::as_slice);
        let made = match step {
            Work::Bulk { table, .. } => {
                body.push_str(",\"bulk_args\":[");
                arguments(rows, step, draw, &mut BulkRows { body, types: types(*table), empty: true })
            }
            Work::Unnest { table, .. } => {
                body.push_str(",\"args\":[");
                let mut columns = Columns { columns: Vec::new(), types: types(*table) };
                let made = arguments(rows, step, draw, &mut columns);
                columns.append_to(body);
                made
            }
            Work::Insert { table, .. }
            | Work::Copy { table, .. }
            | Work::Update { table, .. }
            | Work::Delete { table, .. }
            | Work::Select { table, .. }
            | Work::Sql { table, .. } => {
                body.push_str(",\"args\":[");
                arguments(rows, step, draw, &mut List { body, types: types(*table), empty: true })
            }
        };
        body.push_str("]}");
        let Some(expect) = made? else { return Ok(Some(Outcome::no_row())) };
        (self.expect, self.bulk) = (expect, matches!(step, Work::Bulk { .. }));
        Ok(None)
    }

    /// Whether an answer is what it has to be.
    fn judge(&self, body: &[u8]) -> Outcome {
        let mut version = None;
        let (count, equal) = match &self.expect {
            Expect::Rows(expected) if self.bulk => match json::bulk_failure(body, *expected) {
                Some(what) => return Outcome::Failed(Failure::new("crate-bulk", what, false)),
                None => (*expected, true),
            },
            Expect::Row { table, row, .. } => {
                let found = json::rows(body).unwrap_or_default();
                version = found.first().and_then(|one| one.get(1)?.as_i64());
                let equal = found.first().is_some_and(|one| json::is_equal(row, &self.types[*table], one));
                (found.len() as u64, equal)
            }
            Expect::Anything | Expect::Rows(_) => (json::count(body).unwrap_or(0), true),
        };
        self.expect.judge(&self.rows, count, equal, version).into()
    }
}

impl Session for CrateSession<'_> {
    fn open(&mut self) -> Result<()> {
        // The first request connects.
        Ok(())
    }

    fn close(&mut self) {
        // The certificates were read before; if that fails now, the connections stay.
        if let Ok(statements) = CrateStatements::new(self.server, self.plan.timeout) {
            self.statements = statements;
        }
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        // Operations of CrateDB have one step each.
        let plan = self.plan;
        let Some(step) = plan.operations[operation].steps.first() else { return Ok(None) };
        let sql = Value::from(self.sql[operation].as_str());
        self.body.clear();
        self.body.push_str("{\"stmt\":");
        self.body.push_str(&sql.to_string());
        self.arguments(step, draw)
    }

    fn execute(&mut self) -> Outcome {
        let lost = |what: String, without_effect| {
            let kind =
                if what.contains("timed out") || what.contains("in time") { "timeout" } else { "lost" };
            Outcome::Failed(Failure::new(kind, what, without_effect))
        };
        match self.statements.send(self.body.as_bytes(), self.cancel) {
            CrateReply::Done(body) => self.judge(&body),
            // What CrateDB refuses for its own state may have reached some of the shards.
            CrateReply::Refused(code, message) => {
                Outcome::Failed(Failure::new(format!("crate-{code}"), message, (4000..5000).contains(&code)))
            }
            CrateReply::NotSent(what) => Outcome::Failed(Failure::new("connect", what, true)),
            CrateReply::Unknown(what) => lost(what, false),
        }
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
        _ => statements::of(plan, step, &rows.tables, false),
    }
}
