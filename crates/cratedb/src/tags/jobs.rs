//! Statements that still run although their connection is gone: finds them among the server's jobs, and kills them
//! or waits for them.
//!
//! `sys.jobs` has the statements that any node runs, with their text, unless `stats.enabled` is off
//! (<https://cratedb.com/docs/crate/reference/en/latest/admin/system-information.html#jobs-operations-and-logs>).

use sawmill_source::{Error, Kind, Result};

use serde_json::Value;

use crate::connect::sql::{Answer, Sql};
use crate::table::names::CrateTable;

/// The query for running statements.
const JOBS: &str = "SELECT id, stmt FROM sys.jobs";

/// As [`end`], of all inserts into a table.
pub(crate) fn end_inserts(sql: &mut Sql<'_>, table: &CrateTable, in_doubt: bool) -> Result<()> {
    let insert = format!("INSERT INTO {} ", table.quoted());
    end(sql, &|statement| statement.starts_with(&insert), in_doubt)
}

/// Kills the statements that `is_meant` selects, and returns when all of them have ended. If `KILL` ends nothing,
/// it waits for the statement. If a request may still run (`in_doubt`), the server has to show its jobs.
///
/// # Errors
/// The server keeps no list of jobs, or this user may not read it; a statement that does not end.
pub(crate) fn end(sql: &mut Sql<'_>, is_meant: &dyn Fn(&str) -> bool, in_doubt: bool) -> Result<()> {
    let mut waiting = sql.waiting();
    loop {
        let meant = running(sql, is_meant, in_doubt)?;
        if meant.is_empty() {
            return Ok(());
        }
        let count = meant.len();
        for id in meant.iter().filter(|id| id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')) {
            sql.run(&format!("KILL '{id}'"), &[])?;
        }
        let what = format!("{count} statements of this load still run at the server and do not end");
        let error = Error::new(Kind::Server, what)
            .at(sql.place())
            .advise("see sys.jobs; when they have ended, run the same command again to go on");
        sql.pause(&mut waiting, error)?;
    }
}

impl Sql<'_> {
    /// As [`run`](Self::run), for a statement that must not take effect again later: returns when no try of it runs any
    /// more whose connection was lost.
    ///
    /// # Errors
    /// As [`wait_for`]; the server refuses the statement.
    pub(crate) fn settled(&mut self, statement: &str, arguments: &[Value]) -> Result<Answer> {
        let tries = self.client.retried;
        let answer = self.unless_refused(statement, arguments)?;
        if self.client.retried > tries {
            wait_for(self, &|running| running == statement)?;
        }
        answer
    }

    pub(crate) fn drop_table(&mut self, table: &CrateTable) -> Result<()> {
        self.settled(&format!("DROP TABLE IF EXISTS {}", table.quoted()), &[]).map(drop)
    }
}

/// Returns when no statement runs that makes, changes, renames or drops a table in which rows gather for this one.
///
/// # Errors
/// As [`wait_for`].
pub(crate) fn wait_for_names(sql: &mut Sql<'_>, table: &CrateTable) -> Result<()> {
    let gathering = [table.staging().quoted(), table.sealed().quoted()];
    let changes = ["CREATE TABLE ", "ALTER ", "DROP TABLE "];
    let is_meant = |statement: &str| {
        changes.iter().any(|change| statement.starts_with(change))
            && gathering.iter().any(|name| statement.contains(name))
    };
    wait_for(sql, &is_meant)
}

/// Whether the server shows its jobs to this user. The query for them is one of the jobs.
pub(crate) fn are_shown(sql: &mut Sql<'_>) -> Result<bool> {
    match sql.unless_refused(JOBS, &[])? {
        Ok(answer) => Ok(!answer.rows()?.is_empty()),
        Err(_) => Ok(false),
    }
}

/// Returns when the statements have ended that now insert into a table or delete from it, whoever sent them; later
/// ones may run. If a request may still run (`in_doubt`), the server has to show its jobs.
///
/// # Errors
/// As [`end`]; a statement that runs for longer than the cluster's patience.
pub(crate) fn outlast(sql: &mut Sql<'_>, table: &CrateTable, in_doubt: bool) -> Result<()> {
    let beginnings = ["INSERT INTO", "DELETE FROM"].map(|verb| format!("{verb} {} ", table.quoted()));
    let is_meant = |statement: &str| beginnings.iter().any(|beginning| statement.starts_with(beginning));
    let mut waiting = sql.waiting();
    let mut first = running(sql, &is_meant, in_doubt)?;
    while !first.is_empty() {
        let what = format!("{} statements for the table still run at the server", first.len());
        let error = Error::new(Kind::Busy, what)
            .at(sql.place())
            .advise("see sys.jobs; when they have ended, run the same command again");
        sql.pause(&mut waiting, error)?;
        let now = running(sql, &is_meant, in_doubt)?;
        first.retain(|id| now.contains(id));
    }
    Ok(())
}

/// The IDs of the running statements that `is_meant` selects. If a request may still run (`in_doubt`), the server has to
/// show its jobs.
fn running(sql: &mut Sql<'_>, is_meant: &dyn Fn(&str) -> bool, in_doubt: bool) -> Result<Vec<String>> {
    let asked = sql.unless_refused(JOBS, &[])?;
    if asked.is_err() && !in_doubt {
        return Ok(Vec::new());
    }
    let answer = asked.map_err(|refused| {
        let what = format!("whether a request still runs cannot be asked: {}", refused.what());
        Error::new(refused.kind(), what).at(refused.place()).advise(
            "a user other than crate needs a privilege for it: GRANT DQL ON TABLE sys.jobs TO the user; then run the same \
             command again to go on",
        )
    })?;
    let jobs = answer.all::<(String, String)>()?;
    // This query is one of the jobs.
    if jobs.is_empty() && in_doubt {
        return Err(Error::new(
            Kind::Server,
            "the server does not list its jobs, so that it is unknown whether a request still runs",
        )
        .at(sql.place())
        .advise("run SET GLOBAL stats.enabled = true, then the same command again to go on"));
    }
    Ok(jobs.into_iter().filter(|(_, statement)| is_meant(statement)).map(|(id, _)| id).collect())
}

/// Returns when all statements that `is_meant` selects have ended, without killing any. Returns at once if the
/// server does not show its jobs to this user.
///
/// # Errors
/// A statement that runs for longer than the cluster's patience; a raised cancel flag.
pub(crate) fn wait_for(sql: &mut Sql<'_>, is_meant: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut waiting = sql.waiting();
    loop {
        let Ok(answer) = sql.unless_refused(JOBS, &[])? else { return Ok(()) };
        let jobs = answer.all::<(String, String)>()?;
        let Some((id, statement)) = jobs.into_iter().find(|(_, statement)| is_meant(statement)) else {
            return Ok(());
        };
        let what = format!("a statement of an earlier run still runs at the server (job {id}): {statement}");
        let error = Error::new(Kind::Busy, what)
            .at(sql.place())
            .advise("run the same command again once the job has left sys.jobs");
        sql.pause(&mut waiting, error)?;
    }
}
