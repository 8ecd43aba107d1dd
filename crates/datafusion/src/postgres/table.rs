//! A table of PostgreSQL that takes rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::Control;

use crate::error::{external, refused};
use crate::postgres::insert::InsertExec;

/// A table that rows are inserted into. It cannot be read.
#[derive(Debug)]
pub(crate) struct PostgresTable {
    postgres: Postgres,
    schema: SchemaRef,
}

impl PostgresTable {
    /// An existing table. Generated columns are left out.
    ///
    /// # Errors
    /// The table does not exist, or the server cannot be reached.
    pub(crate) async fn existing(postgres: Postgres) -> Result<Self> {
        let asked = postgres.clone();
        let columns = tokio::task::spawn_blocking(move || {
            let (profile, cancel) = (Profile::new(), false.into());
            asked.columns_of_table(&Control::new(&cancel, &profile.phase("columns")))
        });
        let columns = columns.await.map_err(external)?.map_err(external)?;
        let fields = columns.iter().map(|(name, kind)| Field::new(name, closest(kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { postgres, schema })
    }

    /// A table that an insertion creates, for rows of this schema.
    pub(crate) fn created(postgres: Postgres, schema: SchemaRef) -> Self {
        Self { postgres, schema }
    }
}

/// The type to which DataFusion converts values for a column. Rows that keep their own types are compared with the
/// column when they are inserted.
fn closest(type_name: &str) -> DataType {
    match type_name {
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
        _ => decimal(type_name).unwrap_or(DataType::Utf8View),
    }
}

fn decimal(type_name: &str) -> Option<DataType> {
    let (precision, scale) = type_name.strip_prefix("numeric(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
    (precision <= 38).then_some(DataType::Decimal128(precision, scale))
}

#[async_trait]
impl TableProvider for PostgresTable {
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
        let advice = "query it on the server";
        Err(refused(
            "tables of PostgreSQL take rows, and cannot be read",
            &format!("table {}", self.postgres.table()),
            advice,
        ))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        how: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match how {
            InsertOp::Append => Ok(Arc::new(InsertExec::new(self.postgres.clone(), input))),
            InsertOp::Overwrite | InsertOp::Replace => Err(refused(
                "rows can be added, but not put in the place of others",
                &format!("table {}", self.postgres.table()),
                "write INSERT INTO, or load with sawmill load --mode replace, truncate or upsert",
            )),
        }
    }
}
