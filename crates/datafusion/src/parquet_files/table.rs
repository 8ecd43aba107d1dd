//! Parquet files as a table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::physical_plan::ExecutionPlan;
use sawmill_footer::Options;
use sawmill_inspect::DEFAULT_MAX_PAGE;
use sawmill_store::ObjectUrl;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::found_files;
use crate::functions::arguments::Arguments;
use crate::objects;
use crate::parquet_files::checked_pages::CheckedPages;
use crate::parquet_files::named_errors::NamedErrors;
#[cfg(feature = "cluster")]
use crate::parquet_files::reader;
use crate::parquet_files::reader::{FooterReaders, Place};
use crate::parquet_files::types;

/// Rows of Parquet files. From each footer, a scan decodes only the columns that it needs. The first file defines
/// the table's columns. Other files may lack nullable columns, which are null there.
#[derive(Debug)]
pub struct ParquetTable {
    definition: Definition,
    schema: SchemaRef,
    /// Executors read the rows with DataFusion's reader, which converts values even if they change.
    is_for_executors: bool,
}

/// The definition of a table of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// An absolute path or pattern.
    pattern: String,
    /// The most bytes of a page, for readers in this process.
    max_page: u64,
}

impl ParquetTable {
    /// The files that `pattern` names: a file, a directory, or a pattern such as `data/**/*.parquet`. Pages of more than
    /// 64 MiB are refused.
    ///
    /// # Errors
    /// No files match, or the footer of the first one cannot be read.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::with_max_page(pattern, DEFAULT_MAX_PAGE)
    }

    /// As [`new`](Self::new), with pages of up to `max_page` bytes.
    ///
    /// # Errors
    /// As [`ParquetTable::new`].
    pub fn with_max_page(pattern: &str, max_page: u64) -> Result<Self> {
        let definition = Definition { pattern: found_files::absolute(pattern)?, max_page };
        let files = found_files::named(&definition.pattern)?;
        let Some(first) = files.first() else {
            return Err(found_files::none(pattern));
        };
        // Without row groups: the schema alone.
        let footer = objects::footer(first, &Options::new().row_groups(0..0))?;
        let metadata = Arc::new(footer.to_parquet_59(None).map_err(external)?);
        let arrow = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?;
        Ok(Self {
            definition,
            schema: types::with_extensions(arrow.schema(), arrow.metadata()),
            is_for_executors: false,
        })
    }

    /// The table of `definition`, whose schema is known, for a scheduler.
    #[cfg(feature = "cluster")]
    pub(crate) fn defined(definition: Definition, schema: SchemaRef) -> Self {
        Self { definition, schema, is_for_executors: true }
    }

    /// Refuses tables that executors cannot read: they do not read objects of stores, and do not know other page
    /// limits.
    ///
    /// # Errors
    /// The files are objects, or the table has another page limit than the default.
    #[cfg(feature = "cluster")]
    pub(crate) fn refuse_for_executors(&self) -> Result<()> {
        let pattern = &self.definition.pattern;
        if self.definition.max_page != DEFAULT_MAX_PAGE {
            let advice = "leave it out, and start the executors with --max-page";
            return Err(refused(
                "executors have their own limit of pages, and not max_page",
                pattern,
                advice,
            ));
        }
        if objects::url_of(pattern).is_ok_and(|url| url.is_some()) {
            let advice = "run the query without --scheduler, or read files in a shared folder";
            return Err(refused("a cluster does not read rows of objects", pattern, advice));
        }
        Ok(())
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }
}

/// The table of `parquet('data/**')`.
pub(crate) fn of_call(mut call: Arguments) -> Result<Arc<dyn TableProvider>> {
    let Some(pattern) = call.text("files", Some(0))? else {
        return Err(refused("the files are missing", "parquet", "name them: parquet('data/**/*.parquet')"));
    };
    let max_page = call.number("max_page", None)?.unwrap_or(DEFAULT_MAX_PAGE);
    call.finish()?;
    Ok(Arc::new(ParquetTable::with_max_page(&pattern, max_page)?))
}

/// The files or objects with their sizes, and where they are.
fn listed(pattern: &str) -> Result<(Place, Vec<PartitionedFile>)> {
    Ok(match objects::url_of(pattern)? {
        Some(url) => {
            let found = found_files::objects_named(&url)?;
            let files = found.iter().map(|(url, bytes)| object(url, *bytes)).collect::<Result<_>>()?;
            (Place::Objects(url), files)
        }
        None => {
            let files = files(found_files::named(pattern)?)?;
            (Place::Files(Arc::new(LocalFileSystem::new())), files)
        }
    })
}

/// An object by its key.
fn object(url: &ObjectUrl, bytes: Option<u64>) -> Result<PartitionedFile> {
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => objects::open(url)?.0.object().size(),
    };
    let mut file = PartitionedFile::new("", bytes);
    file.object_meta.location = ObjectPath::parse(url.key()).map_err(external)?;
    Ok(file)
}

fn files(names: Vec<String>) -> Result<Vec<PartitionedFile>> {
    let file = |name: String| {
        let there = std::fs::metadata(&name);
        let bytes =
            there.map_err(|error| refused(error.to_string(), &name, "check the file and its permissions"))?;
        let path = ObjectPath::from_absolute_path(&name).map_err(external)?;
        let mut file = PartitionedFile::new("", bytes.len());
        file.object_meta.location = path;
        Ok(file)
    };
    names.into_iter().map(file).collect()
}

/// Compares the types of all files with the table's before executors read them.
#[cfg(feature = "cluster")]
fn check_all(paths: &[String], roots: &[String], schema: &SchemaRef) -> Result<()> {
    let check = |path: &String| {
        let options = Options::new().row_groups(0..0);
        let metadata = reader::metadata(roots, &options, |options| objects::footer(path, options))?;
        types::check(path, &Arc::new(metadata), schema)
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let share = paths.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let checked: Vec<_> =
            paths.chunks(share).map(|paths| scope.spawn(move || paths.iter().try_for_each(check))).collect();
        checked.into_iter().try_for_each(|thread| match thread.join() {
            Ok(checked) => checked,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // DataFusion prunes row groups by them, and filters the rows again.
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
        let schema = Arc::new(self.schema.project(&fields)?);
        // Rows are counted by the metadata of one field.
        let roots = if fields.is_empty() { self.schema.fields() } else { schema.fields() };
        let roots: Arc<[String]> =
            roots.iter().take(fields.len().max(1)).map(|field| field.name().clone()).collect();
        let pattern = self.definition.pattern.clone();
        let listed = tokio::task::spawn_blocking(move || listed(&pattern)).await;
        let (place, files) = listed.map_err(external)??;
        #[cfg(feature = "cluster")]
        if self.is_for_executors {
            let (roots, schema) = (Arc::clone(&roots), Arc::clone(&schema));
            let paths: Vec<String> =
                files.iter().map(|file| format!("/{}", file.object_meta.location)).collect();
            let checked = tokio::task::spawn_blocking(move || check_all(&paths, &roots, &schema));
            checked.await.map_err(external)?.map_err(|error| crate::error::sent(&error))?;
        }
        let readers = FooterReaders { place: place.clone(), roots, schema: Arc::clone(&schema) };
        let readers = CheckedPages::new(Arc::new(readers), place.clone(), self.definition.max_page);
        let mut source =
            ParquetSource::new(Arc::clone(&schema)).with_parquet_file_reader_factory(Arc::new(readers));
        if let Some(filter) = conjunction(filters.to_vec()) {
            let filter = state.create_physical_expr(filter, &DFSchema::try_from(Arc::clone(&schema))?)?;
            source = source.with_predicate(filter);
        }
        let source: Arc<dyn FileSource> = Arc::new(source);
        let source = match self.is_for_executors {
            // Ballista encodes the sources that it knows.
            true => source,
            false => Arc::new(NamedErrors { source, place }),
        };
        let share = files.len().div_ceil(state.config().target_partitions()).max(1);
        let groups = files.chunks(share).map(|files| FileGroup::new(files.to_vec())).collect();
        let places = projected.iter().filter_map(|field| fields.binary_search(field).ok()).collect();
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file_groups(groups)
            .with_projection_indices(Some(places))?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
