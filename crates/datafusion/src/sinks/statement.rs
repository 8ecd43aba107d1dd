//! Statements that fill tables of databases.
//!
//! DataFusion converts inserted columns to the table's types, and loses values that they cannot hold. Here rows
//! keep their types, and are compared with the columns before one is sent. Columns that are not named get the
//! server's defaults, and a new table gets the columns of the query.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::{Column, TableReference, internal_datafusion_err};
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    Analyze, Explain, Expr, LogicalPlan, LogicalPlanBuilder, PlanType, ToStringifiedPlan,
};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{ExplainStatement, Statement};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, Query, SelectItem, SetExpr, TableObject};
use sawmill_loader::Mode;

use crate::error::refused;
use crate::sinks::catalogue::SinkSchema;
use crate::sinks::copy::{self, Copied};
use crate::sinks::sink::DATABASES;
use crate::sinks::table::SinkTable;

/// A statement as [`SessionContext::sql`] plans it. `INSERT INTO pg.orders SELECT ..`, `CREATE TABLE pg.orders AS SELECT
/// ..` and `COPY (SELECT ..) TO pg.orders` fill a table of the PostgreSQL server or the CrateDB cluster that
/// [`register_postgres`](crate::register_postgres) and [`register_crate_db`](crate::register_crate_db) name, and return
/// the number of rows. They run when the result is read. PostgreSQL takes all rows of a statement or none, and so does a
/// new table of CrateDB; an existing one may keep some rows of a statement that failed, and the error says how many.
///
/// # Errors
/// DataFusion cannot plan the statement, or the table does not exist.
pub async fn sql(context: &SessionContext, sql: &str) -> Result<DataFrame> {
    let state = context.state();
    if let Some(filling) = copying(&state, sql)? {
        return context.execute_logical_plan(filling.plan(&state).await?).await;
    }
    let dialect = state.config().options().sql_parser.dialect;
    let statement = state.sql_to_statement(sql, &dialect)?;
    let plan = match statement {
        Statement::Explain(explain) => explained(&state, explain).await?,
        statement => planned(&state, statement).await?,
    };
    context.execute_logical_plan(plan).await
}

async fn planned(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    refuse_other(state, &statement)?;
    match filling(state, &statement)? {
        Some(filling) => filling.plan(state).await,
        None => state.statement_to_plan(statement).await,
    }
}

/// EXPLAIN of a statement that fills one of our tables: explains another statement, and puts this one's plan in
/// place of its plan.
async fn explained(state: &SessionState, explain: ExplainStatement) -> Result<LogicalPlan> {
    refuse_other(state, &explain.statement)?;
    let Some(filling) = filling(state, &explain.statement)? else {
        return state.statement_to_plan(Statement::Explain(explain)).await;
    };
    let plan = filling.plan(state).await?;
    let dialect = state.config().options().sql_parser.dialect;
    let other = Box::new(state.sql_to_statement("SELECT 1", &dialect)?);
    let other = Statement::Explain(ExplainStatement { statement: other, ..explain });
    Ok(match state.statement_to_plan(other).await? {
        LogicalPlan::Analyze(analyze) => LogicalPlan::Analyze(Analyze { input: Arc::new(plan), ..analyze }),
        LogicalPlan::Explain(explain) => LogicalPlan::Explain(Explain {
            stringified_plans: vec![plan.to_stringified(PlanType::InitialLogicalPlan)],
            plan: Arc::new(plan),
            ..explain
        }),
        _ => return Err(internal_datafusion_err!("the plan of EXPLAIN explains nothing")),
    })
}

/// Refuses statements about tables of ours that DataFusion would take for something else.
fn refuse_other(state: &SessionState, statement: &Statement) -> Result<()> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    match statement.as_ref() {
        ast::Statement::Prepare { statement, .. } => {
            let prepared = Statement::Statement(statement.clone());
            match filling(state, &prepared)? {
                Some(filling) => Err(unusable(
                    "PREPARE",
                    &filling.schema,
                    &prepared.to_string(),
                    "run the statement itself",
                )),
                None => Ok(()),
            }
        }
        ast::Statement::Drop { object_type: ast::ObjectType::Table, names, .. } => {
            for name in names {
                if let Some((schema, table)) = ours(state, name)? {
                    let what = format!("tables of {} cannot be dropped here", schema.database().name);
                    return Err(refused(what, &format!("table {table}"), "drop it on the server"));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A statement that fills a table of ours.
struct Filling {
    schema: SinkSchema,
    table: TableReference,
    mode: Mode,
    /// The named columns; empty means the first ones.
    columns: Vec<Ident>,
    query: Box<Query>,
}

/// The statement, if it is a COPY to a table of ours.
fn copying(state: &SessionState, sql: &str) -> Result<Option<Filling>> {
    let Some(Copied { query, table, columns, more }) = copy::to_table(state, sql) else { return Ok(None) };
    let Some((schema, table)) = ours(state, &table)? else { return Ok(None) };
    match more {
        None => Ok(Some(Filling { schema, table, mode: Mode::Append, columns, query })),
        Some(more) => Err(unusable("COPY", &schema, &more, "write COPY (SELECT ..) TO table (columns)")),
    }
}

/// The statement, if it is an INSERT or a CREATE TABLE for a table of ours.
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
        ast::Statement::Insert(insert) => inserted(insert, &schema)?,
        ast::Statement::CreateTable(create) => (Vec::new(), selected(create, &schema)?),
        _ => return Ok(None),
    };
    Ok(Some(Filling { schema, table, mode, columns, query }))
}

/// The schema of a table, if it is one of ours.
fn ours(state: &SessionState, name: &ObjectName) -> Result<Option<(SinkSchema, TableReference)>> {
    let normalized = state.config().options().sql_parser.enable_ident_normalization;
    let table = object_name_to_table_reference(name.clone(), normalized)?;
    match state.schema_for_ref(table.clone()) {
        Ok(schema) => Ok(schema.downcast_ref::<SinkSchema>().cloned().map(|schema| (schema, table))),
        Err(_) => {
            let first = table.catalog().or(table.schema());
            match DATABASES.iter().find(|database| first == Some(database.catalogue)) {
                Some(database) => {
                    let what = format!("table `{table}` needs a server: pass --to {}", database.address);
                    Err(DataFusionError::Plan(what + ", or register one with the session"))
                }
                None => Ok(None),
            }
        }
    }
}

/// The columns and the query of `INSERT INTO table (columns) query`.
fn inserted(insert: &ast::Insert, schema: &SinkSchema) -> Result<(Vec<Ident>, Box<Query>)> {
    let columns: Option<Vec<Ident>> =
        insert.columns.iter().map(|name| name.0.first()?.as_ident().cloned()).collect();
    if let (Some(columns), Some(query)) = (columns, &insert.source) {
        let list = columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ");
        let list = if columns.is_empty() { String::new() } else { format!(" ({list})") };
        // Any other clause of the statement shows in its text.
        let is_plain = ["", "TABLE "].iter().any(|keyword| {
            insert.to_string() == format!("INSERT INTO {keyword}{}{list} {query}", insert.table)
        });
        if is_plain {
            return Ok((columns, query.clone()));
        }
    }
    let advice = "write INSERT INTO table (columns) SELECT ..";
    Err(unusable("INSERT", schema, &insert.to_string(), advice))
}

/// The query of `CREATE TABLE table AS query`.
fn selected(create: &ast::CreateTable, schema: &SinkSchema) -> Result<Box<Query>> {
    match &create.query {
        Some(query) if create.to_string() == format!("CREATE TABLE {} AS {query}", create.name) => {
            Ok(query.clone())
        }
        _ => Err(unusable(
            "CREATE TABLE",
            schema,
            &create.name.to_string(),
            "write CREATE TABLE table AS SELECT .., or create the table on the server",
        )),
    }
}

fn unusable(statement: &str, schema: &SinkSchema, place: &str, advice: &str) -> DataFusionError {
    let database = schema.database().name;
    refused(format!("this form of {statement} cannot be used for tables of {database}"), place, advice)
}

/// Names each column of a query that has the same text as an earlier one, because DataFusion refuses
/// `SELECT 1, NULL, NULL`. The table's column names are used in the end.
fn tell_columns_apart(rows: &mut SetExpr) {
    match rows {
        SetExpr::Select(select) => {
            let mut seen = HashSet::new();
            for (place, item) in select.projection.iter_mut().enumerate() {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                if !seen.insert(expr.to_string()) {
                    let alias = Ident::with_quote('"', format!("column {}", place + 1));
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            tell_columns_apart(left);
            tell_columns_apart(right);
        }
        SetExpr::Query(query) => tell_columns_apart(&mut query.body),
        _ => {}
    }
}

impl Filling {
    async fn plan(mut self, state: &SessionState) -> Result<LogicalPlan> {
        if self.mode != Mode::Create {
            tell_columns_apart(&mut self.query.body);
        }
        let query = ast::Statement::Query(self.query.clone());
        let rows = state.statement_to_plan(Statement::Statement(Box::new(query))).await?;
        let sink = self.schema.sink(self.table.table(), self.mode)?;
        let (rows, table) = match self.mode {
            Mode::Create => {
                let schema = Arc::clone(rows.schema().inner());
                (rows, SinkTable::created(sink, schema))
            }
            _ => {
                let table = SinkTable::existing(sink).await?;
                (self.named(state, rows, &table)?, table)
            }
        };
        let target = provider_as_source(Arc::new(table));
        LogicalPlanBuilder::insert_into(rows, self.table, target, InsertOp::Append)?.build()
    }

    /// The rows, with their columns named after their target: the statement's columns, or the table's first ones.
    fn named(&self, state: &SessionState, rows: LogicalPlan, table: &SinkTable) -> Result<LogicalPlan> {
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
        let twice = |(place, name): &(usize, &String)| names[..*place].contains(name);
        if let Some((_, name)) = names.iter().enumerate().find(twice) {
            let what = format!("column {name:?} is named twice");
            return Err(refused(what, &self.table.to_string(), "name each column once"));
        }
        let named = (0..found).zip(names).map(|(place, name)| {
            Expr::Column(Column::from(rows.schema().qualified_field(place))).alias(name)
        });
        LogicalPlanBuilder::from(rows.clone()).project(named.collect::<Vec<_>>())?.build()
    }
}
