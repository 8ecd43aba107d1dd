//! Commits that last.
//!
//! With `synchronous_commit = off` a server crash can undo commits that the server has confirmed; with less
//! than `on` they may be missing on a replica that takes over. The server writes its log in the order of the
//! records, so one commit that waits for the log also makes all earlier ones last.

use sawmill_pgwire::Connection;
use sawmill_source::{Control, Result};

/// Makes the server wait for its log when the open transaction commits, unless it waits for more anyway.
pub(crate) fn wait_for_log(connection: &Connection, control: &Control<'_>) -> Result<()> {
    let set = "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) \
               WHERE pg_catalog.current_setting('synchronous_commit') <> 'remote_apply'";
    connection.batch(control, set)
}

/// Commits the open transaction, and makes everything committed before it last.
pub(crate) fn commit(connection: &Connection, control: &Control<'_>) -> Result<()> {
    wait_for_log(connection, control)?;
    connection.commit(control)
}
