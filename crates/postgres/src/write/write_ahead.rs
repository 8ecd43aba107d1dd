//! Makes the server write its write-ahead log while rows go in.
//!
//! A COPY cycles through 16 MiB of the server's buffers. Before it uses a buffer again, the log of its page
//! must be on disk. If it is not there yet, the copying process writes the log and does nothing else until
//! then. The server's WAL writer wakes up five times a second, while hundreds of MiB pass per second. An
//! asynchronous record wakes it sooner (`XLogSetAsyncXactLSN` in PostgreSQL's xlog.c), and it writes as soon
//! as a MiB has accumulated (`wal_writer_flush_after`).
//!
//! The record is a logical decoding message without a receiver (`pg_logical_emit_message`): it takes no
//! transaction number and changes nothing. A logical decoder would see it, so servers with `wal_level =
//! logical` are left alone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sawmill_pgwire::Connection;
use sawmill_source::Control;
use tokio_postgres::Statement;

/// Time between two records.
pub(crate) const EVERY: Duration = Duration::from_millis(10);

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
