//! Hands DataFusion the metadata of the columns of a scan alone.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::Result;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sawmill_footer::{Error, Footer, Options};

/// Makes readers of files whose metadata has the fields `roots` alone, each with its nested fields.
#[derive(Debug)]
pub(crate) struct FooterReaders {
    pub store: Arc<dyn ObjectStore>,
    pub roots: Arc<[String]>,
}

impl ParquetFileReaderFactory for FooterReaders {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let (store, roots) = (Arc::clone(&self.store), Arc::clone(&self.roots));
        Ok(Box::new(FooterReader { store, roots, path: file.object_meta.location, metadata: None }))
    }
}

struct FooterReader {
    store: Arc<dyn ObjectStore>,
    roots: Arc<[String]>,
    path: ObjectPath,
    metadata: Option<Arc<ParquetMetaData>>,
}

impl AsyncFileReader for FooterReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { self.store.get_range(&self.path, range).await.map_err(external) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.store.get_ranges(&self.path, &ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            if let Some(metadata) = &self.metadata {
                return Ok(Arc::clone(metadata));
            }
            let (path, roots) = (format!("/{}", self.path), Arc::clone(&self.roots));
            let decoded = tokio::task::spawn_blocking(move || metadata(Path::new(&path), &roots));
            let decoded = Arc::new(decoded.await.map_err(external)?.map_err(external)?);
            self.metadata = Some(Arc::clone(&decoded));
            Ok(decoded)
        }
        .boxed()
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// The metadata of the fields `roots` that a file has; of its first field, if it has none of them.
fn metadata(path: &Path, roots: &[String]) -> Result<ParquetMetaData, Error> {
    let of = |roots: &[String]| Options::new().column_roots(roots.iter().cloned());
    let footer = match Footer::open_with(path, &of(roots)) {
        Ok(footer) => footer,
        // Files of one table may have different columns.
        Err(_) => {
            let schema = Footer::open_with(path, &Options::new().row_groups(0..0))?.shared_schema();
            let has = |root: &String| schema.root().children().any(|field| field.name() == root);
            let mut there: Vec<String> = roots.iter().filter(|root| has(root)).cloned().collect();
            if there.is_empty() {
                there.extend(schema.root().children().take(1).map(|field| field.name().to_owned()));
            }
            Footer::open_with(path, &of(&there))?
        }
    };
    footer.to_parquet_59(None)
}
