//! A server, and a connection to it that carries out operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_cratedb::CrateServer;
use sawmill_pgwire::Server;
use sawmill_source::Result;

use crate::plan::types::Plan;
use crate::result::proof::Proof;
use crate::result::second::ServerSample;
use crate::work::crate_db::CrateTarget;
use crate::work::null::NullTarget;
use crate::work::outcome::Outcome;
use crate::work::postgres::PgTarget;
use crate::work::rows::{Rows, SharedTable};

/// The target of operations.
#[derive(Clone, Debug)]
pub enum Address {
    /// PostgreSQL.
    Postgres(Box<Server>),
    /// CrateDB.
    CrateDb(Box<CrateServer>),
    /// Nowhere: this measures the driver.
    Null,
}

/// Rows as text; `None` is NULL.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// A server.
pub(crate) trait Target: Sync {
    /// Makes the tables and inserts the rows that they have before the run.
    fn set_up(&self, plan: &Plan, tables: &Arc<Vec<Arc<SharedTable>>>, cancel: &AtomicBool) -> Result<()>;
    /// A connection, not yet open.
    fn session<'a>(
        &'a self,
        plan: &'a Plan,
        rows: Rows,
        cancel: &'a AtomicBool,
    ) -> Result<Box<dyn Session + 'a>>;
    /// The server's own figures, once a second.
    fn watch(&self) -> Option<Box<dyn FnMut() -> Option<ServerSample> + Send + '_>> {
        None
    }
    /// Compares the rows of a table with their known states.
    fn prove(&self, table: &SharedTable, cancel: &AtomicBool) -> Result<Proof>;
    /// The rows that a statement returns, as text.
    fn query(&self, sql: &str, cancel: &AtomicBool) -> Result<TextRows>;
    /// Drops the tables.
    fn tear_down(&self, tables: &[Arc<SharedTable>], cancel: &AtomicBool) -> Result<()>;
    /// Name and version of the server.
    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// The address without a password.
    fn name(&self) -> String;
    /// Its listening address, if it is on this machine.
    fn listener(&self) -> Option<sawmill_profile::Target> {
        None
    }
    /// Whether it keeps rows that can be looked for.
    fn keeps_rows(&self) -> bool {
        true
    }
}

/// A connection.
pub(crate) trait Session: Send {
    /// Opens the connection, if it is not open; nothing where the first request connects.
    fn open(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes it.
    fn close(&mut self) {}
    /// Makes everything that the operation needs, before its intended start. Returns an outcome if the operation
    /// cannot be made.
    fn prepare(&mut self, operation: usize, draw: u64) -> Result<Option<Outcome>>;
    /// Carries it out once.
    fn execute(&mut self) -> Outcome;
    /// Whether a server carries it out. Otherwise its time is the driver's own.
    fn has_server(&self) -> bool {
        true
    }
    /// Updates the states of rows after the outcome.
    fn settle(&mut self, outcome: &Outcome);
}

impl Address {
    pub(crate) fn target(&self, plan: &Plan, cancel: &AtomicBool) -> Result<Box<dyn Target>> {
        Ok(match self {
            Self::Postgres(server) => Box::new(PgTarget::new(server, plan, cancel)?),
            Self::CrateDb(server) => Box::new(CrateTarget::new(server, plan, cancel)?),
            Self::Null => Box::new(NullTarget),
        })
    }
}
