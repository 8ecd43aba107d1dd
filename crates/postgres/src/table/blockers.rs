//! Which sessions a statement waits for: a session that reads a table keeps it from being dropped or emptied
//! until its transaction ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sawmill_pgwire::{Connection, Server};
use sawmill_profile::beside;
use sawmill_source::{Control, Error, Kind, Result};

use crate::table::catalogue::Link;

/// Time before the first query for the blockers of a statement, and between later queries.
const FIRST: Duration = Duration::from_millis(150);
const AGAIN: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(10);

/// Runs `work` on a connection, and reports the sessions that it waits for. If a time limit of the server
/// ends the wait, the error also names them.
pub(crate) fn named<T>(link: Link<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (server, control) = (link.connection.server(), link.control);
    let process: i32 = link.value("SELECT pg_catalog.pg_backend_pid()", &[])?;
    let last = Mutex::new(String::new());
    let (worked, _) =
        beside("blockers", |done: &AtomicBool| watch(server, process, done, &last, control), work);
    let held = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    worked.map_err(|error| match error.kind() {
        Kind::Server if error.what().ends_with("[55P03]") && !held.is_empty() => {
            Error::new(Kind::Server, format!("{}; {held}", error.what()))
                .at(error.place())
                .advise(error.advice())
        }
        _ => error,
    })
}

/// Looks until the work is done. Failures of the watching itself are not reported.
fn watch(
    server: &Server,
    process: i32,
    done: &AtomicBool,
    last: &Mutex<String>,
    control: &Control<'_>,
) -> Option<()> {
    let pause = |time: Duration| {
        let end = Instant::now() + time;
        while !done.load(Relaxed) && !control.cancelled() && Instant::now() < end {
            std::thread::sleep(STEP);
        }
        !done.load(Relaxed) && !control.cancelled()
    };
    if !pause(FIRST) {
        return None;
    }
    let connection = Connection::open(server, control).ok()?;
    let link = Link::new(&connection, control);
    let mut reported = BTreeMap::new();
    loop {
        let found = blockers(link, process).ok()?;
        for (process, line) in &found {
            if reported.insert(*process, line.clone()).is_none() {
                control.notice(&format!("waiting for a lock: {line}"));
            }
        }
        if !found.is_empty() {
            let lines: Vec<String> = found.into_values().collect();
            *last.lock().unwrap_or_else(PoisonError::into_inner) = lines.join("; ");
        }
        if !pause(AGAIN) {
            return Some(());
        }
    }
}

/// The processes that this one waits for, each described for people.
fn blockers(link: Link<'_>, process: i32) -> Result<BTreeMap<i32, String>> {
    let sql = "SELECT a.pid, coalesce(a.usename::text, '?'), coalesce(a.application_name, ''), coalesce(a.state, ''), \
                 left(regexp_replace(coalesce(a.query, ''), '\\s+', ' ', 'g'), 120), \
                 coalesce(extract(epoch FROM now() - a.xact_start), 0)::bigint \
               FROM unnest(pg_catalog.pg_blocking_pids($1)) AS blocking(pid) \
               JOIN pg_catalog.pg_stat_activity a USING (pid)";
    let mut found = BTreeMap::new();
    let rows: Vec<(i32, String, String, String, String, i64)> = link.rows(sql, &[&process])?;
    for (pid, user, program, state, query, seconds) in rows {
        let program = if program.is_empty() { program } else { format!(", {program}") };
        let line = format!(
            "process {pid} (user {user}{program}, {state}, for {seconds} s in its transaction) holds it: {query}"
        );
        found.insert(pid, line);
    }
    Ok(found)
}
