//! A connection to PostgreSQL that carries out operations: their messages are made before they are due.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{BlockingConnection, Server, ServerReport};
use sawmill_source::Result;

use crate::mix::block::fields;
use crate::plan::types::{Plan, Work};
use crate::proof::states::RowState;
use crate::work::outcome::{Change, Failure, Outcome};
use crate::work::rows::Rows;
use crate::work::statements;
use crate::work::target::Session;

/// A statement of the plan.
struct Statement {
    sql: String,
    oids: Vec<u32>,
    prepared: bool,
    /// On the present connection.
    known: bool,
}

/// A statement that is ready to be sent.
struct Ready {
    /// Which statement; messages of a prepared one need it to be known.
    statement: (usize, usize),
    messages: Vec<u8>,
    copies: bool,
    expect: Expect,
}

/// What a statement has to return.
enum Expect {
    Anything,
    /// As many rows.
    Rows(u64),
    /// This row, unless what is known of it has changed meanwhile.
    Row {
        table: usize,
        number: u64,
        state: RowState,
        row: Vec<u8>,
    },
}

pub(super) struct PgSession<'a> {
    server: &'a Server,
    plan: &'a Plan,
    rows: Rows,
    cancel: &'a AtomicBool,
    statements: Vec<Vec<Statement>>,
    connection: Option<BlockingConnection>,
    ready: Vec<Ready>,
    transaction: bool,
}

impl<'a> PgSession<'a> {
    pub(super) fn new(
        server: &'a Server,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        let statement = |work: &Work| {
            let sql = statements::of(plan, work, &rows.tables)?;
            let (oids, prepared) = match work {
                Work::Sql { table, parameters, prepared, .. } => {
                    let types: Vec<_> = match rows.tables.get(*table) {
                        Some(table) => table.maker.column_types().map(|(_, pg_type)| pg_type).collect(),
                        None => Vec::new(),
                    };
                    let oid =
                        |column: usize| types.get(column).map_or(0, |pg_type| statements::oid(*pg_type));
                    (parameters.iter().map(|parameter| oid(parameter.column)).collect(), *prepared)
                }
                Work::Insert { prepared, .. }
                | Work::Update { prepared, .. }
                | Work::Delete { prepared, .. }
                | Work::Select { prepared, .. } => (Vec::new(), *prepared),
                Work::Copy { .. } | Work::Bulk { .. } => (Vec::new(), false),
            };
            Ok(Statement { sql, oids, prepared, known: false })
        };
        let all = plan.operations.iter().map(|operation| operation.steps.iter().map(statement).collect());
        let statements = all.collect::<Result<Vec<Vec<_>>>>()?;
        Ok(Self {
            server,
            plan,
            rows,
            cancel,
            statements,
            connection: None,
            ready: Vec::new(),
            transaction: false,
        })
    }

    /// Makes the messages of one step; an outcome if there is no row for it.
    fn make(&mut self, operation: usize, step: usize, draw: u64) -> Result<Option<Outcome>> {
        let work = &self.plan.operations[operation].steps[step];
        let statement = &self.statements[operation][step];
        let mut messages = Vec::new();
        let (mut copies, mut expect) = (false, Expect::Anything);
        match work {
            Work::Insert { table, rows, upsert, .. } => {
                let count = self.rows.tables[*table].maker.columns.len() as u64;
                let mut values = Vec::new();
                for i in 0..*rows {
                    let draw = draw.wrapping_add(i);
                    let old = match *upsert && draw % 2 == 1 {
                        true => {
                            self.rows.claim(*table, crate::mix::pick::Pick::Uniform, draw, Change::Update)
                        }
                        false => None,
                    };
                    match old {
                        Some(number) => {
                            let row = self.rows.old(*table, number, 1)?;
                            values.extend_from_slice(row.get(2..).unwrap_or_default());
                        }
                        None => self.rows.fresh(*table, Change::Insert, |_, row| {
                            values.extend_from_slice(row.get(2..).unwrap_or_default());
                        })?,
                    }
                }
                bind(&mut messages, statement, operation, step, (count * rows) as u16, &values);
                expect = Expect::Rows(*rows);
            }
            Work::Copy { table, rows } => {
                copies = true;
                let mut data = HEADER.to_vec();
                for _ in 0..*rows {
                    self.rows.fresh(*table, Change::Insert, |_, row| data.extend_from_slice(row))?;
                }
                data.extend_from_slice(&TRAILER);
                push(&mut messages, b'd', |out| out.extend_from_slice(&data));
                push(&mut messages, b'c', |_| {});
                expect = Expect::Rows(*rows);
            }
            Work::Update { table, pick, .. } => {
                let Some(number) = self.rows.claim(*table, *pick, draw, Change::Update) else {
                    return Ok(no_row());
                };
                let count = self.rows.tables[*table].maker.columns.len() as u16;
                let row = self.rows.old(*table, number, 1)?.get(2..).unwrap_or_default();
                bind(&mut messages, statement, operation, step, count, row);
                expect = Expect::Rows(1);
            }
            Work::Delete { table, pick, .. } => {
                let Some(number) = self.rows.claim(*table, *pick, draw, Change::Delete) else {
                    return Ok(no_row());
                };
                bind(&mut messages, statement, operation, step, 1, &key(number));
                expect = Expect::Rows(1);
            }
            Work::Select { table, pick, .. } => {
                let Some((number, state)) = self.rows.pick(*table, *pick, draw) else { return Ok(no_row()) };
                bind(&mut messages, statement, operation, step, 1, &key(number));
                let row = self.rows.old(*table, number, u64::from(state == RowState::Updated))?.to_vec();
                expect = Expect::Row { table: *table, number, state, row };
            }
            Work::Sql { table, parameters, pick, expect: rows, .. } => {
                let mut values = Vec::new();
                let mut new = Vec::new();
                if parameters.iter().any(|parameter| !parameter.old) {
                    new = self.rows.fresh(*table, Change::Outside, |_, row| row.to_vec())?;
                }
                let mut old = Vec::new();
                if parameters.iter().any(|parameter| parameter.old) {
                    let Some((number, state)) = self.rows.pick(*table, *pick, draw) else {
                        return Ok(no_row());
                    };
                    old = self.rows.old(*table, number, u64::from(state == RowState::Updated))?.to_vec();
                }
                for parameter in parameters {
                    let row = if parameter.old { &old } else { &new };
                    match fields(row).nth(parameter.column).flatten() {
                        Some(field) => {
                            values.extend_from_slice(&(field.len() as u32).to_be_bytes());
                            values.extend_from_slice(field);
                        }
                        None => values.extend_from_slice(&(-1_i32).to_be_bytes()),
                    }
                }
                bind(&mut messages, statement, operation, step, parameters.len() as u16, &values);
                if let Some(rows) = rows {
                    expect = Expect::Rows(*rows);
                }
            }
            Work::Bulk { .. } => {}
        }
        self.ready.push(Ready { statement: (operation, step), messages, copies, expect });
        Ok(None)
    }

    /// Sends a statement and reads its answer.
    fn run(&mut self, at: usize) -> io::Result<std::result::Result<u64, Failure>> {
        let end = Instant::now() + self.plan.timeout + std::time::Duration::from_secs(5);
        let cancel = self.cancel;
        let mut given_up = || cancel.load(Relaxed) || Instant::now() >= end;
        let (Some(connection), Some(ready)) = (&mut self.connection, self.ready.get(at)) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let statement = &mut self.statements[ready.statement.0][ready.statement.1];
        if ready.copies {
            match begin_copy(connection, &statement.sql)? {
                Ok(()) => {}
                Err(report) => return Ok(Err(refused(&report))),
            }
        } else if !statement.known {
            let name = statement_name(statement, ready.statement.0, ready.statement.1);
            push(&mut connection.out, b'P', |out| {
                out.extend_from_slice(name.as_bytes());
                out.push(0);
                out.extend_from_slice(statement.sql.as_bytes());
                out.push(0);
                out.extend_from_slice(&(statement.oids.len() as u16).to_be_bytes());
                statement.oids.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
            });
        }
        connection.out.extend_from_slice(&ready.messages);
        connection.send()?;
        let mut wrong_row = None;
        let (mut rows, mut parsed) = (0, false);
        let answered = answer(
            connection,
            &mut |tag, row| {
                if tag == b'1' {
                    parsed = true;
                    return;
                }
                rows += 1;
                if let Expect::Row { row: expected, .. } = &ready.expect
                    && expected != row
                {
                    wrong_row = Some("the row has other values than were written");
                }
            },
            &mut given_up,
        )?;
        // Known from the moment it was parsed, even if carrying it out failed.
        statement.known |= parsed && statement.prepared;
        let tag = match answered {
            Ok(tag) => tag,
            Err(report) => return Ok(Err(refused(&report))),
        };
        let count = tag.unwrap_or(rows);
        Ok(match &ready.expect {
            Expect::Anything => Ok(count),
            Expect::Rows(expected) if *expected == count => Ok(count),
            Expect::Rows(expected) => {
                Err(Failure::new("check", format!("{count} rows where {expected} are expected"), count == 0))
            }
            Expect::Row { table, number, state, .. } => {
                // If another operation has changed the row meanwhile, either answer is right.
                if self.rows.tables[*table].states.get(*number) != *state
                    || (count == 1 && wrong_row.is_none())
                {
                    Ok(count)
                } else {
                    let name = &self.rows.tables[*table].name;
                    let what = wrong_row.unwrap_or("an acknowledged row is not there");
                    Err(Failure::new("check", format!("table {name}, row {number}: {what}"), true))
                }
            }
        })
    }

    fn simple(&mut self, sql: &str) -> io::Result<std::result::Result<(), ServerReport>> {
        let end = Instant::now() + self.plan.timeout + std::time::Duration::from_secs(5);
        let cancel = self.cancel;
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        query(&mut connection.out, sql);
        connection.send()?;
        let done = answer(connection, &mut |_, _| {}, &mut || cancel.load(Relaxed) || Instant::now() >= end)?;
        Ok(done.map(drop))
    }

    fn transaction(&mut self) -> Outcome {
        let lost = |this: &mut Self, error: &io::Error, without_effect| {
            this.connection = None;
            Outcome::Failed(lost(error, without_effect))
        };
        match self.simple("BEGIN") {
            Ok(Ok(())) => {}
            Ok(Err(report)) => return self.failed(refused(&report)),
            Err(error) => return lost(self, &error, true),
        }
        let mut rows = 0;
        for at in 0..self.ready.len() {
            match self.run(at) {
                Ok(Ok(count)) => rows += count,
                Ok(Err(failure)) => {
                    let fatal = !failure.without_effect && failure.kind != "check";
                    if fatal || !matches!(self.simple("ROLLBACK"), Ok(Ok(()))) {
                        self.connection = None;
                    }
                    // What was not committed had no effect.
                    return Outcome::Failed(Failure { without_effect: true, ..failure });
                }
                Err(error) => return lost(self, &error, true),
            }
        }
        match self.simple("COMMIT") {
            Ok(Ok(())) => Outcome::Ok(rows),
            Ok(Err(report)) => self.failed(refused(&report)),
            Err(error) => lost(self, &error, false),
        }
    }

    fn failed(&mut self, failure: Failure) -> Outcome {
        if !failure.without_effect && failure.kind != "check" {
            self.connection = None;
        }
        Outcome::Failed(failure)
    }
}

impl Session for PgSession<'_> {
    fn open(&mut self) -> Result<()> {
        if self.connection.is_none() {
            self.connection = Some(BlockingConnection::open(self.server)?);
            self.statements.iter_mut().flatten().for_each(|statement| statement.known = false);
        }
        Ok(())
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        self.ready.clear();
        self.transaction = self.plan.operations[operation].transaction;
        for step in 0..self.plan.operations[operation].steps.len() {
            if let Some(outcome) = self.make(operation, step, draw.wrapping_add(step as u64 * 1_000_003))? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn execute(&mut self) -> Outcome {
        if self.transaction {
            return self.transaction();
        }
        match self.run(0) {
            Ok(Ok(rows)) => Outcome::Ok(rows),
            Ok(Err(failure)) => self.failed(failure),
            Err(error) => {
                self.connection = None;
                Outcome::Failed(lost(&error, false))
            }
        }
    }

    fn settle(&mut self, outcome: &Outcome) {
        self.rows.settle(outcome);
    }
}

fn no_row() -> Option<Outcome> {
    let message = "no earlier row could be chosen: give the table `rows`, or operations that insert";
    Some(Outcome::Failed(Failure::new("no-row", message, true)))
}

fn refused(report: &ServerReport) -> Failure {
    let kind = if report.code == "57014" { "timeout" } else { &report.code };
    // A session that ends may have ended after the statement took effect.
    Failure::new(kind, report.message.clone(), !report.fatal)
}

fn lost(error: &io::Error, without_effect: bool) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::new("timeout", "no answer in time", without_effect),
        _ => Failure::new("lost", format!("the connection was lost: {error}"), without_effect),
    }
}

fn statement_name(statement: &Statement, operation: usize, step: usize) -> String {
    if statement.prepared { format!("s{operation}_{step}") } else { String::new() }
}

/// The field of a key.
fn key(number: u64) -> [u8; 12] {
    let mut field = [0; 12];
    field[3] = 8;
    field[4..].copy_from_slice(&(number as i64).to_be_bytes());
    field
}

/// Bind, Execute and Sync: all parameters and results in binary.
fn bind(out: &mut Vec<u8>, statement: &Statement, operation: usize, step: usize, count: u16, values: &[u8]) {
    let name = statement_name(statement, operation, step);
    push(out, b'B', |out| {
        out.push(0);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&[0, 0, 1, 0, 1]);
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(values);
        out.extend_from_slice(&[0, 1, 0, 1]);
    });
    push(out, b'E', |out| out.extend_from_slice(&[0; 5]));
    push(out, b'S', |_| {});
}

pub(super) fn query(out: &mut Vec<u8>, sql: &str) {
    push(out, b'Q', |out| {
        out.extend_from_slice(sql.as_bytes());
        out.push(0);
    });
}

/// Appends a message.
pub(super) fn push(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = ((out.len() - at) as u32).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
}

/// Sends a COPY and waits until the server takes rows.
pub(super) fn begin_copy(
    connection: &mut BlockingConnection,
    sql: &str,
) -> io::Result<std::result::Result<(), ServerReport>> {
    query(&mut connection.out, sql);
    connection.send()?;
    let end = Instant::now() + std::time::Duration::from_secs(60);
    let mut report = None;
    loop {
        let message = connection.message(&mut || Instant::now() >= end)?;
        match message.tag {
            b'G' => return Ok(Ok(())),
            b'E' => {
                let refused = ServerReport::of(message.body);
                if refused.fatal {
                    return Ok(Err(refused));
                }
                report = Some(refused);
            }
            b'Z' => match report {
                Some(report) => return Ok(Err(report)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            },
            _ => {}
        }
    }
}

/// Reads until the server is ready: the number of rows of the last command, if it names one, or its error.
/// Each row that it returns, and that a statement was parsed, is passed to `row` by the message's type.
pub(super) fn answer(
    connection: &mut BlockingConnection,
    row: &mut dyn FnMut(u8, &[u8]),
    given_up: &mut dyn FnMut() -> bool,
) -> io::Result<std::result::Result<Option<u64>, ServerReport>> {
    let (mut count, mut report) = (None, None);
    loop {
        let message = connection.message(given_up)?;
        match message.tag {
            b'D' | b'1' => row(message.tag, message.body),
            b'C' => {
                let text = message.body.strip_suffix(&[0]).unwrap_or(message.body);
                let last = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                count = std::str::from_utf8(last).ok().and_then(|last| last.parse().ok());
            }
            b'E' => {
                let refused = ServerReport::of(message.body);
                if refused.fatal {
                    return Ok(Err(refused));
                }
                report.get_or_insert(refused);
            }
            b'Z' => return Ok(report.map_or(Ok(count), Err)),
            _ => {}
        }
    }
}
