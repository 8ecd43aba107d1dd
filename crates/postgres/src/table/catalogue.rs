//! Tables and schemas as the server's catalogue has them.

use sawmill_loader::TableName;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

/// A table as the catalogue has it.
pub(crate) struct Found {
    pub oid: u32,
    pub schema: String,
    /// `pg_class.relkind`.
    pub kind: String,
    /// A crash of the server empties it (`pg_class.relpersistence`).
    pub unlogged: bool,
}

impl Found {
    /// Refuses what is no table.
    pub(crate) fn check_table(&self, table: &TableName, place: &str) -> Result<()> {
        let (what, advice) = match self.kind.as_str() {
            "r" | "p" => return Ok(()),
            "v" => ("it is a view", "load into the table behind it"),
            "m" => ("it is a materialized view", "load into a table that it is made of, and refresh it"),
            "f" => ("it is a foreign table", "load into the table on the server where it is"),
            "S" => ("it is a sequence", "choose another name"),
            "i" | "I" => ("it is an index", "choose another name"),
            _ => ("it is a type or something else", "choose another name"),
        };
        Err(Error::new(Kind::Schema, format!("{what} and no table"))
            .at(format!("table {table}, {place}"))
            .advise(advice))
    }
}

/// Looks a table up by its name.
pub(crate) fn find(
    connection: &Connection,
    table: &TableName,
    control: &Control<'_>,
) -> Result<Option<Found>> {
    let rows = connection.query(
        control,
        "SELECT c.oid, n.nspname::text, c.relkind::text, c.relpersistence = 'u' FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
        &[&table.quoted()],
    )?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Found {
        oid: connection.get(row, 0)?,
        schema: connection.get(row, 1)?,
        kind: connection.get(row, 2)?,
        unlogged: connection.get(row, 3)?,
    }))
}

/// The name that a table has now.
pub(crate) fn name_of(connection: &Connection, oid: u32, control: &Control<'_>) -> Result<Option<TableName>> {
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    let rows = connection.query(control, sql, &[&oid])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (schema, name): (String, String) = (connection.get(row, 0)?, connection.get(row, 1)?);
    TableName::new(Some(&schema), &name).map(Some)
}

/// The schema that new tables go to when none is named.
pub(crate) fn current_schema(connection: &Connection, control: &Control<'_>) -> Result<String> {
    let rows = connection.query(control, "SELECT current_schema()::text", &[])?;
    let schema: Option<String> = rows.first().map_or(Ok(None), |row| connection.get(row, 0))?;
    schema.ok_or_else(|| {
        Error::new(Kind::Config, "the search path names no schema that exists")
            .at(connection.place())
            .advise("name the table's schema")
    })
}
