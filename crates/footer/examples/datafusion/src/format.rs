//! A file format for DataFusion that decodes footers with `sawmill-footer`: the schema alone for planning, then
//! the chunks of a scan's columns alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, parquet::ParquetFormat};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{transform_binary_to_string, transform_schema_to_view};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use sawmill_footer::{Footer, FooterBytes, FooterRequest, NextStep, Options};

/// DataFusion's Parquet format, whose footers Sawmill decodes. It infers no statistics of whole files.
#[derive(Debug, Default)]
pub struct FooterFormat {
    parquet: ParquetFormat,
    footers: Arc<Footers>,
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The bytes of footers that were read, by the files' versions.
#[derive(Debug, Default)]
struct Footers(Mutex<HashMap<Path, (ObjectMeta, FooterBytes)>>);

impl Footers {
    /// The bytes of a footer.
    async fn bytes(&self, store: &dyn ObjectStore, object: &ObjectMeta) -> Result<FooterBytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object.location).cloned();
        if let Some((_, bytes)) = kept.filter(|(of, _)| of == object) {
            return Ok(bytes);
        }
        // Without row groups, so that it decodes the schema alone.
        let nothing = Options::new().row_groups(0..0);
        let mut request =
            FooterRequest::new(object.size, object.location.as_ref(), &nothing).map_err(external)?;
        let footer = loop {
            let bytes = store.get_range(&object.location, request.wanted()).await?;
            match request.supply(bytes.into()).map_err(external)? {
                NextStep::Fetch(again) => request = again,
                NextStep::Done(footer) => break footer,
            }
        };
        let bytes = FooterBytes::from(footer.bytes().to_vec());
        let kept = (object.clone(), bytes.clone());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(object.location.clone(), kept);
        Ok(bytes)
    }

    /// The metadata that `options` select.
    async fn metadata(
        &self,
        store: &dyn ObjectStore,
        object: &ObjectMeta,
        options: &Options,
    ) -> Result<Arc<ParquetMetaData>> {
        let bytes = self.bytes(store, object).await?;
        let footer = Footer::decode(bytes, options).map_err(external)?;
        Ok(Arc::new(footer.to_parquet_59(None).map_err(external)?))
    }
}

#[async_trait]
impl FileFormat for FooterFormat {
    fn get_ext(&self) -> String {
        self.parquet.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.parquet.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.parquet.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let schema = async |object: &ObjectMeta| {
            let options = Options::new().row_groups(0..0);
            let metadata = self.footers.metadata(store, object, &options).await?;
            let arrow = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?;
            let kept =
                if self.parquet.skip_metadata() { HashMap::new() } else { arrow.schema().metadata().clone() };
            Ok::<_, DataFusionError>(arrow.schema().as_ref().clone().with_metadata(kept))
        };
        let at_once = state.config_options().execution.meta_fetch_concurrency.get();
        let schemas: Vec<Schema> =
            futures::stream::iter(objects).map(schema).buffered(at_once).try_collect().await?;
        let mut schema = Schema::try_merge(schemas)?;
        if self.parquet.binary_as_string() {
            schema = transform_binary_to_string(&schema);
        }
        if self.parquet.force_view_types() {
            schema = transform_schema_to_view(&schema);
        }
        Ok(Arc::new(schema))
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config.file_source();
        let fields = config.file_schema().fields();
        let projected = source
            .projection()
            .map_or_else(|| (0..fields.len()).collect(), |projection| projection.column_indices());
        let mut roots: Vec<String> =
            projected.iter().filter_map(|&at| Some(fields.get(at)?.name().clone())).collect();
        if roots.is_empty() {
            // The metadata of one field counts the rows.
            roots.extend(fields.first().map(|field| field.name().clone()));
        }
        let store = state.runtime_env().object_store(&config.object_store_url)?;
        let readers = FooterReaders { store, footers: Arc::clone(&self.footers), roots: roots.into() };
        let Some(source) = source.downcast_ref::<ParquetSource>() else {
            return Err(DataFusionError::Internal("another source than Parquet".into()));
        };
        let source = source.clone().with_parquet_file_reader_factory(Arc::new(readers));
        let config = FileScanConfigBuilder::from(config).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.parquet.file_source(schema)
    }
}

/// Makes readers of files whose metadata has the fields `roots` alone.
#[derive(Debug)]
struct FooterReaders {
    store: Arc<dyn ObjectStore>,
    footers: Arc<Footers>,
    roots: Arc<[String]>,
}

impl ParquetFileReaderFactory for FooterReaders {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(FooterReader {
            store: Arc::clone(&self.store),
            footers: Arc::clone(&self.footers),
            roots: Arc::clone(&self.roots),
            object: file.object_meta,
        }))
    }
}

struct FooterReader {
    store: Arc<dyn ObjectStore>,
    footers: Arc<Footers>,
    roots: Arc<[String]>,
    object: ObjectMeta,
}

fn reading(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for FooterReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { self.store.get_range(&self.object.location, range).await.map_err(reading) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.store.get_ranges(&self.object.location, &ranges).await.map_err(reading) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let options = Options::new().column_roots(self.roots.iter().cloned());
            self.footers.metadata(self.store.as_ref(), &self.object, &options).await.map_err(reading)
        }
        .boxed()
    }
}
