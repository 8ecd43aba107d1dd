//! Jobs as tables: a row for each unit that was done.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::catalog::Session;
use datafusion::common::internal_datafusion_err;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use crate::units::UnitsExec;
use crate::units::work::Work;

/// Maximum number of tasks of a job; with more units, a task does several.
const MAX_TASKS: usize = 4096;

/// Work that is done once for each number of a range.
pub(crate) trait Job: Clone + Debug + Send + Sync + 'static {
    /// The work on this machine.
    ///
    /// # Errors
    /// Something is missing on this machine, such as the file of a dataset spec.
    fn work(self) -> Result<Arc<dyn Work>>;

    /// The schema of the result, which has a row for each unit.
    fn schema() -> SchemaRef;

    /// How many units there are. They are numbered from 0.
    fn units(&self) -> u32;
}

/// A table whose rows are the units of a job: reading it does the units that are not done yet.
#[derive(Debug)]
pub(crate) struct JobTable<J>(pub J);

/// The column with the numbers of units.
const NUMBER: &str = "unit";

/// The numbers of the units that a task does.
pub(crate) fn numbers_of(units: &RecordBatch) -> Result<&[u32]> {
    let numbers = units.column_by_name(NUMBER).and_then(|column| column.as_primitive_opt::<UInt32Type>());
    let numbers = numbers.ok_or_else(|| internal_datafusion_err!("the units of a job lack their numbers"))?;
    Ok(numbers.values())
}

#[async_trait]
impl<J: Job> TableProvider for JobTable<J> {
    fn schema(&self) -> SchemaRef {
        J::schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if projection.is_some_and(|places| !places.iter().copied().eq(0..J::schema().fields().len())) {
            return Err(internal_datafusion_err!("the table of a job is read as a whole"));
        }
        let schema = Arc::new(Schema::new(vec![Field::new(NUMBER, DataType::UInt32, false)]));
        let numbers: Vec<u32> = (0..self.0.units()).collect();
        let share = numbers.len().div_ceil(MAX_TASKS).max(1);
        let parts = numbers.chunks(share).map(|numbers| {
            let numbers: ArrayRef = Arc::new(UInt32Array::from(numbers.to_vec()));
            Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![numbers])?])
        });
        UnitsExec::over(self.0.clone().work()?, parts.collect::<Result<Vec<_>>>()?, schema)
    }
}
