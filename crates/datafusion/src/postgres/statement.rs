//! Statements that fill tables of PostgreSQL.
//!
//! DataFusion converts the columns of an insertion to those of the table, and loses what they cannot hold. Here rows
//! keep their types, and are compared with the columns before one is sent. Columns that are not named get the server's
//! defaults, and a new table the columns of the query.

use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, Query, TableObject};
use sawmill_loader::Mode;

use crate::error::refused;
use crate::postgres::schema::{NAME, PostgresSchema};
use crate::postgres::table::PostgresTable;

/// A statement as [`SessionContext::sql`] plans it. `INSERT INTO pg.orders SELECT ..` and `CREATE TABLE pg.orders AS
/// SELECT ..` fill a table of the server that [`register_postgres`](crate::register_postgres) names: in one
/// transaction, and with the number of rows as the result. They run when the result is read.
///
/// # Errors
/// DataFusion cannot plan the statement, or the table does not exist.
pub async fn sql(context: &SessionContext, sql: &str) -> Result<DataFrame> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let statement = state.sql_to_statement(sql, &dialect)?;
    let plan = match filling(&state, &statement)? {
        Some(filling) => filling.plan(&state).await?,
        None => state.statement_to_plan(statement).await?,
    };
    context.execute_logical_plan(plan).await
}

/// A statement that fills a table of ours.
struct Filling {
    schema: Arc<dyn datafusion::catalog::SchemaProvider>,
    table: TableReference,
    mode: Mode,
    /// The columns that are named; none for the first ones.
    columns: Vec<Ident>,
    query: Box<Query>,
}

/// The statement, if it fills a table of ours.
fn filling(state: &SessionState, statement: &Statement) -> Result<Option<Filling>> {
    let Statement::Statement(statement) = statement else { return Ok(None) };
    let (name, mode) = match statement.as_ref() {
        ast::Statement::Insert(ast::Insert { table: TableObject::TableName(name), .. }) => {
            (name, Mode::Append)
        }
        ast::Statement::CreateTable(create) => (&create.name, Mode::Create),
        _ => return Ok(None),
    };
    let Some((schema, table)) = ours(state, name)? else { return Ok(None) };
    let (columns, query) = match statement.as_ref() {
        ast::Statement::Insert(insert) => inserted(insert)?,
        ast::Statement::CreateTable(create) => (Vec::new(), selected(create)?),
        _ => return Ok(None),
    };
    Ok(Some(Filling { schema, table, mode, columns, query }))
}

/// The schema of a table, if it is one of ours.
fn ours(
    state: &SessionState,
    name: &ObjectName,
) -> Result<Option<(Arc<dyn datafusion::catalog::SchemaProvider>, TableReference)>> {
    let normalized = state.config().options().sql_parser.enable_ident_normalization;
    let table = object_name_to_table_reference(name.clone(), normalized)?;
    match state.schema_for_ref(table.clone()) {
        Ok(schema) if schema.is::<PostgresSchema>() => Ok(Some((schema, table))),
        Err(_) if table.schema() == Some(NAME) || table.catalog() == Some(NAME) => {
            let advice = "give the address of the server with --to postgres://user@host/database";
            Err(refused("there is no server for the table", &table.to_string(), advice))
        }
        _ => Ok(None),
    }
}

/// The columns and the query of `INSERT INTO table (columns) query`.
fn inserted(insert: &ast::Insert) -> Result<(Vec<Ident>, Box<Query>)> {
    let plain = !insert.overwrite
        && !insert.replace_into
        && !insert.ignore
        && insert.or.is_none()
        && insert.on.is_none()
        && insert.returning.is_none()
        && insert.partitioned.is_none()
        && insert.assignments.is_empty();
    let columns: Option<Vec<Ident>> =
        insert.columns.iter().map(|name| name.0.first()?.as_ident().cloned()).collect();
    match (plain, columns, &insert.source) {
        (true, Some(columns), Some(query)) => Ok((columns, query.clone())),
        _ => Err(refused(
            "this form of INSERT cannot be used for tables of PostgreSQL",
            &insert.to_string(),
            "write INSERT INTO table (columns) SELECT ..",
        )),
    }
}

/// The query of `CREATE TABLE table AS query`.
fn selected(create: &ast::CreateTable) -> Result<Box<Query>> {
    let plain = !create.or_replace
        && !create.if_not_exists
        && !create.temporary
        && !create.external
        && create.columns.is_empty()
        && create.constraints.is_empty();
    match (plain, &create.query) {
        (true, Some(query)) => Ok(query.clone()),
        _ => Err(refused(
            "this form of CREATE TABLE cannot be used for tables of PostgreSQL",
            &create.name.to_string(),
            "write CREATE TABLE table AS SELECT .., or create the table on the server",
        )),
    }
}

impl Filling {
    async fn plan(self, state: &SessionState) -> Result<LogicalPlan> {
        let query = ast::Statement::Query(self.query.clone());
        let rows = state.statement_to_plan(Statement::Statement(Box::new(query))).await?;
        let Some(schema) = self.schema.downcast_ref::<PostgresSchema>() else {
            return Err(refused(
                "the table is not one of PostgreSQL",
                &self.table.to_string(),
                "name another",
            ));
        };
        let target = schema.target(self.table.table(), self.mode)?;
        let (rows, table) = match self.mode {
            Mode::Create => {
                let schema = Arc::clone(rows.schema().inner());
                (rows, PostgresTable::created(target, schema))
            }
            _ => {
                let table = PostgresTable::existing(target).await?;
                (self.named(state, rows, &table)?, table)
            }
        };
        let target = provider_as_source(Arc::new(table));
        LogicalPlanBuilder::insert_into(rows, self.table, target, InsertOp::Append)?.build()
    }

    /// The rows with the names of the columns that they go to: those of the statement, or the table's first ones.
    fn named(&self, state: &SessionState, rows: LogicalPlan, table: &PostgresTable) -> Result<LogicalPlan> {
        let normalized = state.config().options().sql_parser.enable_ident_normalization;
        let name = |ident: &Ident| match ident.quote_style {
            None if normalized => ident.value.to_lowercase(),
            _ => ident.value.clone(),
        };
        let theirs = table.schema();
        let names: Vec<String> = match self.columns.as_slice() {
            [] => theirs.fields().iter().map(|field| field.name().clone()).collect(),
            columns => columns.iter().map(name).collect(),
        };
        let found = rows.schema().fields().len();
        let fits = if self.columns.is_empty() { found <= names.len() } else { found == names.len() };
        if !fits {
            let what = format!("the query has {found} columns, the insertion {}", names.len());
            return Err(refused(what, &self.table.to_string(), "name the columns: INSERT INTO table (a, b)"));
        }
        let named = (0..found).zip(names).map(|(place, name)| {
            Expr::Column(Column::from(rows.schema().qualified_field(place))).alias(name)
        });
        LogicalPlanBuilder::from(rows.clone()).project(named.collect::<Vec<_>>())?.build()
    }
}
