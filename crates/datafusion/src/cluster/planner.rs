//! Statements that fill tables, in a session of a cluster.
//!
//! ```text
//! executors: the query ─▶ rows ─▶ this process: InsertExec ─▶ one transaction, or one connection a partition
//! ```
//!
//! Only the rows of tasks that have succeeded are fetched, once, and only this process writes. So a task that runs twice,
//! or that ends with its executor, doubles no row. An executor that is lost while its rows are fetched takes them along:
//! then the statement begins again, if nothing of it is left in the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use async_trait::async_trait;
use ballista_core::error::BallistaError;
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::{InsertOp, WriteOp};
use datafusion::logical_expr::{DmlStatement, LogicalPlan};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};
use datafusion_proto::protobuf::LogicalPlanNode;
use futures_util::StreamExt;

use crate::ParquetTable;
use crate::error::refused;
use crate::operator::{Operation, Operator};
use crate::sinks::insert::InsertExec;
use crate::sinks::table::SinkTable;

/// Plans insertions for this process and their queries for the cluster, and everything else as Ballista plans it.
#[derive(Debug)]
pub(crate) struct SinkPlanner {
    pub cluster: BallistaQueryPlanner<LogicalPlanNode>,
}

#[async_trait]
impl QueryPlanner for SinkPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let LogicalPlan::Dml(DmlStatement { target, op: WriteOp::Insert(op), input, .. }) = plan {
            let provider = source_as_provider(target)?;
            if let Some(table) = provider.downcast_ref::<SinkTable>() {
                check(input)?;
                let rows = self.cluster.create_physical_plan(input, session).await?;
                return match op {
                    InsertOp::Append => inserted(rows, table, session.config().target_partitions()),
                    // The table says what to do instead.
                    _ => provider.insert_into(session, rows, *op).await,
                };
            }
        }
        check(plan)?;
        self.cluster.create_physical_plan(plan, session).await
    }
}

/// Refuses plans that a scheduler cannot have: they read a table of a database or rows of objects, or insert below
/// another operator.
fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let (source, is_read) = match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                if let Some(table) = provider.downcast_ref::<ParquetTable>() {
                    table.refuse_for_executors()?;
                }
                (&scan.source, true)
            }
            LogicalPlan::Dml(dml) => (&dml.target, false),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        match source_as_provider(source).ok().as_ref().and_then(|table| table.downcast_ref::<SinkTable>()) {
            Some(table) if is_read => Err(table.cannot_be_read()),
            Some(table) => Err(refused(
                "a scheduler does not plan insertions",
                &format!("table {}", table.sink().name()),
                "run the statement by itself: this process inserts the rows that executors make",
            )),
            None => Ok(TreeNodeRecursion::Continue),
        }
    })
    .map(drop)
}

/// Inserts the rows of a cluster, which arrive in one partition. For a database with several connections, spreads
/// them over several partitions.
fn inserted(
    rows: Arc<dyn ExecutionPlan>,
    table: &SinkTable,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let lost = Arc::new(AtomicBool::new(false));
    let mut rows: Arc<dyn ExecutionPlan> = Arc::new(Operator::new(Fetched { lost: Arc::clone(&lost) }, rows));
    if table.sink().database().has_connections && partitions > 1 {
        rows = Arc::new(RepartitionExec::try_new(rows, Partitioning::RoundRobinBatch(partitions))?);
    }
    Ok(Arc::new(InsertExec::new(table.insertion().of_rows_that_may_be_lost(lost), rows)))
}

/// Passes rows on that are fetched from executors, and notes if some were lost on their way.
#[derive(Debug)]
struct Fetched {
    lost: Arc<AtomicBool>,
}

impl Operation for Fetched {
    const NAME: &'static str = "FetchedExec";

    fn explained(&self) -> String {
        Self::NAME.to_owned()
    }

    fn properties(&self, rows: &Arc<dyn ExecutionPlan>) -> PlanProperties {
        PlanProperties::clone(rows.properties())
    }

    fn execute(
        &self,
        rows: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let lost = Arc::clone(&self.lost);
        let fetched = rows.execute(partition, context)?.inspect(move |batch| {
            if batch.as_ref().is_err_and(is_lost_on_the_way) {
                lost.store(true, Relaxed);
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(rows.schema(), fetched)))
    }

    fn statistics(&self, rows: &Arc<dyn ExecutionPlan>, _: Option<usize>) -> Statistics {
        Statistics::new_unknown(&rows.schema())
    }
}

/// Whether rows could not be fetched that were made: their executor is gone, or does not answer. Errors of the query and
/// of the scheduler are others.
fn is_lost_on_the_way(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => {
            matches!(error.as_ref(), ArrowError::IpcError(_) | ArrowError::ExternalError(_))
        }
        DataFusionError::External(error) => error.downcast_ref::<BallistaError>().is_some_and(|error| {
            matches!(
                error,
                BallistaError::FetchFailed(..)
                    | BallistaError::GrpcActionError(_)
                    | BallistaError::GrpcConnectionError(_)
                    | BallistaError::GrpcError(_)
                    | BallistaError::TonicError(_)
            )
        }),
        // As Ballista prints an executor that cannot be reached.
        DataFusionError::Execution(text) => text.starts_with("GrpcConnectionError("),
        _ => false,
    }
}
