//! Has the server write its write-ahead log while rows go in.
//!
//! A COPY goes around in 16 MiB of the server's buffers, and before one of them is used again the log of its page
//! has to be on disk. A log that nobody has written by then is written by the process that copies, which does
//! nothing else meanwhile. The server has a process for that, but it wakes up five times a second, when hundreds of
//! MiB a second pass; a record that nobody waits for wakes it up sooner (`XLogSetAsyncXactLSN` in PostgreSQL's
//! xlog.c), and it writes as soon as a MiB has come together (`wal_writer_flush_after`).
//!
//! The record is a message to nobody (`pg_logical_emit_message`): it takes no number of a transaction and changes
//! nothing. Who decodes the log would be shown it, so that servers whose log can be decoded are left alone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sawmill_pgwire::Connection;
use sawmill_source::Control;
use tokio_postgres::Statement;

/// Time between two records.
pub(crate) const EVERY: Duration = Duration::from_millis(10);

const RECORD: &str = "SELECT pg_catalog.pg_logical_emit_message(false, 'sawmill', '') \
                      WHERE pg_catalog.current_setting('wal_level') <> 'logical'";

/// A connection that nobody uses while rows go in.
pub(crate) struct WriteAhead<'a> {
    connection: &'a Mutex<Connection>,
    record: Option<Statement>,
}

impl<'a> WriteAhead<'a> {
    pub(crate) fn on(connection: &'a Mutex<Connection>) -> Self {
        Self { connection, record: None }
    }

    /// Wakes the server's writer of the log. None where the server has no such thing, does not permit it, or
    /// lets its log be decoded: the load does not depend on it.
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
