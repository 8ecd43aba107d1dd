//! Samples on a separate connection what the server's processes do for a load.
//!
//! A process belongs to the load if it has been seen running a COPY into the load's table; then it still does
//! when it commits. The wait events:
//! <https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sawmill_loader::ServerWaits;
use sawmill_pgwire::{Connection, Server};
use sawmill_source::{Control, Result};
use tokio_postgres::Statement;

/// Time between two samples; each takes the server about a millisecond.
const EVERY: Duration = Duration::from_millis(100);

/// Shorter loads are not sampled.
const FIRST: Duration = Duration::from_millis(300);

const LOOK: &str = "SELECT pid, wait_event_type, wait_event, left(query, length($1)) = $1, \
                    coalesce(state LIKE 'idle%', false) FROM pg_catalog.pg_stat_activity \
                    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() \
                    AND backend_type = 'client backend'";

/// Samples until `done` is set and the thread unparked, and wakes the server's WAL writer in between. Returns
/// `None` if the server cannot be asked or nothing was seen; the load does not depend on it. `copy` is the
/// beginning of the load's COPY statements.
pub(crate) fn watch(
    server: &Server,
    copy: &str,
    mut write_ahead: Option<WriteAhead<'_>>,
    done: &AtomicBool,
    control: &Control<'_>,
) -> Option<ServerWaits> {
    let watching = control.with_stop(done);
    let (mut looks, mut looking) = (Looks::default(), true);
    let mut look_at = Instant::now() + FIRST;
    while !watching.cancelled() && (looking || write_ahead.is_some()) {
        if Instant::now() >= look_at {
            looking = looking && looks.look(server, copy, &watching);
            look_at = Instant::now() + EVERY;
        }
        // Not stopped by `done`: others go on using that connection, so its query must end.
        write_ahead = write_ahead.and_then(|log| log.wake(control));
        let pause = write_ahead.as_ref().map_or(EVERY, |_| WAKE);
        park(pause.min(look_at.saturating_duration_since(Instant::now())), &watching);
    }
    looks.seen.waits()
}

/// Sleeps until the thread is unparked, or the load is cancelled.
fn park(time: Duration, control: &Control<'_>) {
    let end = Instant::now() + time;
    while !control.cancelled() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left.min(EVERY));
    }
}

/// The sampling connection, once open, and the samples.
#[derive(Default)]
struct Looks {
    open: Option<(Connection, Statement)>,
    seen: Seen,
}

impl Looks {
    /// Takes a sample. Returns whether sampling can continue; earlier samples always count.
    fn look(&mut self, server: &Server, copy: &str, control: &Control<'_>) -> bool {
        if self.open.is_none() {
            self.open = Self::open(server, control).ok();
        }
        let Some((connection, statement)) = &self.open else { return false };
        let asked = connection.wait(control, connection.client.query(statement, &[&copy]));
        for row in asked.iter().flatten() {
            let cells = (row.try_get(0), row.try_get(1), row.try_get(2), row.try_get(3), row.try_get(4));
            let (Ok(pid), Ok(class), Ok(event), Ok(copies), Ok(idle)) = cells else { continue };
            self.seen.add(pid, class, event, copies, idle);
        }
        asked.is_ok()
    }

    fn open(server: &Server, control: &Control<'_>) -> Result<(Connection, Statement)> {
        let connection = Connection::open(server, control)?;
        let statement = connection.wait(control, connection.client.prepare(LOOK))?;
        Ok((connection, statement))
    }
}

#[derive(Default)]
struct Seen {
    ours: HashSet<i32>,
    /// The samples of each kind, in the order of [`ServerWaits`].
    counts: [u64; 7],
}

const WORKING: usize = 0;
const WAL: usize = 1;
const EXTEND: usize = 2;
const IO: usize = 3;
const LOCK: usize = 4;
const CLIENT: usize = 5;
const OTHER: usize = 6;

impl Seen {
    fn add(&mut self, pid: i32, class: Option<&str>, event: Option<&str>, copies: Option<bool>, idle: bool) {
        if copies == Some(true) {
            self.ours.insert(pid);
        }
        if !self.ours.contains(&pid) {
            return;
        }
        self.counts[kind(class, event, idle)] += 1;
    }

    fn waits(&self) -> Option<ServerWaits> {
        ServerWaits::of_counts(self.counts)
    }
}

fn kind(class: Option<&str>, event: Option<&str>, idle: bool) -> usize {
    let event = event.unwrap_or_default();
    match class {
        _ if idle => CLIENT,
        None => WORKING,
        Some("Client") => CLIENT,
        // WALWrite, WALSync, WALInsert, WalWrite, ...: names differ between versions.
        Some("IO" | "LWLock") if event.to_ascii_lowercase().starts_with("wal") => WAL,
        Some("Lock") if event == "extend" => EXTEND,
        Some("IO") => IO,
        Some("Lock" | "LWLock" | "BufferPin") => LOCK,
        Some(_) => OTHER,
    }
}

/// Time between two records.
const WAKE: Duration = Duration::from_millis(10);

const RECORD: &str = "SELECT pg_catalog.pg_logical_emit_message(false, 'sawmill', '') \
                      WHERE pg_catalog.current_setting('wal_level') <> 'logical'";

/// A connection that is idle while rows go in.
pub(crate) struct WriteAhead<'a> {
    connection: &'a Mutex<Connection>,
    record: Option<Statement>,
}

impl<'a> WriteAhead<'a> {
    pub(crate) fn on(connection: &'a Mutex<Connection>) -> Self {
        Self { connection, record: None }
    }

    /// Wakes the server's WAL writer. Returns `None` if the server has no such function, does not permit it,
    /// or allows logical decoding; the load does not depend on it.
    pub(crate) fn wake(mut self, control: &Control<'_>) -> Option<Self> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let record = match self.record.take() {
            Some(record) => record,
            None => connection.wait(control, connection.client.prepare(RECORD)).ok()?,
        };
        let written = connection.wait(control, connection.client.execute(&record, &[])).ok()?;
        drop(connection);
        (written > 0).then_some(Self { record: Some(record), ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_events_fall_into_classes() {
        for (class, event, idle, expected) in [
            (None, None, false, WORKING),
            (Some("Client"), Some("ClientRead"), false, CLIENT),
            (Some("Client"), Some("ClientRead"), true, CLIENT),
            (Some("IO"), Some("WALSync"), false, WAL),
            (Some("IO"), Some("WalSync"), false, WAL),
            (Some("LWLock"), Some("WALInsert"), false, WAL),
            (Some("Lock"), Some("extend"), false, EXTEND),
            (Some("IO"), Some("DataFileExtend"), false, IO),
            (Some("Lock"), Some("transactionid"), false, LOCK),
            (Some("LWLock"), Some("BufferMapping"), false, LOCK),
            (Some("IPC"), Some("SyncRep"), false, OTHER),
        ] {
            assert_eq!(kind(class, event, idle), expected, "{class:?} {event:?}");
        }
    }

    #[test]
    fn only_processes_that_have_copied_into_the_table_count() {
        let mut seen = Seen::default();
        seen.add(1, None, None, Some(false), false);
        seen.add(2, None, None, Some(true), false);
        seen.add(2, Some("IO"), Some("WALSync"), Some(false), false);
        let waits = seen.waits().unwrap();
        assert_eq!((waits.samples, waits.working, waits.wal), (2, 0.5, 0.5));
        assert_eq!(Seen::default().waits(), None);
    }
}
