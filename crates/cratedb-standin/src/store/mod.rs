//! Tables in memory, and statements executed on them by the rules of the real server.
//!
//! A primary key look-up sees rows immediately; everything else sees them after REFRESH.

mod bulk;
mod catalogue;
mod condition;
mod define;
pub(crate) mod jobs;
mod run;
mod select;
mod table;
pub(crate) mod unnest;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sql::{Name, Statement, parse};

pub(crate) use bulk::{Planned, complete};
use table::Table;

/// The version whose answers these are.
pub(crate) const VERSION: &str = "6.4.3";

/// All tables.
#[derive(Debug, Default)]
pub struct Engine {
    tables: Mutex<BTreeMap<Name, Table>>,
    jobs: jobs::Jobs,
    /// The version to report, if not [`VERSION`].
    version: Mutex<Option<String>>,
    /// The user may not read the schema `sys`.
    denies_sys: AtomicBool,
    /// A rename leaves the shards open: statements planned before it write to the renamed table.
    keeps_shards_open: AtomicBool,
}

/// The result of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Names of the columns of `rows`.
    pub(crate) columns: Vec<String>,
    /// Values as JSON.
    pub(crate) rows: Vec<Vec<String>>,
    /// The number of rows changed or selected.
    pub(crate) count: i64,
}

/// The rejection of a whole request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Error {
    /// HTTP status.
    pub(crate) status: u16,
    /// CrateDB's code.
    pub(crate) code: u32,
    /// The error in words.
    pub(crate) message: String,
}

/// A row's result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowResult {
    /// 1, or 0 if a conflict was ignored.
    Count(i64),
    /// -2, with error code and message.
    Refused(u32, String),
    /// -2 without an error, after too many others in the shard.
    Bare,
}

impl Engine {
    /// The number of rows in a table, visible or not; `None` if the table does not exist.
    pub fn rows_in(&self, schema: &str, table: &str) -> Option<usize> {
        self.lock().get(&(schema.to_owned(), table.to_owned())).map(Table::len)
    }

    /// The values of a column as JSON, in rows that are visible or not; `None` if the table or column does not exist.
    pub fn values(&self, schema: &str, table: &str, column: &str) -> Option<Vec<String>> {
        self.lock().get(&(schema.to_owned(), table.to_owned()))?.values(column)
    }

    /// Names of all tables.
    pub fn table_names(&self) -> Vec<String> {
        self.lock().keys().map(|(schema, name)| format!("{schema}.{name}")).collect()
    }

    /// Loses the rows that were acknowledged but not yet on disk.
    pub fn crash(&self) {
        self.jobs.end_all();
        self.lock().values_mut().for_each(Table::crash);
    }

    pub(crate) fn jobs(&self) -> &jobs::Jobs {
        &self.jobs
    }

    /// Keeps `sys.jobs` empty, as `stats.enabled = false` does.
    pub fn list_no_jobs(&self) {
        self.jobs.hidden.store(true, Relaxed);
    }

    /// Names another version in `sys.nodes`.
    pub fn set_version(&self, version: &str) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
    }

    /// Hides the schema `sys`, as from a user without a privilege for it.
    pub fn deny_sys(&self) {
        self.denies_sys.store(true, Relaxed);
    }

    /// Renames tables without closing their shards, as CrateDB 6.3.0 to 6.3.5, 6.4.0 and 6.5.0 do: requests that were
    /// planned before go on into the renamed table.
    pub fn keep_shards_open(&self) {
        self.keeps_shards_open.store(true, Relaxed);
    }

    /// Has `KILL` end nothing, as CrateDB 6.4.3 does at times: jobs run to their end.
    pub fn end_no_jobs(&self) {
        self.jobs.unstoppable.store(true, Relaxed);
    }

    fn version(&self) -> String {
        let named = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        named.unwrap_or_else(|| VERSION.to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a table; an unknown table is an error.
    fn with<T>(&self, name: &Name, work: impl FnOnce(&mut Table) -> Result<T, Error>) -> Result<T, Error> {
        work(self.lock().get_mut(name).ok_or_else(|| unknown_table(name))?)
    }
}

impl Answer {
    /// The answer without rows: how many were changed.
    fn done(count: i64) -> Result<Answer, Error> {
        Ok(Answer { columns: Vec::new(), rows: Vec::new(), count })
    }

    /// The answer to `count(*)`.
    fn count(rows: usize) -> Answer {
        Answer { columns: vec!["count(*)".into()], rows: vec![vec![rows.to_string()]], count: 1 }
    }
}

pub(crate) fn error(status: u16, code: u32, message: impl Into<String>) -> Error {
    Error { status, code, message: message.into() }
}

fn unknown_table(name: &Name) -> Error {
    error(404, 4041, format!("RelationUnknown[Relation '{}.{}' unknown]", name.0, name.1))
}

fn parsed(sql: &str, schema: &str) -> Result<Statement, Error> {
    parse(sql, schema).map_err(|what| error(400, 4000, format!("SQLParseException[{what}]")))
}
