//! Identifies the server at the end of a connection: an address may lead to another one after a fail-over.
//!
//! A cluster has a system identifier from its `initdb` on, which its replicas share; a replica that becomes
//! the primary begins a new timeline.

use std::sync::{Mutex, PoisonError};

use sawmill_profile::{Control, Error, Kind, Result};

use crate::address::server::Server;
use crate::connection::Connection;

/// A server's identity, as far as this user may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Identity {
    system: Option<String>,
    timeline: Option<String>,
}

impl Identity {
    fn read(connection: &Connection, control: &Control<'_>) -> Result<Self> {
        let may = "SELECT NOT pg_catalog.pg_is_in_recovery(), \
                     coalesce(pg_catalog.has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), \
                       'EXECUTE'), false)";
        let rows = connection.query(control, may, &[])?;
        let may = |column| rows.first().map_or(Ok(false), |row| connection.get::<bool>(row, column));
        let ask = |allowed: bool, what: &str| match allowed {
            false => Ok(None),
            true => match connection.query(control, what, &[]) {
                Ok(rows) => rows.first().map_or(Ok(None), |row| connection.get(row, 0)),
                // Services that are like PostgreSQL lack what others have.
                Err(error) if error.kind() == Kind::Server => Ok(None),
                Err(error) => Err(error),
            },
        };
        Ok(Self {
            system: ask(may(1)?, "SELECT system_identifier::text FROM pg_catalog.pg_control_system()")?,
            timeline: ask(
                may(0)?,
                "SELECT left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)",
            )?,
        })
    }
}

/// The server that a load or a verification began with, and the changes noticed since.
#[derive(Debug)]
pub struct KnownServer {
    server: Server,
    first: Identity,
    /// The connections that the role may have to this database at the same time, if their number is limited.
    limit: Option<i32>,
    seen: Mutex<Identity>,
    changes: Mutex<Vec<String>>,
}

impl KnownServer {
    /// The server at the other end of this connection, on which no transaction may be open.
    pub fn new(server: &Server, connection: &Connection, control: &Control<'_>) -> Result<Self> {
        let first = match connection.is_rehearsing() {
            true => Identity::default(),
            false => Identity::read(connection, control)?,
        };
        let sql = "SELECT least(nullif(rolconnlimit, -1), \
                     (SELECT nullif(datconnlimit, -1) FROM pg_catalog.pg_database WHERE datname = current_database())) \
                   FROM pg_catalog.pg_roles WHERE rolname = session_user AND NOT rolsuper";
        let rows = connection.query(control, sql, &[])?;
        let limit = rows.first().map_or(Ok(None), |row| connection.get(row, 0))?;
        let (server, seen) = (server.clone(), Mutex::new(first.clone()));
        Ok(Self { server, seen, first, limit, changes: Mutex::default() })
    }

    /// Whether the role may open only one connection.
    pub fn allows_one_connection(&self) -> bool {
        self.limit == Some(1)
    }

    /// Refuses work that needs several connections at the same time if the role may have one.
    ///
    /// # Errors
    /// The role may have one connection, and `needed` are more.
    pub fn refuse_more_than_one(&self, needed: usize, advice: &str) -> Result<()> {
        if needed <= 1 || !self.allows_one_connection() {
            return Ok(());
        }
        let what = format!(
            "the role may have one connection, and {needed} are needed (CONNECTION LIMIT of the role or the database)"
        );
        Err(Error::new(Kind::Config, what).at(self.server.place()).advise(advice))
    }

    /// The server's system identifier, if this user may ask for it.
    pub fn system(&self) -> Option<&str> {
        self.first.system.as_deref()
    }

    /// Another connection to the same data.
    pub fn connect(&self, control: &Control<'_>) -> Result<Connection> {
        let connection = Connection::open(&self.server, control)?;
        self.check(&connection, control)?;
        Ok(connection)
    }

    /// Makes sure that a later connection has led to the same data. Notes a server that took the place of the
    /// first.
    pub fn check(&self, connection: &Connection, control: &Control<'_>) -> Result<()> {
        if self.first == Identity::default() {
            return Ok(());
        }
        let now = Identity::read(connection, control)?;
        if let (Some(was), Some(is)) = (&self.first.system, &now.system)
            && was != is
        {
            return Err(Error::new(
                Kind::Changed,
                format!("the address leads to another server now: system identifier {is}, and {was} when the load began"),
            )
            .at(connection.place())
            .advise(
                "name the server that the load began with, and run the same command again: what is committed there stays and is \
                 not loaded twice",
            ));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(was), Some(is)) = (&seen.timeline, &now.timeline)
            && was != is
        {
            let what = format!(
                "during the load another server took the place of the first (a fail-over: timeline {is} after {was}, {})",
                connection.place()
            );
            self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(what);
            *seen = now;
        }
        Ok(())
    }

    /// Notes on servers that took the first one's place.
    pub fn changes(&self) -> Vec<String> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
