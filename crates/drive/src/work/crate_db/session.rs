//! A connection to CrateDB that carries out operations: bodies of requests are made before they are due.

use std::sync::atomic::AtomicBool;

use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};
use sawmill_pgcopy::PgType;
use sawmill_source::Result;
use serde_json::Value;

use crate::mix::block::fields;
use crate::plan::types::{Plan, Work};
use crate::proof::states::RowState;
use crate::work::crate_db::json;
use crate::work::outcome::{Change, Failure, Outcome};
use crate::work::rows::Rows;
use crate::work::statements;
use crate::work::target::Session;

/// What an answer has to be.
enum Expect {
    Anything,
    Rows(u64),
    Batch(u64),
    Row { table: usize, number: u64, state: RowState, row: Vec<u8> },
}

pub(super) struct CrateSession<'a> {
    statements: CrateStatements,
    plan: &'a Plan,
    rows: Rows,
    cancel: &'a AtomicBool,
    sql: Vec<String>,
    types: Vec<Vec<PgType>>,
    body: String,
    expect: Expect,
}

impl<'a> CrateSession<'a> {
    pub(super) fn new(
        server: &CrateServer,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        let statement = |step: &Work| statements::of(plan, step, &rows.tables);
        let sql = plan.operations.iter().flat_map(|operation| &operation.steps).map(statement);
        let sql = sql.collect::<Result<Vec<String>>>()?;
        let types = rows.tables.iter().map(|table| table.maker.column_types().map(|(_, of)| of).collect());
        let types = types.collect();
        let statements = CrateStatements::new(server, plan.timeout)?;
        Ok(Self { statements, plan, rows, cancel, sql, types, body: String::new(), expect: Expect::Anything })
    }

    /// The arguments of a step, as the rest of a request's body; an outcome if there is no row for it.
    fn arguments(&mut self, step: &Work, draw: u64) -> Result<Option<Outcome>> {
        let mut values = Vec::new();
        match step {
            Work::Bulk { table, rows } => {
                self.body.push_str(",\"bulk_args\":[");
                for i in 0..*rows {
                    if i > 0 {
                        self.body.push(',');
                    }
                    let (body, types) = (&mut self.body, &self.types[*table]);
                    self.rows.fresh(*table, Change::Insert, |_, row| json::write_row(row, types, body))?;
                }
                self.body.push_str("]}");
                self.expect = Expect::Batch(*rows);
                return Ok(None);
            }
            Work::Insert { table, rows, upsert, .. } => {
                for i in 0..*rows {
                    let draw = draw.wrapping_add(i);
                    let types = &self.types[*table];
                    let old = match *upsert && draw % 2 == 1 {
                        true => {
                            self.rows.claim(*table, crate::mix::pick::Pick::Uniform, draw, Change::Update)
                        }
                        false => None,
                    };
                    match old {
                        Some(number) => values.extend(json::values(self.rows.old(*table, number, 1)?, types)),
                        None => self.rows.fresh(*table, Change::Insert, |_, row| {
                            values.extend(json::values(row, types));
                        })?,
                    }
                }
                self.expect = Expect::Rows(*rows);
            }
            Work::Update { table, pick, .. } => {
                let Some(number) = self.rows.claim(*table, *pick, draw, Change::Update) else {
                    return Ok(no_row());
                };
                values.extend(json::values(self.rows.old(*table, number, 1)?, &self.types[*table]));
                self.expect = Expect::Rows(1);
            }
            Work::Delete { table, pick, .. } => {
                let Some(number) = self.rows.claim(*table, *pick, draw, Change::Delete) else {
                    return Ok(no_row());
                };
                values.push(number.into());
                self.expect = Expect::Rows(1);
            }
            Work::Select { table, pick, .. } => {
                let Some((number, state)) = self.rows.pick(*table, *pick, draw) else { return Ok(no_row()) };
                values.push(number.into());
                let row = self.rows.old(*table, number, u64::from(state == RowState::Updated))?.to_vec();
                self.expect = Expect::Row { table: *table, number, state, row };
            }
            Work::Sql { table, parameters, pick, expect, .. } => {
                let (mut new, mut old) = (Vec::new(), Vec::new());
                if parameters.iter().any(|parameter| !parameter.old) {
                    new = self.rows.fresh(*table, Change::Outside, |_, row| row.to_vec())?;
                }
                if parameters.iter().any(|parameter| parameter.old) {
                    let Some((number, state)) = self.rows.pick(*table, *pick, draw) else {
                        return Ok(no_row());
                    };
                    old = self.rows.old(*table, number, u64::from(state == RowState::Updated))?.to_vec();
                }
                for parameter in parameters {
                    let row = if parameter.old { &old } else { &new };
                    let of = self.types[*table].get(parameter.column).copied().unwrap_or(PgType::Text);
                    values.push(json::value(fields(row).nth(parameter.column).flatten(), of));
                }
                self.expect = expect.map_or(Expect::Anything, Expect::Rows);
            }
            Work::Copy { .. } => {}
        }
        self.body.push_str(",\"args\":");
        self.body.push_str(&Value::from(values).to_string());
        self.body.push('}');
        Ok(None)
    }

    /// Whether an answer is what it has to be.
    fn judge(&self, body: &[u8]) -> Outcome {
        let check =
            |what: String, without_effect| Outcome::Failed(Failure::new("check", what, without_effect));
        match &self.expect {
            Expect::Anything => Outcome::Ok(json::count(body).unwrap_or(0)),
            Expect::Rows(expected) => match json::count(body) {
                Some(count) if count == *expected => Outcome::Ok(count),
                count => {
                    let count = count.unwrap_or(0);
                    check(format!("{count} rows where {expected} are expected"), count == 0)
                }
            },
            Expect::Batch(rows) => match json::bulk_failure(body) {
                None => Outcome::Ok(*rows),
                Some(what) => Outcome::Failed(Failure::new("crate-bulk", what, false)),
            },
            Expect::Row { table, number, state, row } => {
                let found = json::rows(body).unwrap_or_default();
                let equal = found.len() == 1 && json::is_equal(row, &self.types[*table], &found[0]);
                if equal || self.rows.tables[*table].states.get(*number) != *state {
                    return Outcome::Ok(found.len() as u64);
                }
                let what = match found.len() {
                    0 => "an acknowledged row is not there",
                    _ => "the row has other values than were written",
                };
                check(format!("table {}, row {number}: {what}", self.rows.tables[*table].name), true)
            }
        }
    }
}

fn no_row() -> Option<Outcome> {
    let message = "no earlier row could be chosen: give the table `rows`, or operations that insert";
    Some(Outcome::Failed(Failure::new("no-row", message, true)))
}

impl Session for CrateSession<'_> {
    fn open(&mut self) -> Result<()> {
        // The first request connects.
        Ok(())
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        // Operations of CrateDB have one step each.
        let plan = self.plan;
        let Some(step) = plan.operations[operation].steps.first() else { return Ok(None) };
        let sql = Value::from(self.sql[operation].as_str());
        self.body = format!("{{\"stmt\":{sql}");
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
