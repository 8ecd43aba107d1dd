//! The plan of a run.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rand::distr::weighted::WeightedIndex;
use sawmill_generator::Dataset;
use sawmill_pgcopy::PgType;
use sawmill_source::{Error, Kind, Result};

use crate::arrivals::process::Arrivals;
use crate::arrivals::shape::Shape;
use crate::mix::pick::Pick;
use crate::plan::abort::Abort;
use crate::plan::limit::Limit;
use crate::plan::pooling::{Pooling, Reconnect};

/// Everything that a run does.
#[derive(Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The tables that operations write and read.
    pub tables: Vec<PlanTable>,
    /// The operations.
    pub operations: Vec<Operation>,
    /// When operations begin.
    pub pace: Pace,
    /// How long the part lasts that counts; by default as long as the shape, or a minute.
    pub length: Option<Duration>,
    /// How long the part before it lasts.
    pub warm_up: Duration,
    /// Connections of an open loop; in a closed loop each client has one.
    pub connections: usize,
    /// Decides all random draws.
    pub seed: u64,
    /// The isolation level of transactions, if not the server's default.
    pub isolation: Option<String>,
    /// How long a statement may take.
    pub timeout: Duration,
    /// How often an operation is retried after a serialization failure or a deadlock.
    pub retries: u32,
    /// How long connections are kept.
    pub pooling: Pooling,
    /// How an operation waits until a lost connection can be opened again.
    pub reconnect: Reconnect,
    /// Statements that return no rows after the run if the database is correct.
    pub checks: Vec<PlanCheck>,
    /// Limits that the result has to keep.
    pub limits: Vec<Limit>,
    /// Conditions that end the run early.
    pub abort_when: Vec<Abort>,
    /// The number of this driving process, and how many there are.
    pub part: (u64, u64),
    /// When to start, for several processes.
    pub start_at: Option<SystemTime>,
    /// What to do to the server during the run.
    pub chaos: Option<Chaos>,
    /// Whether the rows are compared with the acknowledged writes afterwards.
    pub proof: bool,
    /// Whether tables that exist are dropped first.
    pub overwrite: bool,
    /// Whether tables are dropped after the run.
    pub drop_after: bool,
}

/// When operations begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// At intended times.
    Open {
        /// The rate over time; not used by a trace.
        shape: Shape,
        /// How they are spread.
        arrivals: Arrivals,
    },
    /// When the one before has ended.
    Closed {
        /// How many at a time.
        clients: usize,
        /// How long a client waits between two operations.
        think: Duration,
    },
}

/// A table whose rows are functions of their numbers.
#[derive(Debug)]
pub struct PlanTable {
    /// Its name in the database.
    pub name: String,
    /// The dataset of its rows.
    pub dataset: Arc<Dataset>,
    /// Rows that are inserted before the run.
    pub rows: u64,
    /// The text in parentheses after WITH in its CREATE TABLE: `fillfactor = 70`.
    pub with: Option<String>,
}

/// Something that is done over and over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its name in results.
    pub name: String,
    /// How often it is chosen, relative to the others.
    pub weight: f64,
    /// The rows that custom statements take their parameters from.
    pub rows: Vec<ChosenRow>,
    /// Variables that custom statements read for later ones.
    pub variables: Vec<Variable>,
    /// One statement, or several that are carried out one after the other.
    pub steps: Vec<Work>,
    /// The steps are one transaction.
    pub transaction: bool,
}

/// A statement that runs after the run; each row that it returns is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCheck {
    /// Its name in results.
    pub name: String,
    /// The statement.
    pub sql: String,
}

/// A row that is chosen before an operation begins.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenRow {
    /// Its name in statements; empty for a row of one statement's `parameters`.
    pub name: String,
    /// Which table.
    pub table: usize,
    /// An earlier row, or a new one.
    pub old: bool,
    /// Which earlier row.
    pub pick: Pick,
    /// How the operation changes it.
    pub writes: Writes,
}

/// A value that one statement reads and later ones use.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name in statements.
    pub name: String,
    /// Its type; a value of another type is an error of the operation.
    pub pg_type: PgType,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// `INSERT` of new rows.
    Insert {
        /// Which table.
        table: usize,
        /// Rows of one statement.
        rows: u64,
        /// The statement is prepared once for each connection.
        prepared: bool,
        /// `ON CONFLICT (sawmill_row) DO UPDATE`; half of the rows are earlier ones.
        upsert: bool,
    },
    /// `COPY` of new rows; on CrateDB one request with `bulk_args`.
    Copy {
        /// Which table.
        table: usize,
        /// Rows of one statement.
        rows: u64,
    },
    /// `INSERT ... SELECT FROM UNNEST` of an array for each column.
    Unnest {
        /// Which table.
        table: usize,
        /// Rows of one statement.
        rows: u64,
        /// The statement is prepared once for each connection.
        prepared: bool,
    },
    /// `UPDATE` of an earlier row to other values that its number decides.
    Update {
        /// Which table.
        table: usize,
        /// Which row.
        pick: Pick,
        /// The statement is prepared once for each connection.
        prepared: bool,
    },
    /// `DELETE` of an earlier row.
    Delete {
        /// Which table.
        table: usize,
        /// Which row.
        pick: Pick,
        /// The statement is prepared once for each connection.
        prepared: bool,
    },
    /// `SELECT` of an earlier row by its number; the row must exist with its values.
    Select {
        /// Which table.
        table: usize,
        /// Which row.
        pick: Pick,
        /// The statement is prepared once for each connection.
        prepared: bool,
    },
    /// Any statement.
    Sql {
        /// The statement, with `$1`, `$2`, ...
        sql: String,
        /// The parameters.
        parameters: Vec<Parameter>,
        /// The variables that the only row of its answer sets, column by column.
        into: Vec<usize>,
        /// How many rows it has to return or to change.
        expect: Option<u64>,
        /// How it changes rows.
        writes: Writes,
        /// The statement is prepared once for each connection.
        prepared: bool,
    },
}

/// How a custom statement changes the rows of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// It only reads.
    Nothing,
    /// It inserts the row `new`, perhaps with other values.
    Insert,
    /// It gives the row `old` other values.
    Update,
    /// It deletes the row `old`.
    Delete,
    /// It writes, and the plan does not declare how.
    Undeclared,
}

impl Writes {
    /// Guesses from the words of a statement.
    pub(crate) fn of_statement(sql: &str) -> Self {
        const READING: [&str; 5] = ["select", "values", "table", "show", "set"];
        const WRITING: [&str; 4] = ["insert", "update", "delete", "merge"];
        let words: Vec<String> = words(sql).collect();
        let first = words.first().map_or("", String::as_str);
        // EXPLAIN ANALYZE carries its statement out.
        let wraps = ["with", "explain"].contains(&first);
        match READING.contains(&first) || wraps && !words.iter().any(|word| WRITING.contains(&word.as_str()))
        {
            true => Self::Nothing,
            false => Self::Undeclared,
        }
    }
}

/// Whether a statement returns rows and writes nothing.
pub(crate) fn is_query(sql: &str) -> bool {
    Writes::of_statement(sql) == Writes::Nothing && words(sql).next().is_some_and(|first| first != "set")
}

/// The words of a statement, in lower case, after its leading comments.
fn words(sql: &str) -> impl Iterator<Item = String> {
    let mut rest = sql.trim_start();
    while let Some((comment, end)) =
        [("--", "\n"), ("/*", "*/")].iter().find(|(begin, _)| rest.starts_with(begin))
    {
        rest = rest[comment.len()..].split_once(end).map_or("", |(_, rest)| rest).trim_start();
    }
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

impl Work {
    /// Whether it may write rows of the table of this name, and does not say which.
    fn may_write(&self, table: &str) -> bool {
        // The code of a procedure names the tables, not its call.
        const CALLS: [&str; 3] = ["call", "do", "execute"];
        let name: Vec<String> = words(table.rsplit('.').next().unwrap_or(table)).collect();
        let Self::Sql { sql, writes: Writes::Undeclared, .. } = self else { return false };
        let words: Vec<String> = words(sql).collect();
        let calls = words.first().is_some_and(|first| CALLS.contains(&first.as_str()));
        calls || name.is_empty() || words.windows(name.len()).any(|words| words == name)
    }

    /// The table that gets new rows.
    fn new_rows(&self) -> Option<usize> {
        match self {
            Self::Insert { table, .. } | Self::Copy { table, .. } | Self::Unnest { table, .. } => {
                Some(*table)
            }
            _ => None,
        }
    }

    /// The table of the earlier row whose values it needs, and which row that is.
    fn earlier_row(&self) -> Option<(usize, Pick)> {
        match self {
            Self::Update { table, pick, .. } | Self::Select { table, pick, .. } => Some((*table, *pick)),
            Self::Insert { table, upsert: true, .. } => Some((*table, Pick::Uniform)),
            _ => None,
        }
    }
}

impl Operation {
    /// The tables that get new rows.
    pub(crate) fn new_rows(&self) -> impl Iterator<Item = usize> {
        let chosen = self.rows.iter().filter(|row| !row.old).map(|row| row.table);
        self.steps.iter().filter_map(Work::new_rows).chain(chosen)
    }

    /// The tables of the earlier rows whose values it needs, and which rows these are.
    pub(crate) fn earlier_rows(&self) -> impl Iterator<Item = (usize, Pick)> {
        let chosen = self.rows.iter().filter(|row| row.old).map(|row| (row.table, row.pick));
        self.steps.iter().filter_map(Work::earlier_row).chain(chosen)
    }

    /// Whether it may write rows of this table, and the plan does not say which.
    pub(crate) fn may_write(&self, place: usize, table: &str) -> bool {
        let says = |row: &ChosenRow| row.table == place && row.writes != Writes::Undeclared;
        !self.rows.iter().any(says) && self.steps.iter().any(|step| step.may_write(table))
    }
}

/// How much longer than a statement may take to wait for the server's answer that it took too long.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(5);

impl Plan {
    /// How long to wait for an answer: the timeout, and then the time that the server's own report of it takes.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.saturating_add(BEYOND_TIMEOUT)
    }

    /// How often each operation is chosen.
    ///
    /// # Errors
    /// No operation has a weight above 0, or one has less.
    pub(crate) fn weights(&self) -> Result<WeightedIndex<f64>> {
        WeightedIndex::new(self.operations.iter().map(|operation| operation.weight)).map_err(|error| {
            let what = format!("the weights of the operations cannot be used: {error}");
            Error::new(Kind::Config, what)
                .advise("give each a weight of 0 or more, and one of them more than 0")
        })
    }

    /// How many operations may be under way at once: connections, or clients of a closed loop.
    pub fn parallel(&self) -> usize {
        match self.pace {
            Pace::Open { .. } => self.connections,
            Pace::Closed { clients, .. } => clients,
        }
    }
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A column of a chosen row.
    Column {
        /// Index of the row among the operation's rows.
        row: usize,
        /// Index of the column; 0 is the row number.
        column: usize,
    },
    /// The value that an earlier statement of the operation has read, by its index among the variables.
    Variable(usize),
}

/// An action that is repeated during the run, to disturb the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chaos {
    /// The action.
    pub action: ChaosAction,
    /// How often.
    pub every: Duration,
}

/// An action that disturbs the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChaosAction {
    /// All its processes are killed and it is started again: a server that this command started.
    KillServer,
    /// All its processes are stopped for a while: the same.
    StopServer(Duration),
    /// A command of the user's, run by `sh -c`.
    Command(String),
}

impl std::str::FromStr for Chaos {
    type Err = String;

    /// `kill server every 30s`, `stop server for 1s every 30s`, `COMMAND every 30s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?}: give `kill server every 30s`, `stop server for 1s every 30s`, or a command of your own: \
                 `docker restart db every 1m`"
            )
        };
        let (action, every) = text.rsplit_once(" every ").ok_or_else(refused)?;
        let time = |text: &str| {
            sawmill_profile::parse_duration(text.trim())
                .ok()
                .filter(|time| !time.is_zero())
                .ok_or_else(refused)
        };
        let action = match action.trim() {
            "" => return Err(refused()),
            "kill server" => ChaosAction::KillServer,
            other => match other.strip_prefix("stop server for ") {
                Some(length) => ChaosAction::StopServer(time(length)?),
                None => ChaosAction::Command(other.to_owned()),
            },
        };
        Ok(Self { action, every: time(every)? })
    }
}

impl std::fmt::Display for ChaosAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KillServer => f.write_str("kill server"),
            Self::StopServer(time) => {
                write!(f, "stop server for {}", sawmill_profile::format_duration(*time))
            }
            Self::Command(command) => f.write_str(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_write_a_table_is_known_by_its_words() {
        let writes_table = |sql: &str, table: &str| {
            let work = Work::Sql {
                sql: sql.to_owned(),
                parameters: Vec::new(),
                into: Vec::new(),
                expect: None,
                writes: Writes::of_statement(sql),
                prepared: true,
            };
            work.may_write(table)
        };
        let may_write = |sql: &str| writes_table(sql, "shop.Events");
        for sql in [
            "UPDATE events SET x = 1",
            "WITH old AS (DELETE FROM events RETURNING *) SELECT * FROM old",
            "EXPLAIN (ANALYZE) INSERT INTO events VALUES (1)",
            "CALL transfer($1, $2)",
            "DO $$ BEGIN PERFORM 1; END $$",
            "/* old rows */ -- select\nDELETE FROM events",
        ] {
            assert!(may_write(sql), "{sql}");
        }
        for sql in [
            "SELECT * FROM events",
            "UPDATE others SET x = 1",
            "WITH all AS (SELECT * FROM events) SELECT * FROM all",
            "EXPLAIN SELECT * FROM events",
        ] {
            assert!(!may_write(sql), "{sql}");
        }
        let of_lines = |sql: &str| writes_table(sql, "shop.Order-lines 2");
        assert!(of_lines("UPDATE shop.\"Order-lines 2\" SET x = 1"));
        assert!(!of_lines("UPDATE \"Order-lines\" SET x = 2"));
    }
}
