//! A table of a database that takes rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::refused;
use crate::sinks::insert::{Insert, InsertExec};
use crate::sinks::sink::{Sink, asked};

/// A table that rows are inserted into. It cannot be read.
#[derive(Debug)]
pub(crate) struct SinkTable {
    sink: Arc<dyn Sink>,
    schema: SchemaRef,
}

impl SinkTable {
    /// An existing table, with the columns that a statement without names fills.
    ///
    /// # Errors
    /// The table does not exist, or the server cannot be reached.
    pub(crate) async fn existing(sink: Arc<dyn Sink>) -> Result<Self> {
        let table = Arc::clone(&sink);
        let columns = asked(move |control| table.columns(control)).await?;
        let fields = columns.iter().map(|(name, kind)| Field::new(name, closest(kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { sink, schema })
    }

    /// A table that an insertion creates, for rows of this schema.
    pub(crate) fn created(sink: Arc<dyn Sink>, schema: SchemaRef) -> Self {
        Self { sink, schema }
    }

    /// The insertion of rows into it.
    pub(crate) fn insertion(&self) -> Insert {
        Insert::into(Arc::clone(&self.sink))
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn sink(&self) -> &dyn Sink {
        self.sink.as_ref()
    }

    /// The error for a query that reads it.
    pub(crate) fn cannot_be_read(&self) -> DataFusionError {
        let what = format!("tables of {} take rows, and cannot be read", self.sink.database().name);
        refused(what, &self.place(), "query it on the server")
    }

    fn place(&self) -> String {
        format!("table {}", self.sink.name())
    }
}

/// The type to which DataFusion converts values for a column. Rows that keep their types are compared with the
/// column when they are inserted.
fn closest(type_name: &str) -> DataType {
    match type_name.to_ascii_lowercase().as_str() {
        "boolean" => DataType::Boolean,
        "smallint" => DataType::Int16,
        "integer" => DataType::Int32,
        "bigint" => DataType::Int64,
        "real" => DataType::Float32,
        "double precision" => DataType::Float64,
        "date" => DataType::Date32,
        "timestamp without time zone" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp with time zone" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "bytea" => DataType::BinaryView,
        other => decimal(other).unwrap_or(DataType::Utf8View),
    }
}

fn decimal(type_name: &str) -> Option<DataType> {
    let (precision, scale) = type_name.strip_prefix("numeric(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
    (precision <= 38).then_some(DataType::Decimal128(precision, scale))
}

#[async_trait]
impl TableProvider for SinkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.cannot_be_read())
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        how: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match how {
            InsertOp::Append => Ok(Arc::new(InsertExec::new(self.insertion(), input))),
            InsertOp::Overwrite | InsertOp::Replace => Err(refused(
                "rows can be added, but not put in the place of others",
                &self.place(),
                self.sink.database().instead_of_overwriting,
            )),
        }
    }
}
