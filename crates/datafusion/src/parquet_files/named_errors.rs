//! Adds the file's name to errors of reading, which DataFusion's reader leaves out.
//!
//! A source of files hands out morsels, the units in which DataFusion reads; here each morsel knows its file.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::parquet_files::reader::Place;

/// A source of files whose errors have names.
#[derive(Clone)]
pub(crate) struct NamedErrors {
    pub source: Arc<dyn FileSource>,
    pub place: Place,
}

impl NamedErrors {
    fn over(&self, source: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { source, place: self.place.clone() })
    }
}

impl FileSource for NamedErrors {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.source.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let files = self.source.create_morselizer(store, config, partition)?;
        Ok(Box::new(NamedFiles { files, place: self.place.clone() }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.source.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.over(self.source.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.source.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.source.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.source.metrics()
    }

    fn file_type(&self) -> &str {
        self.source.file_type()
    }

    fn fmt_extra(&self, form: DisplayFormatType, out: &mut Formatter<'_>) -> fmt::Result {
        self.source.fmt_extra(form, out)
    }

    fn supports_repartitioning(&self) -> bool {
        self.source.supports_repartitioning()
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let pushed = self.source.try_pushdown_filters(filters, config)?;
        let updated_node = pushed.updated_node.map(|source| self.over(source));
        Ok(FilterPushdownPropagation { updated_node, filters: pushed.filters })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.source.try_pushdown_sort(order, properties)?.map(|source| self.over(source)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.source.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.source.try_pushdown_projection(projection)?;
        Ok(pushed.map(|source| self.over(source)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.source.apply_expressions(f)
    }
}

#[derive(Debug)]
struct NamedFiles {
    files: Box<dyn Morselizer>,
    place: Place,
}

impl Morselizer for NamedFiles {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let name: Arc<str> = self.place.name_of(&file.object_meta.location).into();
        let planner = self.files.plan_file(file).map_err(|error| named(error, &name))?;
        Ok(Box::new(Named { of: planner, name }))
    }
}

/// A planner or a morsel, and the file that it is of.
#[derive(Debug)]
struct Named<T> {
    of: T,
    name: Arc<str>,
}

impl MorselPlanner for Named<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { of, name } = *self;
        let Some(mut plan) = of.plan().map_err(|error| named(error, &name))? else { return Ok(None) };
        let pending = plan.take_pending_planner();
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|of| Box::new(Named { of, name: Arc::clone(&name) }) as Box<dyn Morsel>);
        let planners = plan.take_ready_planners().into_iter();
        let planners =
            planners.map(|of| Box::new(Named { of, name: Arc::clone(&name) }) as Box<dyn MorselPlanner>);
        let mut plan = MorselPlan::new().with_morsels(morsels.collect()).with_planners(planners.collect());
        if let Some(pending) = pending {
            plan.set_pending_planner(async move {
                let of = pending.await.map_err(|error| named(error, &name))?;
                Ok(Box::new(Named { of, name }) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(plan))
    }
}

impl Morsel for Named<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { of, name } = *self;
        of.into_stream().map(move |batch| batch.map_err(|error| named(error, &name))).boxed()
    }
}

/// An error of the format with the file's name. Errors of expressions and of our own readers stay as they are.
fn named(error: DataFusionError, name: &str) -> DataFusionError {
    let what = match error.find_root() {
        DataFusionError::ParquetError(error) => Some(error.to_string()),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::ParquetError(what) => Some(what.clone()),
            _ => None,
        },
        _ => None,
    };
    match what.filter(|what| !what.contains(name)) {
        Some(what) => {
            DataFusionError::Execution(format!("{what} - {name} - restore the file, or leave it out"))
        }
        None => error,
    }
}
