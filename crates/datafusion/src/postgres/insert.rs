//! The operator that inserts rows into a table of PostgreSQL.
//!
//! ```text
//! partition ─ encode ─┐
//! partition ─ encode ─┼─ blocks ─▶ one COPY in one transaction ─ COMMIT ─▶ number of rows
//! partition ─ encode ─┘
//! ```
//!
//! Partitions are queried and encoded side by side. One connection takes their rows, so that a statement that fails
//! leaves none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures_util::StreamExt;
use sawmill_pgcopy::{Buffers, Column, CopyEncoder, Stop};
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::{Control, Error};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::error::external;

/// Bytes of a block of rows. Each partition fills one, and a few wait for the connection.
const BLOCK_BYTES: usize = 1 << 20;
const WAITING_BLOCKS: usize = 4;

/// Inserts the rows of its child; its one row is their number.
#[derive(Debug)]
pub(crate) struct InsertExec {
    postgres: Postgres,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InsertExec {
    pub(crate) fn new(postgres: Postgres, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(count_schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Self { postgres, input, properties }
    }
}

/// What DataFusion's insertions return.
fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

impl DisplayAs for InsertExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresInsert: table={}", self.postgres.table())
    }
}

impl ExecutionPlan for InsertExec {
    fn name(&self) -> &str {
        "InsertExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// False: rows of a sorted query stay in their order.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(self.postgres.clone(), input))),
            _ => internal_err!("InsertExec has one child"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("InsertExec has one partition, not {}", partition + 1);
        }
        let inserted = insert(self.postgres.clone(), Arc::clone(&self.input), context);
        let counted = async move {
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![inserted.await?]));
            Ok(RecordBatch::try_new(count_schema(), vec![count])?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), futures_util::stream::once(counted))))
    }
}

/// What the connection receives.
enum Parcel {
    Block(bytes::Bytes, u64),
    /// All partitions are complete.
    End,
}

/// Ends the work of the connection when the statement is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs all partitions, and returns the number of rows that the server stored.
async fn insert(postgres: Postgres, input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<u64> {
    let cancel = CancelOnDrop::default();
    let (parcels, received) = mpsc::channel(WAITING_BLOCKS);
    let (begun, columns) = oneshot::channel();
    let (schema, cancelled, table) = (input.schema(), Arc::clone(&cancel.0), postgres.table().to_string());
    let writer = tokio::task::spawn_blocking(move || write(&postgres, &schema, begun, received, &cancelled));
    let mut failed = None;
    // Without columns the insertion has not begun, and the writer knows why.
    if let Ok(columns) = columns.await {
        let (buffers, mut partitions) = (Buffers::new(BLOCK_BYTES), JoinSet::new());
        for partition in 0..input.output_partitioning().partition_count() {
            let encoder = CopyEncoder::new(Arc::clone(&columns), Arc::clone(&buffers));
            let place = format!("table {table}, partition {partition} of the query");
            let rows = input.execute(partition, Arc::clone(&context))?;
            partitions.spawn(encode(rows, encoder, parcels.clone(), place));
        }
        while let Some(done) = partitions.join_next().await {
            if let Err(error) = done.map_err(external).and_then(|done| done) {
                failed = Some(error);
                break;
            }
        }
        if failed.is_none() {
            // A writer that has ended says why.
            let _ = parcels.send(Parcel::End).await;
        }
    }
    drop(parcels);
    if let Some(error) = failed {
        drop(cancel);
        // The transaction ends before the statement does.
        let _ = writer.await;
        return Err(error);
    }
    writer.await.map_err(external)?.map_err(external)
}

/// Encodes the rows of a partition, until they end or the connection does.
async fn encode(
    mut rows: SendableRecordBatchStream,
    mut encoder: CopyEncoder,
    parcels: mpsc::Sender<Parcel>,
    place: String,
) -> Result<()> {
    let (mut full, mut before) = (Vec::new(), 0);
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let mut emit = |block, rows| -> Result<(), Error> {
            full.push(Parcel::Block(block, rows));
            Ok(())
        };
        encoder.batch(&batch, &mut emit).map_err(|stop| stopped(stop, &place, before))?;
        before += batch.num_rows();
        for parcel in full.drain(..) {
            if parcels.send(parcel).await.is_err() {
                return Ok(());
            }
        }
    }
    let mut emit = |block, rows| -> Result<(), Error> {
        full.push(Parcel::Block(block, rows));
        Ok(())
    };
    encoder.flush(&mut emit).map_err(|stop| stopped(stop, &place, before))?;
    for parcel in full {
        let _ = parcels.send(parcel).await;
    }
    Ok(())
}

/// The error of a value that does not fit, in the batch after `before` rows.
fn stopped(stop: Stop<Error>, place: &str, before: usize) -> DataFusionError {
    match stop {
        Stop::Emit(error) => external(error),
        Stop::Refused(value) => {
            let place = format!("column {:?}, {place}, row {}", value.column, before + value.row + 1);
            let advice = "convert the value or leave the row out in the SELECT";
            DataFusionError::Execution(format!("{} - {place} - {advice}", value.what))
        }
    }
}

/// Sends what is received, and commits when all of it has arrived.
fn write(
    postgres: &Postgres,
    schema: &Schema,
    begun: oneshot::Sender<Arc<Vec<Column>>>,
    mut received: mpsc::Receiver<Parcel>,
    cancelled: &AtomicBool,
) -> Result<u64, Error> {
    let profile = Profile::new();
    let phase = profile.phase("insert");
    let control = Control::new(cancelled, &phase);
    let mut insertion = postgres.insert(schema, &control)?;
    let _ = begun.send(Arc::clone(insertion.columns()));
    loop {
        match received.blocking_recv() {
            Some(Parcel::Block(block, rows)) => insertion.send(block, rows, &control)?,
            Some(Parcel::End) => return insertion.commit(&control),
            None => return Err(Error::cancelled()),
        }
    }
}
