//! The interface of a database for statements that fill its tables.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use sawmill_loader::Mode;
use sawmill_profile::Profile;
use sawmill_source::{Control, Error};

use crate::error::external;

/// A database, as messages name it.
#[derive(Debug)]
pub(crate) struct Database {
    pub name: &'static str,
    /// The schema and the catalogue of its tables: `pg` of `pg.orders`.
    pub catalogue: &'static str,
    /// An address that `--to` takes.
    pub address: &'static str,
    /// Whether partitions go to the server side by side. If not, one connection takes them all.
    #[cfg_attr(
        not(feature = "cluster"),
        allow(dead_code, reason = "the rows of a cluster come in one partition")
    )]
    pub has_connections: bool,
    /// The advice for statements that would replace rows.
    pub instead_of_overwriting: &'static str,
}

/// The databases that can be registered.
pub(crate) const DATABASES: [&Database; 2] = [&POSTGRES, &CRATE_DB];

pub(crate) const POSTGRES: Database = Database {
    name: "PostgreSQL",
    catalogue: "pg",
    address: "postgres://user@host/database",
    has_connections: false,
    instead_of_overwriting: "write INSERT INTO, or load with sawmill load --mode replace, truncate or upsert",
};

pub(crate) const CRATE_DB: Database = Database {
    name: "CrateDB",
    catalogue: "crate",
    address: "crate://host:4200",
    has_connections: true,
    instead_of_overwriting: "write INSERT INTO, or load with sawmill load --mode replace",
};

/// A server whose tables are filled.
pub(crate) trait Server: Debug + Send + Sync + 'static {
    fn database(&self) -> &'static Database;

    /// A table to insert into (mode append), or to create. Without a schema the server chooses one.
    ///
    /// # Errors
    /// The server cannot have a table of this name.
    fn table(&self, schema: Option<&str>, name: &str, mode: Mode) -> Result<Arc<dyn Sink>>;
}

/// A table that takes rows.
#[async_trait]
pub(crate) trait Sink: Debug + Send + Sync {
    fn database(&self) -> &'static Database;

    /// Its name, with the schema that was given.
    fn name(&self) -> String;

    /// The columns that a statement without names fills, with their types as SQL writes them. It asks the server, on this
    /// thread.
    ///
    /// # Errors
    /// The table does not exist, or the server cannot be reached.
    fn columns(&self, control: &Control<'_>) -> Result<Vec<(String, String)>, Error>;

    /// Whether an insertion that fails leaves no row behind.
    fn leaves_nothing(&self) -> bool;

    /// Inserts all rows of a plan, and returns how many the server has counted.
    ///
    /// # Errors
    /// The query fails; a value or a row that the table does not take; the server cannot be reached. For CrateDB
    /// the error counts the rows left in the table; PostgreSQL keeps none.
    async fn insert(&self, rows: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<u64>;
}

/// Asks the server on a thread that may wait.
///
/// # Errors
/// As of `ask`.
pub(crate) async fn asked<T: Send + 'static>(
    ask: impl FnOnce(&Control<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T> {
    let asked = tokio::task::spawn_blocking(move || in_control(&AtomicBool::new(false), ask));
    asked.await.map_err(external)?.map_err(external)
}

/// Runs what waits for the server, until the flag is raised.
pub(crate) fn in_control<T>(cancelled: &AtomicBool, work: impl FnOnce(&Control<'_>) -> T) -> T {
    work(&Control::new(cancelled, &Profile::new().phase("insert")))
}

/// Ends the work of connections when the statement is dropped.
#[derive(Default)]
pub(crate) struct CancelOnDrop(pub Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
