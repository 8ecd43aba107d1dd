//! The operator that does the work of units.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures_util::StreamExt;

#[cfg(feature = "cluster")]
use crate::error::sent;
use crate::units::work::Work;

/// Batches that wait for the operator above, in each partition.
const WAITING_BATCHES: usize = 2;

/// Does the work of its child's rows, each of which is a unit. It has the partitions of its child.
#[derive(Debug)]
pub(crate) struct UnitsExec {
    work: Arc<dyn Work>,
    /// A memory table with the units.
    units: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Another process reads the errors.
    #[cfg(feature = "cluster")]
    sends_errors: bool,
}

impl UnitsExec {
    /// An operator over `units`, a plan whose rows are units of `work`.
    pub(crate) fn new(work: Arc<dyn Work>, units: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = units.output_partitioning().partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(work.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self {
            work,
            units,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
            #[cfg(feature = "cluster")]
            sends_errors: false,
        }
    }

    /// The same operator as part of a plan from another process.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_another_process(self) -> Self {
        Self { sends_errors: true, ..self }
    }

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
        Ok(Arc::new(Self::new(work, MemorySourceConfig::try_new_exec(&partitions, schema, None)?)))
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn work(&self) -> &dyn Work {
        self.work.as_ref()
    }

    /// The units of all partitions, if they are in memory as they were planned. A scheduler may have left only
    /// those of one task.
    fn partitions(&self) -> Option<&[Vec<RecordBatch>]> {
        let source = self.units.downcast_ref::<DataSourceExec>()?.data_source();
        let source: &dyn std::any::Any = source.as_ref();
        Some(source.downcast_ref::<MemorySourceConfig>()?.partitions())
    }

    /// The rows of one partition, or of all.
    fn rows(&self, partition: Option<usize>) -> Option<u64> {
        let partitions = self.partitions()?;
        let wanted = match partition {
            Some(place) => std::slice::from_ref(partitions.get(place)?),
            None => partitions,
        };
        wanted.iter().flatten().map(|units| self.work.rows(units)).sum()
    }
}

impl DisplayAs for UnitsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.work.explained())
    }
}

impl ExecutionPlan for UnitsExec {
    fn name(&self) -> &str {
        "UnitsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.units]
    }

    /// False: a repartitioning between this operator and its units would hide them from the scheduler.
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
            (Some(units), true) => {
                let replaced = Self::new(Arc::clone(&self.work), units);
                #[cfg(feature = "cluster")]
                let replaced = Self { sends_errors: self.sends_errors, ..replaced };
                Ok(Arc::new(replaced))
            }
            _ => internal_err!("UnitsExec has one child"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(
            datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute,
        );
        self.replace_children(children, options)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let mut units = self.units.execute(partition, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut stream = RecordBatchReceiverStream::builder(self.schema(), WAITING_BATCHES);
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(rows) = self.rows(args.partition()) {
            statistics.num_rows = Precision::Exact(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        Ok(Arc::new(statistics))
    }
}
