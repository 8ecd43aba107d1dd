//! A connection to PostgreSQL that carries out operations: their messages are made before they are due.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_pgcopy::{HEADER, PgType, TRAILER};
use sawmill_pgwire::{BlockingConnection, Message, Server, ServerReport};
use sawmill_source::Result;

use crate::mix::block::{version_of, with_version};
use crate::plan::types::{Plan, Work};
use crate::work::outcome::{Failure, Outcome};
use crate::work::postgres::arguments::{ArrayColumns, CopyRows, Parameters};
use crate::work::postgres::messages::{Answer, Answered, answer, begin_copy, bind, parse, push, query};
use crate::work::rows::Rows;
use crate::work::statements;
use crate::work::step::{Expect, arguments};
use crate::work::target::Session;

/// A prepared statement that the server does not know: a pooler has passed the connection to another one.
const UNKNOWN_STATEMENT: &str = "26000";

/// A statement of the plan.
struct Statement {
    sql: String,
    /// Empty if it is not prepared.
    name: String,
    /// How many parameters.
    count: u16,
    /// Their types, if they are not the server's choice.
    oids: Vec<u32>,
    /// On the present connection.
    known: bool,
}

/// A statement that is ready to be sent.
struct Ready {
    /// Operation and step.
    statement: (usize, usize),
    messages: Vec<u8>,
    copies: bool,
    expect: Expect,
}

/// What was read of the answer to the statement that was sent last.
#[derive(Default)]
struct UnderWay {
    answer: Answer,
    /// Rows that it returned.
    rows: u64,
    parsed: bool,
    /// A row is not the expected one.
    differs: bool,
    /// The version of the row that was returned last.
    version: Option<i64>,
}

impl UnderWay {
    fn take(&mut self, message: Message<'_>, expect: &Expect) -> Option<Answered> {
        let Self { answer, rows, parsed, differs, version } = self;
        answer.take(message, &mut |tag, row| match tag {
            b'1' => *parsed = true,
            _ => {
                *rows += 1;
                if let Expect::Row { row: expected, known, .. } = expect {
                    *version = version_of(row);
                    // A version beyond those that are counted is the same as its remainder.
                    let same = version.filter(|version| known.ahead(*version) == 0);
                    *differs |= same.is_none_or(|version| with_version(expected, version) != row);
                }
            }
        })
    }
}

pub(super) struct PgSession<'a> {
    server: &'a Server,
    plan: &'a Plan,
    rows: Rows,
    cancel: &'a AtomicBool,
    statements: Vec<Vec<Statement>>,
    /// The types of each table's columns.
    types: Vec<Vec<PgType>>,
    connection: Option<BlockingConnection>,
    /// The steps of the operation; what is behind `steps` keeps its memory for later ones.
    ready: Vec<Ready>,
    steps: usize,
    columns: ArrayColumns,
    transaction: bool,
    under_way: UnderWay,
}

impl<'a> PgSession<'a> {
    pub(super) fn new(
        server: &'a Server,
        plan: &'a Plan,
        mut rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        rows.server_counts = true;
        let types: Vec<Vec<PgType>> = rows
            .tables
            .iter()
            .map(|table| table.maker.column_types().map(|(_, pg_type)| pg_type).collect())
            .collect();
        let mut all = Vec::new();
        for (i, operation) in plan.operations.iter().enumerate() {
            let steps = operation.steps.iter().enumerate();
            let statement = |(j, work)| Statement::new(plan, work, &rows, &types, (i, j));
            all.push(steps.map(statement).collect::<Result<Vec<Statement>>>()?);
        }
        Ok(Self {
            server,
            plan,
            rows,
            cancel,
            statements: all,
            types,
            connection: None,
            ready: Vec::new(),
            steps: 0,
            columns: ArrayColumns::default(),
            transaction: false,
            under_way: UnderWay::default(),
        })
    }

    /// Makes the messages of one step; an outcome if there is no row for it.
    fn make(&mut self, operation: usize, step: usize, draw: u64) -> Result<Option<Outcome>> {
        let Self { plan, rows, ready, steps, columns, types, .. } = self;
        let work = &plan.operations[operation].steps[step];
        let Statement { name, count, .. } = &self.statements[operation][step];
        if ready.len() == *steps {
            let (messages, expect) = (Vec::new(), Expect::Anything);
            ready.push(Ready { statement: (0, 0), messages, copies: false, expect });
        }
        let ready = &mut ready[*steps];
        let out = &mut ready.messages;
        out.clear();
        let expect = match work {
            Work::Copy { .. } => {
                let expect = push(out, b'd', |out| {
                    out.extend_from_slice(HEADER);
                    let expect = arguments(rows, work, draw, &mut CopyRows(out));
                    out.extend_from_slice(&TRAILER);
                    expect
                });
                push(out, b'c', |_| {});
                expect
            }
            Work::Unnest { table, .. } => {
                let expect = arguments(rows, work, draw, columns);
                bind(out, name, *count, |out| columns.append_to(out, &types[*table]));
                expect
            }
            _ => bind(out, name, *count, |out| arguments(rows, work, draw, &mut Parameters(out))),
        };
        let Some(expect) = expect? else { return Ok(Some(Outcome::no_row())) };
        (ready.statement, ready.copies, ready.expect) =
            ((operation, step), matches!(work, Work::Copy { .. }), expect);
        *steps += 1;
        Ok(None)
    }

    /// Sends a statement and reads its answer.
    fn run(&mut self, at: usize) -> io::Result<std::result::Result<u64, Failure>> {
        let mut given_up = patience(self.plan.patience(), self.cancel);
        if let Err(report) = self.send(at)? {
            return Ok(Err(refused(&report)));
        }
        loop {
            let Some(connection) = &mut self.connection else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let message = connection.message(&mut given_up)?;
            if let Some(answered) = self.under_way.take(message, &self.ready[at].expect) {
                return Ok(self.judge(at, answered));
            }
        }
    }

    /// Sends a statement; an error of the server is one of COPY, which it has to agree to first.
    fn send(&mut self, at: usize) -> io::Result<std::result::Result<(), ServerReport>> {
        let (Some(connection), Some(ready)) = (&mut self.connection, self.ready.get(at)) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.under_way = UnderWay::default();
        let statement = &self.statements[ready.statement.0][ready.statement.1];
        if ready.copies {
            if let Err(report) =
                begin_copy(connection, &statement.sql, &mut patience(self.plan.patience(), self.cancel))?
            {
                return Ok(Err(report));
            }
        } else if !statement.known {
            parse(&mut connection.out, &statement.name, &statement.sql, &statement.oids);
        }
        connection.out.extend_from_slice(&ready.messages);
        connection.send().map(Ok)
    }

    /// Judges the whole answer to a statement.
    fn judge(&mut self, at: usize, answered: Answered) -> std::result::Result<u64, Failure> {
        let UnderWay { rows, parsed, differs, version, .. } = self.under_way;
        let ready = &self.ready[at];
        let statement = &mut self.statements[ready.statement.0][ready.statement.1];
        // Known from the moment it was parsed, even if carrying it out failed.
        statement.known |= parsed && !statement.name.is_empty();
        match answered {
            Ok(count) => ready.expect.judge(&self.rows, count.unwrap_or(rows), !differs, version),
            Err(report) => {
                statement.known &= report.code != UNKNOWN_STATEMENT;
                Err(refused(&report))
            }
        }
    }

    /// The outcome of an operation of one statement.
    fn ended(&mut self, ended: io::Result<std::result::Result<u64, Failure>>) -> Outcome {
        match ended {
            Ok(Ok(rows)) => Outcome::Ok(rows),
            Ok(Err(failure)) => self.failed(failure),
            Err(error) => {
                self.connection = None;
                Outcome::Failed(lost(&error, false))
            }
        }
    }

    fn simple(&mut self, sql: &str) -> io::Result<std::result::Result<(), ServerReport>> {
        let mut given_up = patience(self.plan.patience(), self.cancel);
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        query(&mut connection.out, sql);
        connection.send()?;
        Ok(answer(connection, &mut |_, _| {}, &mut given_up)?.map(drop))
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
        for at in 0..self.steps {
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

    /// Reads what has come of the answer to the operation's only statement; `None` if more is to come.
    fn read(&mut self) -> io::Result<Option<Answered>> {
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        connection.read()?;
        while let Some(message) = connection.message_read()? {
            if let Some(answered) = self.under_way.take(message, &self.ready[0].expect) {
                return Ok(Some(answered));
            }
        }
        Ok(None)
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
            self.connection = Some(BlockingConnection::open(self.server, &|| self.cancel.load(Relaxed))?);
            self.statements.iter_mut().flatten().for_each(|statement| statement.known = false);
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(connection) = &mut self.connection {
            push(&mut connection.out, b'X', |_| {});
            // A server that is gone needs no farewell.
            let _ = connection.send();
        }
        self.connection = None;
    }

    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>> {
        self.steps = 0;
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
        let ended = self.run(0);
        self.ended(ended)
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        self.connection.as_ref().and_then(BlockingConnection::descriptor)
    }

    fn begin(&mut self) -> Option<Outcome> {
        let ended = match self.send(0) {
            Ok(Ok(())) => return None,
            Ok(Err(report)) => Ok(Err(refused(&report))),
            Err(error) => Err(error),
        };
        Some(self.ended(ended))
    }

    fn progress(&mut self) -> Option<Outcome> {
        let ended = match self.read() {
            Ok(None) => return None,
            Ok(Some(answered)) => Ok(self.judge(0, answered)),
            Err(error) => Err(error),
        };
        Some(self.ended(ended))
    }

    fn give_up(&mut self) -> Outcome {
        self.ended(Err(io::ErrorKind::TimedOut.into()))
    }

    fn settle(&mut self, outcome: &Outcome) {
        self.rows.settle(outcome);
    }
}

impl Statement {
    fn new(plan: &Plan, work: &Work, rows: &Rows, types: &[Vec<PgType>], at: (usize, usize)) -> Result<Self> {
        let columns = |table: &usize| types.get(*table).map_or(0, Vec::len);
        let (count, prepared) = match work {
            Work::Insert { table, rows, prepared, .. } => (columns(table) * *rows as usize, *prepared),
            Work::Unnest { table, prepared, .. } | Work::Update { table, prepared, .. } => {
                (columns(table), *prepared)
            }
            Work::Delete { prepared, .. } | Work::Select { prepared, .. } => (1, *prepared),
            Work::Sql { parameters, prepared, .. } => (parameters.len(), *prepared),
            Work::Copy { .. } | Work::Bulk { .. } => (0, false),
        };
        let mut oids = Vec::new();
        if let Work::Sql { table, parameters, .. } = work {
            let of = |column| types.get(*table).and_then(|types| types.get(column));
            oids = parameters
                .iter()
                .map(|parameter| of(parameter.column).map_or(0, |pg_type| statements::oid(*pg_type)))
                .collect();
        }
        let sql = statements::of(plan, work, &rows.tables, true)?;
        let name = if prepared { format!("s{}_{}", at.0, at.1) } else { String::new() };
        Ok(Self { sql, name, count: count as u16, oids, known: false })
    }
}

/// Whether to give up waiting for an answer. It is asked when the first one has not come at once: an operation that
/// ends sooner needs no look at the clock.
fn patience(most: Duration, cancel: &AtomicBool) -> impl FnMut() -> bool {
    let mut first: Option<Instant> = None;
    move || cancel.load(Relaxed) || first.get_or_insert_with(Instant::now).elapsed() >= most
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
