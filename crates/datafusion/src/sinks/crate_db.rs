//! Tables of CrateDB.
//!
//! ```text
//! partition ─ encode ─ bulk requests ─┐
//! partition ─ encode ─ bulk requests ─┼─▶ table ─▶ rows counted by the server
//! partition ─ encode ─ bulk requests ─┘
//! ```
//!
//! Each partition has a connection. CrateDB has no transactions: a new table takes its final name once all rows are in.
//! When a statement fails, an existing table keeps the rows that have arrived; the error counts them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use sawmill_cratedb::{CrateDb, InsertedPartition, table_name};
use sawmill_loader::Mode;
use sawmill_source::{Control, Error, Kind};
use tokio::sync::oneshot;

use crate::error::{external, received};
use crate::sinks::catalogue::register;
use crate::sinks::partitions::{self, Taker};
use crate::sinks::sink::{CRATE_DB, CancelOnDrop, Database, Server, Sink, in_control};

/// Adds the tables of the CrateDB cluster at `address`, such as `crate://host:4200,host2:4200/schema`, to a session:
/// `crate.orders` is a table in the address's schema (`doc` by default), `crate.sales.orders` a table in the schema
/// `sales`. No connection is opened yet. [`sql`](crate::sql) and `DataFrame::write_table` insert rows; tables
/// cannot be read.
///
/// # Errors
/// The address cannot be used; the session has no default catalogue.
pub fn register_crate_db(context: &SessionContext, address: &str) -> Result<()> {
    // Any table name will do: only the address of the cluster is kept.
    let any = table_name(CRATE_DB.catalogue).map_err(external)?;
    register(context, Arc::new(CrateServer(CrateDb::new(address.parse().map_err(external)?, any))))
}

/// A cluster.
#[derive(Debug)]
struct CrateServer(CrateDb);

impl Server for CrateServer {
    fn database(&self) -> &'static Database {
        &CRATE_DB
    }

    fn table(&self, schema: Option<&str>, name: &str, mode: Mode) -> Result<Arc<dyn Sink>> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let parts: Vec<String> = schema.into_iter().chain([name]).map(quoted).collect();
        let name = table_name(&parts.join(".")).map_err(external)?;
        let crate_db = self.0.clone().of_table(name).mode(mode);
        Ok(Arc::new(CrateTable { crate_db, is_new: mode == Mode::Create }))
    }
}

/// A table.
#[derive(Debug)]
struct CrateTable {
    crate_db: CrateDb,
    /// The statement creates it.
    is_new: bool,
}

#[async_trait]
impl Sink for CrateTable {
    fn database(&self) -> &'static Database {
        &CRATE_DB
    }

    fn name(&self) -> String {
        self.crate_db.table_name().to_string()
    }

    fn columns(&self, control: &Control<'_>) -> Result<Vec<(String, String)>, Error> {
        self.crate_db.columns_of_table(control)
    }

    fn leaves_nothing(&self) -> bool {
        self.is_new
    }

    async fn insert(&self, rows: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<u64> {
        let (crate_db, cancel) = (self.crate_db.clone(), CancelOnDrop::default());
        let (begun, insertion) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let (schema, cancelled) = (rows.schema(), Arc::clone(&cancel.0));
        // Begins, waits for the partitions, and ends.
        let inserted = tokio::task::spawn_blocking(move || {
            in_control(&cancelled, |control| {
                crate_db.insert(&schema, control, |insertion| {
                    let _ = begun.send(Arc::clone(insertion));
                    end.blocking_recv().unwrap_or_else(|_| Err(Error::cancelled()))
                })
            })
        });
        // If no insertion arrives, it has not begun, and the server has given the reason.
        if let Ok(insertion) = insertion.await {
            let sending = |partition: usize| Sending {
                partition: insertion.partition(u32::try_from(partition).unwrap_or(u32::MAX)),
                cancelled: Arc::clone(&cancel.0),
            };
            let sent = partitions::run(&rows, &context, sending).await;
            let _ = ended.send(sent.map_err(|error| of_query(&error, &self.name())));
        }
        inserted.await.map_err(external)?.map_err(external)
    }
}

/// The error that ends an insertion: the server's or the query's.
fn of_query(error: &DataFusionError, table: &str) -> Error {
    if let DataFusionError::External(error) = error.find_root()
        && let Some(error) = error.downcast_ref::<Error>()
    {
        return error.clone();
    }
    Error::new(Kind::Source, received(error).0).at(format!("the query of the rows for table {table}"))
}

/// Sends a partition's rows. Takes a thread for each batch, and none while the query makes rows.
struct Sending {
    partition: InsertedPartition,
    cancelled: Arc<AtomicBool>,
}

impl Sending {
    async fn on_a_thread(
        self,
        work: impl FnOnce(Self, &Control<'_>) -> Result<Option<Self>, Error> + Send + 'static,
    ) -> Result<Option<Self>> {
        let cancelled = Arc::clone(&self.cancelled);
        let done = tokio::task::spawn_blocking(move || in_control(&cancelled, |control| work(self, control)));
        done.await.map_err(external)?.map_err(external)
    }
}

impl Taker for Sending {
    async fn take(self, batch: RecordBatch) -> Result<Option<Self>> {
        self.on_a_thread(move |mut sending, control| {
            sending.partition.send(&batch, control)?;
            Ok(Some(sending))
        })
        .await
    }

    async fn end(self) -> Result<()> {
        self.on_a_thread(|sending, control| sending.partition.end(control).map(|()| None)).await.map(drop)
    }
}
