//! Shared `ExecutionPlan` boilerplate for operators with one input.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// The work of an operator on the rows of its child.
pub(crate) trait Operation: Debug + Send + Sync + 'static {
    /// The name of the operator.
    const NAME: &'static str;

    /// The line that `EXPLAIN` shows.
    fn explained(&self) -> String;

    /// The schema and the partitions of the result.
    fn properties(&self, child: &Arc<dyn ExecutionPlan>) -> PlanProperties;

    /// Runs a partition, and measures it.
    ///
    /// # Errors
    /// The partition does not exist.
    fn execute(
        &self,
        child: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream>;

    /// Statistics known before it runs, of one partition or of all.
    fn statistics(&self, child: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> Statistics;
}

/// An operation over a child. The child keeps its partitions, and their rows their order.
#[derive(Debug)]
pub(crate) struct Operator<O> {
    operation: Arc<O>,
    child: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<O: Operation> Operator<O> {
    pub(crate) fn new(operation: O, child: Arc<dyn ExecutionPlan>) -> Self {
        Self::shared(Arc::new(operation), child)
    }

    fn shared(operation: Arc<O>, child: Arc<dyn ExecutionPlan>) -> Self {
        let properties = Arc::new(operation.properties(&child));
        Self { operation, child, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only codecs look into operators"))]
    pub(crate) fn operation(&self) -> &O {
        &self.operation
    }
}

impl<O: Operation> DisplayAs for Operator<O> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation.explained())
    }
}

impl<O: Operation> ExecutionPlan for Operator<O> {
    fn name(&self) -> &str {
        O::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.child]
    }

    /// False: a repartitioning below would hide units from a scheduler, and rows of a sorted query lose their order.
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
            (Some(child), true) => Ok(Arc::new(Self::shared(Arc::clone(&self.operation), child))),
            _ => internal_err!("{} has one child", O::NAME),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.operation.execute(&self.child, partition, context, &self.metrics)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.operation.statistics(&self.child, args.partition())))
    }
}
