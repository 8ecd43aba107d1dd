//! The operator that does the work of units.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use futures_util::StreamExt;

#[cfg(feature = "cluster")]
use crate::error::sent;
use crate::operator::{Operation, Operator};
use crate::units::work::Work;

/// Batches that wait for the operator above, in each partition.
const WAITING_BATCHES: usize = 2;

/// Does the work of its child's rows, one unit each. It has the same partitions as its child, a memory
/// table.
pub(crate) type UnitsExec = Operator<Units>;

/// The work of units.
#[derive(Debug)]
pub(crate) struct Units {
    work: Arc<dyn Work>,
    /// Another process reads the errors.
    #[cfg(feature = "cluster")]
    sends_errors: bool,
}

impl Units {
    fn new(work: Arc<dyn Work>) -> Self {
        Self {
            work,
            #[cfg(feature = "cluster")]
            sends_errors: false,
        }
    }

    /// The work of an operator that is part of a plan from another process.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_another_process(work: Arc<dyn Work>) -> Self {
        Self { sends_errors: true, ..Self::new(work) }
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn work(&self) -> &dyn Work {
        self.work.as_ref()
    }

    /// The rows of one partition, or of all.
    fn rows(&self, units: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> Option<u64> {
        let partitions = partitions(units)?;
        let wanted = match partition {
            Some(place) => std::slice::from_ref(partitions.get(place)?),
            None => partitions,
        };
        wanted.iter().flatten().map(|units| self.work.rows(units)).sum()
    }
}

impl UnitsExec {
    /// An operator over units in memory: a partition for each of `partitions`, at least one.
    ///
    /// # Errors
    /// The units do not have the schema `schema`.
    pub(crate) fn over(
        work: Arc<dyn Work>,
        partitions: Vec<Vec<RecordBatch>>,
        schema: SchemaRef,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = if partitions.is_empty() { vec![Vec::new()] } else { partitions };
        let units = MemorySourceConfig::try_new_exec(&partitions, schema, None)?;
        Ok(Arc::new(Self::new(Units::new(work), units)))
    }
}

/// The units of all partitions, if they are in memory as they were planned. A scheduler may have kept only the
/// units of one task.
fn partitions(units: &Arc<dyn ExecutionPlan>) -> Option<&[Vec<RecordBatch>]> {
    let source = units.downcast_ref::<DataSourceExec>()?.data_source();
    let source: &dyn std::any::Any = source.as_ref();
    Some(source.downcast_ref::<MemorySourceConfig>()?.partitions())
}

impl Operation for Units {
    const NAME: &'static str = "UnitsExec";

    fn explained(&self) -> String {
        self.work.explained()
    }

    fn properties(&self, units: &Arc<dyn ExecutionPlan>) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(self.work.schema()),
            Partitioning::UnknownPartitioning(units.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
    }

    fn execute(
        &self,
        units: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let mut units = units.execute(partition, context)?;
        let metrics = BaselineMetrics::new(metrics, partition);
        let mut stream = RecordBatchReceiverStream::builder(self.work.schema(), WAITING_BATCHES);
        let (sender, work) = (stream.tx(), Arc::clone(&self.work));
        #[cfg(feature = "cluster")]
        let sends_errors = self.sends_errors;
        stream.spawn(async move {
            while let Some(units) = units.next().await {
                let (units, sender, work) = (units?, sender.clone(), Arc::clone(&work));
                let metrics = metrics.clone();
                let done = tokio::task::spawn_blocking(move || {
                    let mut send = |batch: RecordBatch| {
                        metrics.record_output(batch.num_rows());
                        sender.blocking_send(Ok(batch)).is_ok()
                    };
                    let done = work.run(&units, batch_rows, &mut send);
                    #[cfg(feature = "cluster")]
                    let done = done.map_err(|error| if sends_errors { sent(&error) } else { error });
                    done
                });
                done.await.map_err(|error| DataFusionError::External(Box::new(error)))??;
            }
            metrics.done();
            Ok(())
        });
        Ok(stream.build())
    }

    fn statistics(&self, units: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> Statistics {
        let mut statistics = Statistics::new_unknown(&self.work.schema());
        if let Some(rows) = self.rows(units, partition) {
            statistics.num_rows = Precision::Exact(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        statistics
    }
}
