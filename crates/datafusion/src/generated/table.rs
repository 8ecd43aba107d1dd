//! A generated dataset as a table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use sawmill_generator::Dataset;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::functions::arguments::Arguments;
use crate::generated::rows::{Column, GeneratedRows, RowsWork, UNITS, number_field, units_of};
use crate::generated::spec::Spec;
use crate::units::UnitsExec;
use crate::units::row_ranges::RowRanges;

/// Each partition is a task, and a plan names all of them.
const MAX_PARTITIONS: u64 = 1 << 16;

/// Rows of a dataset that are made when a query reads them. Partitions are ranges of rows; fields that a query does
/// not use are not drawn.
#[derive(Debug)]
pub struct GeneratedTable {
    definition: Definition,
    dataset: Arc<Dataset>,
    schema: SchemaRef,
    columns: Vec<Column>,
}

/// The definition of a generated table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    spec: Spec,
    rows: u64,
    seed: u64,
    number: Option<String>,
    partitions: Option<usize>,
}

impl GeneratedTable {
    /// The dataset `spec`: a built-in one, `tpch/TABLE`, a TOML file, or a table of one as `SPEC/TABLE`, with the rows
    /// that its spec states.
    ///
    /// # Errors
    /// The dataset does not exist, or its spec is not valid.
    pub fn new(spec: &str) -> Result<Self> {
        Self::read(spec, None)
    }

    /// As [`new`](Self::new), at a scale: the scale factor of a benchmark, or a factor for the rows of a spec's
    /// tables.
    ///
    /// # Errors
    /// As [`GeneratedTable::new`], and if the dataset has no scale, or not this one.
    pub fn with_scale(spec: &str, scale: f64) -> Result<Self> {
        Self::read(spec, Some(scale))
    }

    fn read(spec: &str, scale: Option<f64>) -> Result<Self> {
        let (spec, dataset) = Spec::read(spec, scale)?;
        let (rows, seed) = dataset.rows_and_seed(None, None).map_err(external)?;
        let rows = rows.unwrap_or(0);
        Self::defined(Definition { spec, rows, seed, number: None, partitions: None }, dataset)
    }

    pub(crate) fn defined(definition: Definition, dataset: Arc<Dataset>) -> Result<Self> {
        let record = dataset.arrow_schema();
        let mut fields: Vec<_> = record.fields().iter().cloned().collect();
        let mut columns: Vec<Column> = (0..fields.len()).map(Column::Field).collect();
        if let Some(name) = &definition.number {
            if record.field_with_name(name).is_ok() {
                let what = "the column of row numbers has the name of a field";
                return Err(refused(what, name, "choose another name"));
            }
            fields.insert(0, number_field(name));
            columns.insert(0, Column::Number);
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { definition, dataset, schema, columns })
    }

    /// Sets the number of rows. Tables of benchmarks, and tables of a spec with as many rows as their parents say, have no
    /// more than those.
    pub fn with_rows(mut self, rows: u64) -> Self {
        let own = self.dataset.rows().filter(|_| self.dataset.benchmark().is_some());
        let most = self.dataset.most_rows().or(own).unwrap_or(u64::MAX);
        self.definition.rows = rows.min(most);
        self
    }

    /// Sets the seed, 42 by default. It does not change tables of benchmarks.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.definition.seed = seed;
        self
    }

    /// Sets the number of partitions, the session's target by default.
    pub fn with_partitions(mut self, partitions: usize) -> Self {
        self.definition.partitions = Some(partitions.max(1));
        self
    }

    /// Adds a first column with the row's number, counted from 0. Conditions on it choose which rows are made.
    ///
    /// # Errors
    /// A field has this name.
    pub fn with_row_number(self, name: &str) -> Result<Self> {
        let definition = Definition { number: Some(name.to_owned()), ..self.definition };
        Self::defined(definition, self.dataset)
    }

    /// Reads the table that `definition` describes, on any machine.
    #[cfg(feature = "cluster")]
    pub(crate) fn open(definition: Definition) -> Result<Self> {
        let dataset = definition.spec.open()?;
        Self::defined(definition, dataset)
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The rows for which the filters hold that were promised to be applied.
    fn rows_where(&self, filters: &[Expr]) -> RowRanges {
        let all = RowRanges::all(self.definition.rows);
        let Some(number) = &self.definition.number else { return all };
        let held = filters.iter().filter_map(|filter| RowRanges::where_holds(filter, number));
        held.fold(all, |rows, held| rows.and(&held))
    }
}

/// The table of `gen('contacts', rows => 1e6, seed => 7, number => 'n', partitions => 8)` or
/// `gen('tpch/lineitem', scale => 10)`.
pub(crate) fn of_call(mut call: Arguments) -> Result<Arc<dyn TableProvider>> {
    let Some(name) = call.text("spec", Some(0))? else {
        return Err(refused(
            "the dataset is missing",
            "gen",
            "write its name or file: gen('contacts', rows => 1e6)",
        ));
    };
    let (rows, seed) = (call.number("rows", Some(1))?, call.number("seed", Some(2))?);
    let scale = call.factor("scale")?;
    let number = call.text("number", None)?;
    let partitions = match call.number("partitions", None)? {
        Some(partitions @ 1..=MAX_PARTITIONS) => Some(partitions as usize),
        Some(_) => {
            let advice = format!("give a number from 1 to {MAX_PARTITIONS}");
            return Err(refused("there cannot be so many partitions", "gen(.. partitions => ..)", &advice));
        }
        None => None,
    };
    call.finish()?;
    let (spec, dataset) = Spec::read(&name, scale)?;
    let (rows, seed) = dataset.rows_and_seed(rows, seed).map_err(external)?;
    let Some(rows) = rows else {
        let advice = "write it: gen('contacts', rows => 1e6)";
        return Err(refused("the number of rows is missing", &name, advice));
    };
    Ok(Arc::new(GeneratedTable::defined(Definition { spec, rows, seed, number, partitions }, dataset)?))
}

#[async_trait]
impl TableProvider for GeneratedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = Precision::Exact(usize::try_from(self.definition.rows).ok()?);
        Some(statistics)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let number = self.definition.number.as_ref();
        let held = |filter: &&Expr| match number.and_then(|number| RowRanges::where_holds(filter, number)) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(held).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(places) => places.iter().filter_map(|place| self.columns.get(*place).copied()).collect(),
            None => self.columns.clone(),
        };
        let mut rows = self.rows_where(filters);
        if let Some(limit) = limit {
            rows = rows.first(limit as u64);
        }
        let partitions = self.definition.partitions.unwrap_or_else(|| state.config().target_partitions());
        let parts = rows.shared(partitions).into_iter().map(|ranges| Ok(vec![units_of(&ranges)?]));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let Definition { spec, seed, number, .. } = self.definition.clone();
        let rows = GeneratedRows { spec, seed, number, columns };
        let work = Arc::new(RowsWork::new(rows, Arc::clone(&self.dataset)));
        UnitsExec::over(work, parts, Arc::clone(&UNITS))
    }
}
