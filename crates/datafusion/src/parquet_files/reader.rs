//! Hands DataFusion the metadata of the columns of a scan alone.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sawmill_footer::{Footer, Options};
use sawmill_store::ObjectUrl;

use crate::objects::{self, ObjectBytes};
use crate::parquet_files::types;

/// Makes readers of files whose metadata has the fields `roots` alone, each with its nested fields.
#[derive(Debug)]
pub(crate) struct FooterReaders {
    pub place: Place,
    pub roots: Arc<[String]>,
    /// The columns of the table that are read.
    pub schema: SchemaRef,
}

/// The place of the files.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine.
    Files(Arc<dyn ObjectStore>),
    /// In the store of this URL.
    Objects(ObjectUrl),
}

impl Place {
    /// The path or the URL of a file.
    pub(crate) fn name_of(&self, path: &ObjectPath) -> String {
        match self {
            Self::Files(_) => format!("/{path}"),
            Self::Objects(url) => url.sibling(path.as_ref()).to_string(),
        }
    }
}

impl ParquetFileReaderFactory for FooterReaders {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let (roots, schema) = (Arc::clone(&self.roots), Arc::clone(&self.schema));
        let path = file.object_meta.location;
        Ok(match &self.place {
            Place::Files(store) => {
                Box::new(FooterReader { store: Arc::clone(store), roots, schema, path, metadata: None })
            }
            Place::Objects(url) => Box::new(ObjectFooterReader {
                url: url.sibling(path.as_ref()),
                roots,
                schema,
                object: None,
                metadata: None,
            }),
        })
    }
}

struct FooterReader {
    store: Arc<dyn ObjectStore>,
    roots: Arc<[String]>,
    schema: SchemaRef,
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
            let path = format!("/{}", self.path);
            let (roots, schema) = (Arc::clone(&self.roots), Arc::clone(&self.schema));
            let decode = move || {
                let decoded =
                    Arc::new(metadata(&roots, &Options::new(), |options| objects::footer(&path, options))?);
                types::check(&path, &decoded, &schema)?;
                Ok::<_, DataFusionError>(decoded)
            };
            let decoded = tokio::task::spawn_blocking(decode);
            let decoded = decoded.await.map_err(external)?.map_err(external)?;
            self.metadata = Some(Arc::clone(&decoded));
            Ok(decoded)
        }
        .boxed()
    }
}

pub(super) fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// The metadata of the fields in `roots` that the file has, or else of its first field.
pub(crate) fn metadata(
    roots: &[String],
    options: &Options,
    open: impl Fn(&Options) -> Result<Footer>,
) -> Result<ParquetMetaData> {
    let of = |roots: &[String]| options.clone().column_roots(roots.iter().cloned());
    let footer = match open(&of(roots)) {
        Ok(footer) => footer,
        // Files of one table may have different columns.
        Err(_) => {
            let schema = open(&Options::new().row_groups(0..0))?.shared_schema();
            let has = |root: &String| schema.root().children().any(|field| field.name() == root);
            let mut there: Vec<String> = roots.iter().filter(|root| has(root)).cloned().collect();
            if there.is_empty() {
                there.extend(schema.root().children().take(1).map(|field| field.name().to_owned()));
            }
            open(&of(&there))?
        }
    };
    footer.to_parquet_59(None).map_err(crate::error::external)
}

/// Reads an object with requests that block threads for them.
struct ObjectFooterReader {
    url: ObjectUrl,
    roots: Arc<[String]>,
    schema: SchemaRef,
    object: Option<Arc<ObjectBytes>>,
    metadata: Option<Arc<ParquetMetaData>>,
}

impl ObjectFooterReader {
    /// Does something with the object, which is opened once.
    async fn with_object<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&ObjectBytes) -> Result<T> + Send + 'static,
    ) -> ParquetResult<T> {
        let (there, url) = (self.object.clone(), self.url.clone());
        let done = tokio::task::spawn_blocking(move || {
            let object = there.map_or_else(|| objects::open(&url).map(Arc::new), Ok)?;
            let done = work(&object);
            match (done, object.0.fault().cloned()) {
                // The store's error says more than the reader's.
                (Err(_), Some(fault)) => Err(crate::error::external(fault)),
                (done, _) => Ok((object, done?)),
            }
        });
        let (object, done) = done.await.map_err(external)?.map_err(external)?;
        self.object = Some(object);
        Ok(done)
    }
}

impl AsyncFileReader for ObjectFooterReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        let read = move |object: &ObjectBytes| {
            let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0)];
            object.0.read_exact_at(range.start, &mut bytes).map_err(crate::error::external)?;
            Ok(Bytes::from(bytes))
        };
        self.with_object(read).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            if let Some(metadata) = &self.metadata {
                return Ok(Arc::clone(metadata));
            }
            let name = self.url.to_string();
            let (roots, schema) = (Arc::clone(&self.roots), Arc::clone(&self.schema));
            let decode = move |object: &ObjectBytes| {
                let decoded = Arc::new(metadata(&roots, &Options::new(), |options| {
                    Footer::read(object, &name, options).map_err(crate::error::external)
                })?);
                types::check(&name, &decoded, &schema)?;
                Ok(decoded)
            };
            let decoded = self.with_object(decode).await?;
            self.metadata = Some(Arc::clone(&decoded));
            Ok(decoded)
        }
        .boxed()
    }
}
