//! DataFusion scans 3 of 10,000 columns: its reader factory hands it metadata that `sawmill-footer` made for
//! those columns alone.
//!
//! ```sh
//! cargo run --manifest-path crates/footer/examples/datafusion/Cargo.toml
//! cargo test --manifest-path crates/footer/examples/datafusion/Cargo.toml
//! ```
//!
//! Sawmill converts, once for a table, the schema with no row group, from which DataFusion plans; for a scan,
//! the chunks of the columns that are projected or filtered by. DataFusion then prunes row groups by their
//! statistics, and reads pages, as ever.

use std::any::Any;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Float32Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::DataSourceExec;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetFileReaderFactory, ParquetSource};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, col, lit};
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::FutureExt;
use futures::future::BoxFuture;
use sawmill_footer::{Footer, FooterBytes, FooterRequest, NextStep, Options};

const COLUMNS: usize = 10_000;
const ROW_GROUPS: usize = 4;
const ROWS: usize = 5;

/// A Parquet file as a table. It keeps the footer's bytes and decodes what a scan needs of them.
#[derive(Debug)]
struct WideTable {
    store: Arc<dyn ObjectStore>,
    object: ObjectMeta,
    footer: FooterBytes,
    schema: SchemaRef,
}

impl WideTable {
    async fn open(store: Arc<dyn ObjectStore>, path: &Path) -> Result<Self, Box<dyn Error>> {
        let object = store.head(path).await?;
        // Without row groups: the schema alone.
        let options = Options::new().row_groups(0..0);
        let mut request = FooterRequest::new(object.size, path.as_ref(), &options)?;
        let footer = loop {
            let bytes = store.get_range(path, request.wanted()).await?;
            match request.supply(bytes.into())? {
                NextStep::Fetch(again) => request = again,
                NextStep::Done(footer) => break footer,
            }
        };
        let metadata = Arc::new(footer.to_parquet_59(None)?);
        let arrow = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?;
        let (schema, footer) = (Arc::clone(arrow.schema()), FooterBytes::from(footer.bytes().to_vec()));
        Ok(Self { store, object, footer, schema })
    }

    /// The metadata of some columns, in the order of the schema.
    fn metadata(&self, fields: &[usize]) -> Result<ParquetMetaData, sawmill_footer::Error> {
        let names = fields.iter().map(|&field| self.schema.field(field).name().clone());
        let footer = Footer::decode(self.footer.clone(), &Options::new().column_roots(names))?;
        footer.to_parquet_59(None)
    }
}

#[async_trait]
impl TableProvider for WideTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Row groups are pruned, rows are filtered by DataFusion.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projected = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        // Columns that are only filtered by are not among the projected ones.
        let mut fields = projected.clone();
        for column in filters.iter().flat_map(Expr::column_refs) {
            fields.push(self.schema.index_of(&column.name)?);
        }
        fields.sort_unstable();
        fields.dedup();
        let metadata = self.metadata(&fields).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let schema = Arc::new(self.schema.project(&fields)?);
        let factory = OurMetadata { store: Arc::clone(&self.store), metadata: Arc::new(metadata) };
        let mut source =
            ParquetSource::new(Arc::clone(&schema)).with_parquet_file_reader_factory(Arc::new(factory));
        if let Some(filter) = conjunction(filters.to_vec()) {
            let filter = state.create_physical_expr(filter, &DFSchema::try_from(Arc::clone(&schema))?)?;
            source = source.with_predicate(filter);
        }
        let places = projected.iter().filter_map(|field| fields.binary_search(field).ok()).collect();
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file(PartitionedFile::new_from_meta(self.object.clone()))
            .with_projection_indices(Some(places))?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Hands DataFusion metadata that is there already.
#[derive(Debug)]
struct OurMetadata {
    store: Arc<dyn ObjectStore>,
    metadata: Arc<ParquetMetaData>,
}

impl ParquetFileReaderFactory for OurMetadata {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let (store, metadata) = (Arc::clone(&self.store), Arc::clone(&self.metadata));
        Ok(Box::new(Pages { store, metadata, path: file.object_meta.location }))
    }
}

struct Pages {
    store: Arc<dyn ObjectStore>,
    metadata: Arc<ParquetMetaData>,
    path: Path,
}

impl AsyncFileReader for Pages {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let bytes = async move { self.store.get_range(&self.path, range).await };
        bytes.map(|bytes| bytes.map_err(|error| ParquetError::External(Box::new(error)))).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        std::future::ready(Ok(Arc::clone(&self.metadata))).boxed()
    }
}

/// A file of many columns: row 7 of column `c00042` is 49.0.
fn write(path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let column = |at: usize| -> (String, ArrayRef) {
        let values = (0..ROW_GROUPS * ROWS).map(|row| (at + row) as f32);
        (format!("c{at:05}"), Arc::new(Float32Array::from_iter_values(values)))
    };
    let batch = RecordBatch::try_from_iter((0..COLUMNS).map(column))?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path)?, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// `select c05000, c09999 where c00007 >= 20`, which the last two row groups have rows of.
async fn query(context: &SessionContext, table: Arc<dyn TableProvider>) -> Result<Vec<RecordBatch>> {
    let rows = context.read_table(table)?.filter(col("c00007").gt_eq(lit(20.0_f32)))?;
    rows.select_columns(&["c05000", "c09999"])?.collect().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("wide.parquet");
    write(&file)?;
    let context = SessionContext::new();

    let started = Instant::now();
    let table = WideTable::open(Arc::new(LocalFileSystem::new()), &Path::from_absolute_path(&file)?).await?;
    let table = Arc::new(table);
    let opened = started.elapsed();
    let ours = query(&context, Arc::clone(&table) as _).await?;
    println!("by metadata of 3 columns: opened in {opened:?}, all in {:?}", started.elapsed());

    let metadata = table.metadata(&[7, 5000, 9999])?;
    assert_eq!(metadata.row_groups().iter().map(|group| group.num_columns()).sum::<usize>(), 3 * ROW_GROUPS);

    let started = Instant::now();
    let path = file.to_str().ok_or("a path of text")?;
    context.register_parquet("whole", path, ParquetReadOptions::default()).await?;
    let theirs = query(&context, context.table_provider("whole").await?).await?;
    println!("by DataFusion alone: {:?}", started.elapsed());

    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(rows(&ours), ROW_GROUPS * ROWS - 13);
    assert_eq!(
        ours.iter().flat_map(columns).collect::<Vec<_>>(),
        theirs.iter().flat_map(columns).collect::<Vec<_>>()
    );
    Ok(())
}

/// The values of a batch as text, row by row.
fn columns(batch: &RecordBatch) -> Vec<String> {
    let values = |at: usize| -> Vec<f32> {
        let column = batch.column(at).as_any() as &dyn Any;
        column.downcast_ref::<Float32Array>().map(|array| array.values().to_vec()).unwrap_or_default()
    };
    values(0).iter().zip(values(1)).map(|row| format!("{row:?}")).collect()
}

#[cfg(test)]
#[test]
fn datafusion_gets_the_same_rows_from_metadata_of_three_columns() {
    main().unwrap();
}
