//! Tables and schemas in the server's catalogue.

use sawmill_loader::TableName;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};
use tokio_postgres::types::{FromSql, ToSql};

/// The value that a query returns in one row and column; the type's default if it returns no row.
pub(crate) fn value<T: Default + for<'r> FromSql<'r>>(
    connection: &Connection,
    control: &Control<'_>,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<T> {
    let rows = connection.query(control, sql, parameters)?;
    rows.first().map_or_else(|| Ok(T::default()), |row| connection.get(row, 0))
}

/// A table in the catalogue.
pub(crate) struct FoundTable {
    pub oid: u32,
    pub schema: String,
    /// `pg_class.relkind`.
    pub kind: String,
    /// A crash of the server empties it (`pg_class.relpersistence`).
    pub unlogged: bool,
}

impl FoundTable {
    /// Refuses everything but tables.
    pub(crate) fn check_table(&self, table: &TableName, place: &str) -> Result<()> {
        let (what, advice) = match self.kind.as_str() {
            "r" | "p" => return Ok(()),
            "v" => ("a view", "load into the table that it reads"),
            "m" => ("a materialized view", "load into a table that it reads, and refresh it"),
            "f" => ("a foreign table", "load into the table on its own server"),
            "S" => ("a sequence", "choose another name"),
            "i" | "I" => ("an index", "choose another name"),
            _ => ("a type or something else", "choose another name"),
        };
        Err(Error::new(Kind::Schema, format!("it is {what}, not a table"))
            .at(format!("table {table}, {place}"))
            .advise(advice))
    }
}

/// Looks a table up by its name.
pub(crate) fn find(
    connection: &Connection,
    table: &TableName,
    control: &Control<'_>,
) -> Result<Option<FoundTable>> {
    let rows = connection.query(
        control,
        "SELECT c.oid, n.nspname::text, c.relkind::text, c.relpersistence = 'u' FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
        &[&table.quoted()],
    )?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(FoundTable {
        oid: connection.get(row, 0)?,
        schema: connection.get(row, 1)?,
        kind: connection.get(row, 2)?,
        unlogged: connection.get(row, 3)?,
    }))
}

/// The current name of a table.
pub(crate) fn name_of(connection: &Connection, oid: u32, control: &Control<'_>) -> Result<Option<TableName>> {
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    let rows = connection.query(control, sql, &[&oid])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (schema, name): (String, String) = (connection.get(row, 0)?, connection.get(row, 1)?);
    TableName::new(Some(&schema), &name).map(Some)
}

/// The schema of new tables whose name has none.
pub(crate) fn current_schema(connection: &Connection, control: &Control<'_>) -> Result<String> {
    let schema: Option<String> = value(connection, control, "SELECT current_schema()::text", &[])?;
    schema.ok_or_else(|| {
        Error::new(Kind::Config, "the search path names no schema that exists")
            .at(connection.place())
            .advise("name the table's schema")
    })
}
