//! Connection poolers that hand out the server's processes by transactions, such as pgbouncer with `pool_mode
//! = transaction`. A load's lock would stay with a process that then serves others, and prepared statements
//! would reach a process that lacks them. So a load refuses the pool before it changes anything.

use sawmill_profile::{Control, Error, Kind, Result};
use tokio_postgres::SimpleQueryMessage;

use crate::address::server::Server;
use crate::connection::Connection;
use crate::server_error::NOT_THROUGH_A_POOL;

/// How often each of two connections is asked for its process. A pooler gives the process that was used last
/// to the next client, or each in turn.
const ROUNDS: usize = 3;

/// Refuses a connection that does not keep a process of the server to itself. It must not be in a
/// transaction.
pub fn refuse_pooler(connection: &Connection, server: &Server, control: &Control<'_>) -> Result<()> {
    let Ok(other) = Connection::open(server, control) else {
        // Two connections are not to be had, so the load finds out whether one suffices.
        return control.check();
    };
    // Processes on two servers may have the same number.
    let same_server = connection.place() == other.place();
    let first = (process(connection, control)?, process(&other, control)?);
    for _ in 1..ROUNDS {
        let now = (process(connection, control)?, process(&other, control)?);
        if now != first || (same_server && first.0 == first.1) {
            return Err(Error::new(
                Kind::Config,
                "the address leads to a connection pool in transaction mode: transactions of one connection are served by \
                 processes that other connections use as well",
            )
            .at(connection.place())
            .advise(NOT_THROUGH_A_POOL));
        }
    }
    Ok(())
}

/// The server's process that answers, asked without a prepared statement.
pub(crate) fn process(connection: &Connection, control: &Control<'_>) -> Result<Option<String>> {
    let asked = connection.client.simple_query("SELECT pg_catalog.pg_backend_pid()");
    let answer = connection.wait(control, asked)?;
    Ok(answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
