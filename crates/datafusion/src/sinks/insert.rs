//! The operator that inserts rows into a table of a database.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};

use crate::operator::{Operation, Operator};
use crate::sinks::sink::Sink;

/// Inserts the rows of its child; its only row is their number.
pub(crate) type InsertExec = Operator<Insert>;

/// How often rows lost on their way from an executor are made again.
const RESTARTS: u32 = 2;

/// The insertion into a table.
#[derive(Debug)]
pub(crate) struct Insert {
    sink: Arc<dyn Sink>,
    /// Set if rows were lost on their way to this process; if made again, all of them would arrive.
    rows_lost: Option<Arc<AtomicBool>>,
}

impl Insert {
    pub(crate) fn into(sink: Arc<dyn Sink>) -> Self {
        Self { sink, rows_lost: None }
    }

    /// The same insertion, with a flag that says whether rows were lost on their way.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_rows_that_may_be_lost(self, rows_lost: Arc<AtomicBool>) -> Self {
        Self { rows_lost: Some(rows_lost), ..self }
    }
}

/// Inserts the rows. If rows were lost on their way and the table has kept none, makes all of them again.
async fn insert(
    sink: Arc<dyn Sink>,
    rows_lost: Option<Arc<AtomicBool>>,
    mut rows: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<u64> {
    for _ in 0..RESTARTS {
        let inserted = sink.insert(Arc::clone(&rows), Arc::clone(&context)).await;
        let is_lost = rows_lost.as_ref().is_some_and(|lost| lost.swap(false, Relaxed));
        if inserted.is_ok() || !is_lost || !sink.leaves_nothing() {
            return inserted;
        }
        rows = reset_plan_states(rows)?;
    }
    sink.insert(rows, context).await
}

/// The schema of the result that DataFusion's insertions return.
static COUNT: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)])));

impl Operation for Insert {
    const NAME: &'static str = "InsertExec";

    fn explained(&self) -> String {
        format!("InsertExec: {} table={}", self.sink.database().name, self.sink.name())
    }

    fn properties(&self, _: &Arc<dyn ExecutionPlan>) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&COUNT)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        )
    }

    fn execute(
        &self,
        rows: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("InsertExec has one partition, not {}", partition + 1);
        }
        let (sink, rows_lost) = (Arc::clone(&self.sink), self.rows_lost.clone());
        let inserting = insert(sink, rows_lost, Arc::clone(rows), context);
        let inserted = MetricBuilder::new(metrics).counter("rows_inserted", partition);
        let counted = async move {
            let count = inserting.await?;
            inserted.add(usize::try_from(count).unwrap_or(usize::MAX));
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![count]));
            Ok(RecordBatch::try_new(Arc::clone(&COUNT), vec![count])?)
        };
        let stream = futures_util::stream::once(counted);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&COUNT), stream)))
    }

    fn statistics(&self, _: &Arc<dyn ExecutionPlan>, _: Option<usize>) -> Statistics {
        Statistics::new_unknown(&COUNT)
    }
}
