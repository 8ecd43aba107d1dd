//! Commits that last.
//!
//! With `synchronous_commit = off` a crash of the server can take back what it has confirmed; with less than `on` a
//! replica that takes its place can lack it. The log is written in the order of its records, so that one commit that
//! waits for the log makes all before it last, too.

use sawmill_pgwire::Connection;
use sawmill_source::{Control, Result};

/// Has the server wait for its log when the open transaction commits, unless it waits for more anyway.
pub(crate) fn wait_for_log(connection: &Connection, control: &Control<'_>) -> Result<()> {
    let set = "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) \
               WHERE pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'";
    connection.batch(control, set)
}

/// Commits the open transaction, with everything that was committed before it.
pub(crate) fn commit(connection: &Connection, control: &Control<'_>) -> Result<()> {
    wait_for_log(connection, control)?;
    connection.commit(control)
}
