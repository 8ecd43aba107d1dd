//! Runs stages on executors as Ballista does, but with Parquet readers that check pages: plans do not carry such
//! readers.

use std::sync::Arc;

use ballista_core::JobId;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::parquet::DefaultParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;

use crate::parquet_files::checked_pages::CheckedPages;
use crate::parquet_files::reader::Place;

/// Runs stages, and refuses Parquet pages of more than `max_page` bytes.
#[derive(Default)]
pub(crate) struct CheckingEngine {
    pub ballista: DefaultExecutionEngine,
    pub max_page: u64,
}

impl ExecutionEngine for CheckingEngine {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let plan = plan.transform(|node| Ok(checked(node, self.max_page)))?.data;
        self.ballista.create_query_stage_exec(job, stage, task, partitions, plan, work_dir, config)
    }
}

/// Gives a scan of local Parquet files readers that check pages. Executors only have the local store.
fn checked(node: Arc<dyn ExecutionPlan>, max_page: u64) -> Transformed<Arc<dyn ExecutionPlan>> {
    let scan = node.downcast_ref::<DataSourceExec>();
    let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let source =
        config.and_then(|config| Some((config, config.file_source().downcast_ref::<ParquetSource>()?)));
    let Some((config, source)) = source else { return Transformed::no(node) };
    if config.object_store_url != ObjectStoreUrl::local_filesystem() {
        return Transformed::no(node);
    }
    let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
    let readers = Arc::new(DefaultParquetFileReaderFactory::new(Arc::clone(&store)));
    let readers = CheckedPages::new(readers, Place::Files(store), max_page);
    let source = source.clone().with_parquet_file_reader_factory(Arc::new(readers));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
    Transformed::yes(DataSourceExec::from_data_source(config))
}
