//! Looks at what the server's processes of a load are at, now and then, on a connection of its own.
//!
//! Which processes they are is told by what they run: a COPY into the load's table. One that has been seen
//! at that stays one of the load's when it commits. The wait events:
//! <https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::server::Server;
use crate::control::Control;
use crate::server_waits::ServerWaits;

/// Time between two looks; a look takes the server about a millisecond.
const EVERY: Duration = Duration::from_millis(100);

/// Loads that are over sooner are not looked at.
const FIRST: Duration = Duration::from_millis(300);

/// Looks until `done` is set and the thread unparked. None where the server cannot be asked, or nothing was
/// seen: the load does not depend on it. `copy` is what COPY statements of the load start with.
pub(crate) fn watch(
    server: &Server,
    copy: &str,
    done: &AtomicBool,
    control: &Control<'_>,
) -> Option<ServerWaits> {
    let control = control.with_stop(done);
    park(FIRST, &control);
    if control.cancelled() {
        return None;
    }
    let connection = Connection::open(server, &control).ok()?;
    let sql = "SELECT pid, wait_event_type, wait_event, left(query, length($1)) = $1, coalesce(state LIKE 'idle%', false) \
               FROM pg_catalog.pg_stat_activity \
               WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() \
               AND backend_type = 'client backend'";
    let mut seen = Seen::default();
    while !done.load(Relaxed) && !control.cancelled() {
        let Ok(rows) = connection.query(&control, sql, &[&copy]) else { break };
        for row in &rows {
            let cells = (row.try_get(0), row.try_get(1), row.try_get(2), row.try_get(3), row.try_get(4));
            let (Ok(pid), Ok(class), Ok(event), Ok(copies), Ok(idle)) = cells else { continue };
            seen.add(pid, class, event, copies, idle);
        }
        park(EVERY, &control);
    }
    seen.waits()
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

#[derive(Default)]
struct Seen {
    ours: HashSet<i32>,
    samples: u64,
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
        self.samples += 1;
        self.counts[kind(class, event, idle)] += 1;
    }

    fn waits(&self) -> Option<ServerWaits> {
        let share = |kind: usize| self.counts[kind] as f64 / self.samples as f64;
        (self.samples > 0).then(|| ServerWaits {
            samples: self.samples,
            working: share(WORKING),
            wal: share(WAL),
            extend: share(EXTEND),
            io: share(IO),
            lock: share(LOCK),
            client: share(CLIENT),
            other: share(OTHER),
        })
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
