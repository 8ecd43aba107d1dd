//! A connection to PostgreSQL that carries out operations: their messages are made before they are due.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_pgcopy::{HEADER, PgType, TRAILER};
use sawmill_pgwire::{BlockingConnection, Message, Server, ServerReport};
use sawmill_source::Result;

use crate::mix::block::{fields, version_of, with_version};
use crate::plan::own_statement::type_name;
use crate::plan::types::{Operation, Parameter, Plan, Variable, Work, Writes};
use crate::work::outcome::{Failure, Outcome};
use crate::work::postgres::arguments::{ArrayColumns, CopyRows, Parameters};
use crate::work::postgres::messages::{
    Answer, Answered, answer, begin_copy, bind, column_types, parse, push, query,
};
use crate::work::reads::Reads;
use crate::work::rows::{DRAWS, Rows};
use crate::work::statements;
use crate::work::step::{Expect, arguments};
use crate::work::target::Session;

/// The server does not know the prepared statement: a pooler has switched to another server connection.
const UNKNOWN_STATEMENT: &str = "26000";

/// Levels at which all reads of a transaction see the same rows.
const SNAPSHOTS: [&str; 2] = ["repeatable read", "serializable"];

/// A statement of the plan.
struct Statement {
    sql: String,
    /// Empty if it is not prepared.
    name: String,
    /// How many parameters.
    count: u16,
    /// Their types, if they are not the server's choice.
    oids: Vec<u32>,
    /// It takes what earlier statements of the operation read: it is made when it is sent.
    takes_variables: bool,
    /// On the present connection.
    known: bool,
}

/// A statement that is ready to be sent.
#[derive(Default)]
struct Ready {
    /// Operation and step.
    statement: (usize, usize),
    messages: Vec<u8>,
    copies: bool,
    expect: Expect,
}

/// The parts read so far of the answer to the last statement.
#[derive(Default)]
struct UnderWay {
    answer: Answer,
    /// Rows that it returned.
    rows: u64,
    parsed: bool,
    /// The row that variables are read from, and the types of its columns.
    read: Vec<u8>,
    types: Vec<u32>,
    /// A row is not the expected one.
    differs: bool,
    /// The version of the row that was returned last.
    version: Option<i64>,
}

impl UnderWay {
    fn take(&mut self, message: Message<'_>, expect: &Expect) -> Option<Answered> {
        let Self { answer, rows, parsed, read, types, differs, version } = self;
        answer.take(message, &mut |tag, row| match (tag, expect) {
            (b'1', _) => *parsed = true,
            (b'T', _) => *types = column_types(row),
            (_, Expect::Row { row: expected, known, .. }) => {
                *rows += 1;
                *version = version_of(row);
                // A version beyond those that are counted is the same as its remainder.
                let same = version.filter(|version| known.ahead(*version) == 0);
                *differs |= same.is_none_or(|version| with_version(expected, version) != row);
            }
            (_, expect) => {
                *rows += 1;
                if matches!(expect, Expect::Variables) {
                    *read = row.to_vec();
                }
            }
        })
    }

    /// The value of a variable, by its place in the row that was read.
    fn variable(
        &self,
        place: usize,
        Variable { name, pg_type }: &Variable,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let wrong = |what: &str| Failure::variable(format!("{name} has no value: {what}"));
        let found = self.types.get(place).ok_or_else(|| wrong("the row has too few columns"))?;
        if *found != statements::oid(*pg_type) {
            let found = type_name(*found, statements::oid);
            return Err(wrong(&format!("{found} was read where {pg_type} is declared")));
        }
        let field = fields(&self.read).nth(place).flatten();
        field.map(<[u8]>::to_vec).ok_or_else(|| wrong("NULL was read"))
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
    /// The steps of the operation; elements beyond `steps` keep their memory for later ones.
    ready: Vec<Ready>,
    steps: usize,
    columns: ArrayColumns,
    /// The values that statements of the operation have read.
    variables: Vec<Vec<u8>>,
    transaction: bool,
    /// The transaction sees the same rows in all its reads.
    snapshot: bool,
    reads: Reads,
    /// The step that was sent last.
    sent: usize,
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
        let types = rows.types();
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
            variables: Vec::new(),
            transaction: false,
            snapshot: false,
            reads: Reads::default(),
            sent: 0,
            under_way: UnderWay::default(),
        })
    }

    /// Makes the messages of one step, or returns an outcome if the step finds no row.
    fn make(&mut self, at: usize, draw: u64) -> Result<Option<Outcome>> {
        let Self { plan, rows, ready, columns, variables, types, .. } = self;
        let ready = &mut ready[at];
        let (operation, step) = ready.statement;
        let work = &plan.operations[operation].steps[step];
        let Statement { name, count, .. } = &self.statements[operation][step];
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
                bind(out, name, *count, false, |out| columns.append_to(out, &types[*table]));
                expect
            }
            _ => {
                let reads = matches!(work, Work::Sql { into, .. } if !into.is_empty());
                bind(out, name, *count, reads, |out| {
                    arguments(rows, work, draw, &mut Parameters { out, variables })
                })
            }
        };
        let Some(expect) = expect? else { return Ok(Some(Outcome::no_row())) };
        (ready.copies, ready.expect) = (matches!(work, Work::Copy { .. }), expect);
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
        let (operation, step) = self.ready[at].statement;
        if self.statements[operation][step].takes_variables {
            self.make(at, 0).map_err(io::Error::other)?;
        }
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        self.under_way = UnderWay::default();
        let (ready, statement) = (&self.ready[at], &self.statements[operation][step]);
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
        let under_way = &self.under_way;
        let ready = &self.ready[at];
        let (operation, step) = ready.statement;
        let statement = &mut self.statements[operation][step];
        // Known from the moment it was parsed, even if carrying it out failed.
        statement.known |= under_way.parsed && !statement.name.is_empty();
        let count = answered.map_err(|report| {
            statement.known &= report.code != UNKNOWN_STATEMENT;
            refused(&report)
        })?;
        if under_way.answer.rolled_back {
            not_rolled_back(&statement.sql)?;
        }
        let count = count.unwrap_or(under_way.rows);
        let count = ready.expect.judge(&self.rows, count, !under_way.differs, under_way.version)?;
        if self.transaction
            && let Some((table, number)) = ready.expect.compared(&self.rows)
        {
            let changes = self.rows.changes(table, number);
            let noted = self.reads.note((table, number), under_way.version, changes);
            noted.map_err(|what| self.rows.tables[table].wrong_read(number, &what))?;
        }
        let operation = &self.plan.operations[operation];
        if let Work::Sql { into, .. } = &operation.steps[step] {
            for (place, number) in into.iter().enumerate() {
                let value = under_way.variable(place, &operation.variables[*number])?;
                self.variables.resize(operation.variables.len(), Vec::new());
                self.variables[*number] = value;
            }
        }
        Ok(count)
    }

    /// Carries out the steps, one after the other; the last one that was sent is `self.sent`.
    fn sequence(&mut self) -> io::Result<std::result::Result<u64, Failure>> {
        let mut rows = 0;
        for at in 0..self.steps {
            self.sent = at;
            match self.run(at)? {
                Ok(count) => rows += count,
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(rows))
    }

    fn simple(&mut self, sql: &str) -> io::Result<std::result::Result<(), Failure>> {
        let mut given_up = patience(self.plan.patience(), self.cancel);
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        query(&mut connection.out, sql);
        connection.send()?;
        Ok(match answer(connection, &mut given_up)? {
            Ok(true) => not_rolled_back(sql),
            Ok(false) => Ok(()),
            Err(report) => Err(refused(&report)),
        })
    }

    fn transaction(&mut self) -> Outcome {
        let lost = |this: &mut Self, error: &io::Error, without_effect| {
            this.connection = None;
            Outcome::Failed(lost(error, without_effect))
        };
        self.reads.begin(self.snapshot);
        // A pooler may have switched to a server connection whose session has another level.
        let level = self.plan.isolation.as_ref().map(|level| format!(" ISOLATION LEVEL {level}"));
        let begun = match self.simple(&format!("BEGIN{}", level.unwrap_or_default())) {
            Ok(Ok(())) => self.sequence(),
            Ok(Err(failure)) => Ok(Err(failure)),
            Err(error) => Err(error),
        };
        let rows = match begun {
            Ok(Ok(rows)) => rows,
            Ok(Err(failure)) => {
                if !failure.keeps_connection() || !matches!(self.simple("ROLLBACK"), Ok(Ok(()))) {
                    self.connection = None;
                }
                // Changes that were not committed had no effect.
                return Outcome::Failed(Failure { without_effect: true, ..failure });
            }
            Err(error) => return lost(self, &error, true),
        };
        match self.simple("COMMIT") {
            Ok(Ok(())) => Outcome::Ok(rows),
            Ok(Err(failure)) => self.failed(failure),
            Err(error) => lost(self, &error, false),
        }
    }

    fn failed(&mut self, failure: Failure) -> Outcome {
        if !failure.keeps_connection() {
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
        let Operation { rows, steps, transaction, .. } = &self.plan.operations[operation];
        (self.steps, self.transaction) = (steps.len(), *transaction);
        let level = self.plan.isolation.as_deref().unwrap_or_default();
        // A statement that declares nothing may end the transaction.
        let may_end = |work: &Work| matches!(work, Work::Sql { writes: Writes::Undeclared, .. });
        self.snapshot = SNAPSHOTS.contains(&level) && !steps.iter().any(may_end);
        if !self.rows.choose(rows, draw)? {
            return Ok(Some(Outcome::no_row()));
        }
        for step in 0..self.steps {
            if self.ready.len() == step {
                self.ready.push(Ready::default());
            }
            self.ready[step].statement = (operation, step);
            if self.statements[operation][step].takes_variables {
                continue;
            }
            if let Some(outcome) = self.make(step, draw.wrapping_add(step as u64 * DRAWS))? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn execute(&mut self) -> Outcome {
        if self.transaction {
            return self.transaction();
        }
        match self.sequence() {
            Ok(Ok(rows)) => Outcome::Ok(rows),
            Ok(Err(failure)) => {
                // Earlier steps had their effect.
                let without_effect = failure.without_effect && self.sent == 0;
                if !failure.keeps_connection() {
                    self.connection = None;
                }
                Outcome::Failed(Failure { without_effect, ..failure })
            }
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
            Work::Copy { .. } => (0, false),
        };
        let (mut oids, mut takes_variables) = (Vec::new(), false);
        if let Work::Sql { parameters, .. } = work {
            let operation = &plan.operations[at.0];
            let of = |parameter: &Parameter| match parameter {
                Parameter::Column { row, column } => types[operation.rows[*row].table][*column],
                Parameter::Variable(number) => operation.variables[*number].pg_type,
            };
            oids = parameters.iter().map(|parameter| statements::oid(of(parameter))).collect();
            takes_variables = parameters.iter().any(|parameter| matches!(parameter, Parameter::Variable(_)));
        }
        let sql = statements::for_step(plan, work, &rows.tables, true)?;
        let name = if prepared { format!("s{}_{}", at.0, at.1) } else { String::new() };
        Ok(Self { sql, name, count: count as u16, oids, takes_variables, known: false })
    }
}

/// Decides whether to give up waiting for an answer. It is only asked if the answer does not arrive at once, so
/// that quick operations need no look at the clock.
fn patience(most: Duration, cancel: &AtomicBool) -> impl FnMut() -> bool {
    let mut first: Option<Instant> = None;
    move || cancel.load(Relaxed) || first.get_or_insert_with(Instant::now).elapsed() >= most
}

fn refused(report: &ServerReport) -> Failure {
    let kind = if report.code == "57014" { "timeout" } else { &report.code };
    // A session that ends may have ended after the statement took effect.
    Failure::new(kind, report.message.clone(), !report.fatal)
}

/// The failure of a statement that the server answered with ROLLBACK although it was to commit.
fn not_rolled_back(sql: &str) -> std::result::Result<(), Failure> {
    let word = sql.split_whitespace().next().unwrap_or_default().trim_end_matches(';');
    // PREPARE of a statement is never answered with ROLLBACK.
    match ["commit", "end", "prepare"].iter().any(|commits| word.eq_ignore_ascii_case(commits)) {
        true => Err(Failure::new("40000", format!("{word} was answered with ROLLBACK"), true)),
        false => Ok(()),
    }
}

fn lost(error: &io::Error, without_effect: bool) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::new("timeout", "no answer in time", without_effect),
        _ => Failure::new("lost", format!("the connection was lost: {error}"), without_effect),
    }
}
