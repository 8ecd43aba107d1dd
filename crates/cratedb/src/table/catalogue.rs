//! Tables as the cluster's catalogue has them.

use sawmill_source::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::json;

use crate::connect::sql::Sql;
use crate::table::columns::is_the_time;
use crate::table::existing::{Existing, StoredType, declared_types};
use crate::table::names::CrateTable;

/// Whether the table exists.
pub(crate) fn exists(sql: &mut Sql<'_>, table: &CrateTable) -> Result<bool> {
    which_exist(sql, [table]).map(|[exists]| exists)
}

/// Which of several tables of one schema exist, seen at one moment. Separate queries could find none if the server
/// restarts in between.
pub(crate) fn which_exist<const N: usize>(sql: &mut Sql<'_>, tables: [&CrateTable; N]) -> Result<[bool; N]> {
    let statement = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_name IN ({})",
        ["?"; N].join(", ")
    );
    let schema = tables.first().map_or("", |table| table.schema.as_str());
    let arguments: Vec<_> =
        std::iter::once(json!(schema)).chain(tables.iter().map(|table| json!(table.name))).collect();
    let names = sql.run(&statement, &arguments)?.all::<(String,)>()?;
    Ok(tables.map(|table| names.iter().any(|(name,)| *name == table.name)))
}

/// Whether a table has this column.
pub(crate) fn has_column(sql: &mut Sql<'_>, table: &CrateTable, column: &str) -> Result<bool> {
    let statement = "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? \
                     AND column_name = ?";
    let arguments = [json!(table.schema), json!(table.name), json!(column)];
    Ok(!sql.run(statement, &arguments)?.all::<(String,)>()?.is_empty())
}

/// All tables.
pub(crate) fn all_tables(sql: &mut Sql<'_>) -> Result<Vec<CrateTable>> {
    let statement = "SELECT table_schema, table_name FROM information_schema.tables";
    let tables = sql.run(statement, &[])?.all::<(String, String)>()?;
    Ok(tables.into_iter().map(|(schema, name)| CrateTable { schema, name }).collect())
}

/// The columns of a table, in their order, each with the types inside of it.
pub(crate) fn columns(sql: &mut Sql<'_>, table: &CrateTable) -> Result<Vec<Existing>> {
    #[derive(Deserialize)]
    struct Row(String, String, String, String, Option<String>);
    let statement = "SELECT column_name, data_type, is_nullable, is_generated, column_default \
                     FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";
    let answer = sql.run(statement, &[json!(table.schema), json!(table.name)])?;
    let mut rows = answer.all::<Row>()?;
    // The catalogue also lists fields of objects, under names with brackets.
    rows.retain(|Row(name, ..)| !name.contains('['));
    let has_more = |Row(_, data_type, ..): &Row| {
        matches!(data_type.as_str(), "numeric" | "text" | "float_vector" | "bit" | "character")
            || data_type.starts_with("object")
            || data_type.ends_with("_array")
    };
    let declared = if rows.iter().any(has_more) { declared(sql, table)? } else { Vec::new() };
    let type_of = |row: &Row| match declared.iter().find(|(name, _)| *name == row.0) {
        Some((_, data_type)) if has_more(row) => Ok(data_type.clone()),
        None if has_more(row) => Err(Error::new(
            Kind::Server,
            format!("SHOW CREATE TABLE does not have the column {:?}, which the catalogue has", row.0),
        )
        .at(format!("table {table}, {}", sql.place()))
        .advise(
            "run the same command again; if the table is not being altered, report this table's statement",
        )),
        _ => Ok(StoredType::named(&row.1, None)),
    };
    rows.iter()
        .map(|row| {
            let Row(name, _, nullable, generated, default) = row;
            Ok(Existing {
                name: name.clone(),
                data_type: type_of(row)?,
                nullable: nullable == "YES",
                generated: generated == "ALWAYS",
                filled: generated == "ALWAYS" || default.is_some(),
                stamped: default.as_deref().is_some_and(is_the_time),
            })
        })
        .collect()
}

/// The types of a table's columns by the statement that would make it.
fn declared(sql: &mut Sql<'_>, table: &CrateTable) -> Result<Vec<(String, StoredType)>> {
    let statement = format!("SHOW CREATE TABLE {}", table.quoted());
    let answer = sql.run(&statement, &[])?;
    let ddl = answer.all::<(String,)>()?.into_iter().map(|(ddl,)| ddl).next().unwrap_or_default();
    declared_types(&ddl).map_err(|what| {
        Error::new(Kind::Server, format!("the answer to SHOW CREATE TABLE cannot be read: {what}"))
            .at(format!("table {table}, {}", sql.place()))
            .advise("load into a new table, or report this table's statement")
    })
}

/// The columns of a table's primary key; empty where it has none.
pub(crate) fn primary_key(sql: &mut Sql<'_>, table: &CrateTable) -> Result<Vec<String>> {
    let statement = "SELECT column_name FROM information_schema.key_column_usage \
                     WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";
    let answer = sql.run(statement, &[json!(table.schema), json!(table.name)])?;
    let names = answer.all::<(String,)>()?.into_iter().map(|(name,)| name);
    // Without a primary key, the catalogue names the system column.
    Ok(names.filter(|name| name != "_id").collect())
}
