//! Footers as a table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::footers::columns::FooterLevel;
use crate::footers::rows::{FooterRows, FooterWork, UNITS, units_of};
use crate::footers::selection::Selection;
use crate::found_files;
use crate::functions::arguments::Arguments;
use crate::units::UnitsExec;

/// Files of one unit of work: each footer is opened with what the unit's earlier footers taught.
const FILES_A_BATCH: usize = 4096;

/// Minimum number of files in a partition.
const MIN_FILES: usize = 16;

/// The fields of Parquet footers, with a row for each column chunk, row group or file. The files are listed when a
/// query is planned and read when it runs.
#[derive(Debug)]
pub struct FooterTable {
    definition: Definition,
    schema: SchemaRef,
}

/// The definition of a footer table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    /// An absolute path or pattern.
    pattern: String,
    level: FooterLevel,
}

impl FooterTable {
    /// The files that `pattern` names: a file, a directory, or a pattern such as `data/**/*.parquet`.
    ///
    /// # Errors
    /// The pattern is a URL of another scheme, or one with a signature.
    pub fn new(pattern: &str, level: FooterLevel) -> Result<Self> {
        let pattern = found_files::absolute(pattern)?;
        Ok(Self::defined(Definition { pattern, level }))
    }

    pub(crate) fn defined(definition: Definition) -> Self {
        let schema = definition.level.schema(None);
        Self { definition, schema }
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }
}

/// The table of `footer('data/**', level => 'chunk')`.
pub(crate) fn of_call(mut call: Arguments) -> Result<Arc<dyn TableProvider>> {
    let Some(pattern) = call.text("files", Some(0))? else {
        return Err(refused("the files are missing", "footer", "name them: footer('data/**/*.parquet')"));
    };
    let level = match call.text("level", Some(1))? {
        None => FooterLevel::Chunk,
        Some(name) => match FooterLevel::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, level)) => *level,
            None => {
                let names = FooterLevel::ALL.map(|(name, _)| format!("'{name}'")).join(", ");
                return Err(refused("there is no such level", &name, &format!("give one of {names}")));
            }
        },
    };
    call.finish()?;
    Ok(Arc::new(FooterTable::new(&pattern, level)?))
}

/// Whether a filter looks at the name of the file alone.
fn is_of_file(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !filter.is_volatile() && !columns.is_empty() && columns.iter().all(|column| column.name == "file")
}

/// The files whose names pass the filters that look at nothing else.
fn passing(state: &dyn Session, files: Vec<String>, filters: &[Expr]) -> Result<Vec<String>> {
    let filters: Vec<Expr> = filters.iter().filter(|filter| is_of_file(filter)).cloned().collect();
    let Some(filter) = conjunction(filters) else { return Ok(files) };
    let names = units_of(&files)?;
    let filter = state.create_physical_expr(filter, &DFSchema::try_from(names.schema())?)?;
    let passes = filter.evaluate(&names)?.into_array(names.num_rows())?;
    let passes = passes.as_boolean_opt().map(|passes| passes.iter().map(|passes| passes == Some(true)));
    match passes {
        Some(passes) => {
            Ok(files.into_iter().zip(passes).filter(|(_, passes)| *passes).map(|(file, _)| file).collect())
        }
        None => Ok(files),
    }
}

#[async_trait]
impl TableProvider for FooterTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let used = |filter: &&Expr| match is_of_file(filter) || Selection::uses(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(used).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Definition { pattern, level } = self.definition.clone();
        // Listing a million files takes seconds.
        let listed = tokio::task::spawn_blocking(move || found_files::named(&pattern)).await;
        let listed = listed.map_err(external)??;
        let mut files = passing(state, listed, filters)?;
        if let (FooterLevel::File, Some(limit)) = (level, limit) {
            files.truncate(limit);
        }
        let partitions = files.len().div_ceil(MIN_FILES).clamp(1, state.config().target_partitions());
        let share = files.len().div_ceil(partitions).max(1);
        let batches =
            |files: &[String]| files.chunks(FILES_A_BATCH).map(units_of).collect::<Result<Vec<_>>>();
        let parts = files.chunks(share).map(batches).collect::<Result<Vec<_>>>()?;
        let all = || (0..level.columns().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all);
        let rows = FooterRows { level, columns, selection: Selection::new(filters), limit };
        UnitsExec::over(Arc::new(FooterWork::new(rows)), parts, Arc::clone(&UNITS))
    }
}
