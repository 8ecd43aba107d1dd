//! Tables of PostgreSQL.
//!
//! ```text
//! partition ─ encode ─┐
//! partition ─ encode ─┼─ blocks ─▶ one COPY in one transaction ─ COMMIT ─▶ number of rows
//! partition ─ encode ─┘
//! ```
//!
//! Partitions are queried and encoded side by side. One connection takes their rows, so that a statement that fails
//! leaves none.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use sawmill_loader::{Mode, TableName};
use sawmill_pgcopy::{Buffers, Column, CopyEncoder, Emit, NUL_ADVICE, Stop};
use sawmill_postgres::Postgres;
use sawmill_source::{Control, Error};
use tokio::sync::{mpsc, oneshot};

use crate::error::external;
use crate::sinks::catalogue::register;
use crate::sinks::partitions::{self, Taker};
use crate::sinks::sink::{CancelOnDrop, Database, POSTGRES, Server, Sink, in_control};

/// Bytes of a block of rows. Each partition fills one, and a few wait for the connection.
const BLOCK_BYTES: usize = 1 << 20;
const WAITING_BLOCKS: usize = 4;

/// Adds the tables of the PostgreSQL server at `address`, such as `postgres://me@host/database`, to a session:
/// `pg.orders` is the table that the server's search path finds, `pg.public.orders` the one in the schema `public`.
/// No connection is opened yet. [`sql`](crate::sql) and `DataFrame::write_table` insert rows; tables cannot be
/// read.
///
/// # Errors
/// The address cannot be used; the session has no default catalogue.
pub fn register_postgres(context: &SessionContext, address: &str) -> Result<()> {
    // Any table name will do: only the address of the server is kept.
    let any = TableName::new(None, POSTGRES.catalogue).map_err(external)?;
    register(context, Arc::new(PostgresServer(Postgres::new(address.parse().map_err(external)?, any))))
}

/// A server.
#[derive(Debug)]
struct PostgresServer(Postgres);

impl Server for PostgresServer {
    fn database(&self) -> &'static Database {
        &POSTGRES
    }

    fn table(&self, schema: Option<&str>, name: &str, mode: Mode) -> Result<Arc<dyn Sink>> {
        let name = TableName::new(schema, name).map_err(external)?;
        Ok(Arc::new(PostgresTable(self.0.clone().of_table(name).mode(mode))))
    }
}

/// A table.
#[derive(Debug)]
struct PostgresTable(Postgres);

#[async_trait]
impl Sink for PostgresTable {
    fn database(&self) -> &'static Database {
        &POSTGRES
    }

    fn name(&self) -> String {
        self.0.table().to_string()
    }

    fn columns(&self, control: &Control<'_>) -> Result<Vec<(String, String)>, Error> {
        self.0.columns_of_table(control)
    }

    fn leaves_nothing(&self) -> bool {
        true
    }

    async fn insert(&self, rows: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<u64> {
        let (postgres, cancel) = (self.0.clone(), CancelOnDrop::default());
        let (parcels, received) = mpsc::channel(WAITING_BLOCKS);
        let (begun, columns) = oneshot::channel();
        let (schema, cancelled) = (rows.schema(), Arc::clone(&cancel.0));
        let writer =
            tokio::task::spawn_blocking(move || write(&postgres, &schema, begun, received, &cancelled));
        let mut sent = Ok(());
        // Without columns the insertion has not begun, and the writer knows why.
        if let Ok(columns) = columns.await {
            let buffers = Buffers::new(BLOCK_BYTES);
            let encoding = |partition| Encoding {
                encoder: CopyEncoder::new(Arc::clone(&columns), Arc::clone(&buffers)),
                parcels: parcels.clone(),
                place: format!("table {}, partition {partition} of the query", self.0.table()),
                before: 0,
            };
            sent = partitions::run(&rows, &context, encoding).await;
            if sent.is_ok() {
                // A writer that has ended says why.
                let _ = parcels.send(Parcel::End).await;
            }
        }
        drop(parcels);
        if sent.is_err() {
            drop(cancel);
        }
        // The transaction ends before the statement does.
        let written = writer.await.map_err(external)?;
        sent?;
        written.map_err(external)
    }
}

/// An item for the connection.
enum Parcel {
    Block(bytes::Bytes, u64),
    /// All partitions are complete.
    End,
}

/// Encodes the rows of a partition, until they end or the connection does.
struct Encoding {
    encoder: CopyEncoder,
    parcels: mpsc::Sender<Parcel>,
    place: String,
    /// Rows of the batches before.
    before: usize,
}

impl Encoding {
    /// Sends the blocks that `encode` fills; false if the connection has ended.
    async fn send(
        &mut self,
        encode: impl FnOnce(&mut CopyEncoder, Emit<'_, Error>) -> Result<(), Stop<Error>>,
    ) -> Result<bool> {
        let mut full = Vec::new();
        let mut emit = |block, rows| {
            full.push(Parcel::Block(block, rows));
            Ok(())
        };
        encode(&mut self.encoder, &mut emit).map_err(|stop| stopped(stop, &self.place, self.before))?;
        for parcel in full {
            if self.parcels.send(parcel).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Taker for Encoding {
    async fn take(mut self, batch: RecordBatch) -> Result<Option<Self>> {
        let is_open = self.send(|encoder, emit| encoder.batch(&batch, emit)).await?;
        self.before += batch.num_rows();
        Ok(is_open.then_some(self))
    }

    async fn end(mut self) -> Result<()> {
        self.send(|encoder, emit| encoder.flush(emit)).await.map(drop)
    }
}

/// The error of a value that does not fit, in the batch after `before` rows.
fn stopped(stop: Stop<Error>, place: &str, before: usize) -> DataFusionError {
    match stop {
        Stop::Emit(error) => external(error),
        Stop::Unanswered(what) => external(std::io::Error::other(what)),
        Stop::Refused(value) => {
            let place = format!("column {:?}, {place}, row {}", value.column, before + value.row + 1);
            let advice = "convert the value or leave the row out in the SELECT";
            let what = value.what.replace(NUL_ADVICE, "");
            DataFusionError::Execution(format!("{what} - {place} - {advice}"))
        }
    }
}

/// Sends the received blocks, and commits when all have arrived.
fn write(
    postgres: &Postgres,
    schema: &Schema,
    begun: oneshot::Sender<Arc<Vec<Column>>>,
    mut received: mpsc::Receiver<Parcel>,
    cancelled: &AtomicBool,
) -> Result<u64, Error> {
    in_control(cancelled, |control| {
        let mut insertion = postgres.insert(schema, control)?;
        let _ = begun.send(Arc::clone(insertion.columns()));
        loop {
            match received.blocking_recv() {
                Some(Parcel::Block(block, rows)) => insertion.send(block, rows, control)?,
                Some(Parcel::End) => return insertion.commit(control),
                None => return Err(Error::cancelled()),
            }
        }
    })
}
