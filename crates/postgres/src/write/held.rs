//! The connection of a writer.

use std::ops::Deref;
use std::sync::MutexGuard;

use sawmill_pgwire::Connection;

/// A connection that nobody else uses until this is dropped.
pub(crate) enum Held<'s> {
    /// The holder's own.
    Own(Box<Connection>),
    /// The one that the session does everything else on.
    OfSession(MutexGuard<'s, Connection>),
}

impl Deref for Held<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Own(connection) => connection,
            Self::OfSession(connection) => connection,
        }
    }
}
