//! Tables as the cluster's catalogue has them.

use serde::Deserialize;
use serde_json::json;

use super::client::Client;
use super::form::Existing;
use super::names::{CrateTable, quote};
use crate::control::Control;
use crate::error::Result;

/// Whether there is such a table.
pub(crate) fn exists(
    client: &mut Client,
    table: &CrateTable,
    retries: u32,
    control: &Control<'_>,
) -> Result<bool> {
    let statement =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";
    let answer = client.sql(statement, &[json!(table.schema), json!(table.name)], retries, control)?;
    Ok(answer.all::<(i64,)>()?.first().is_some_and(|(count,)| *count > 0))
}

/// The columns of a table, in their order, without the fields of objects.
pub(crate) fn columns(
    client: &mut Client,
    table: &CrateTable,
    retries: u32,
    control: &Control<'_>,
) -> Result<Vec<Existing>> {
    #[derive(Deserialize)]
    struct Row(String, String, Option<u8>, String, String, Option<String>);
    let statement = "SELECT column_name, data_type, numeric_precision, is_nullable, is_generated, column_default \
                     FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";
    let answer = client.sql(statement, &[json!(table.schema), json!(table.name)], retries, control)?;
    let rows = answer.all::<Row>()?;
    // The catalogue's numeric_scale is always NULL
    // (https://cratedb.com/docs/crate/reference/en/latest/general/information-schema.html); the statement that would make the table does.
    let scales = match rows.iter().any(|row| row.1 == "numeric") {
        true => {
            let statement = format!("SHOW CREATE TABLE {}", table.quoted());
            let answer = client.sql(&statement, &[], retries, control)?;
            answer.all::<(String,)>()?.into_iter().map(|(ddl,)| ddl).next().unwrap_or_default()
        }
        false => String::new(),
    };
    let columns = rows.into_iter().filter(|Row(name, ..)| !name.contains('['));
    Ok(columns
        .map(|Row(name, data_type, precision, nullable, generated, default)| {
            let numeric = data_type == "numeric";
            Existing {
                scale: numeric.then(|| scale_of(&scales, &name)).flatten(),
                precision: precision.filter(|_| numeric),
                nullable: nullable == "YES",
                generated: generated == "ALWAYS",
                filled: generated == "ALWAYS" || default.is_some(),
                name,
                data_type,
            }
        })
        .collect())
}

/// The scale in `"name" NUMERIC(precision, scale)`. Columns of the table stand on lines of their own, three
/// blanks deep, and fields of objects deeper (`SqlFormatter` of the server).
fn scale_of(ddl: &str, name: &str) -> Option<u8> {
    let (_, rest) = ddl.split_once(&format!("\n   {} NUMERIC(", quote(name)))?;
    let (bounds, _) = rest.split_once(')')?;
    bounds.split_once(',')?.1.trim().parse().ok()
}

/// The columns of a table's primary key; empty where it has none.
pub(crate) fn primary_key(
    client: &mut Client,
    table: &CrateTable,
    retries: u32,
    control: &Control<'_>,
) -> Result<Vec<String>> {
    let statement = "SELECT column_name FROM information_schema.key_column_usage \
                     WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position";
    let answer = client.sql(statement, &[json!(table.schema), json!(table.name)], retries, control)?;
    let names = answer.all::<(String,)>()?.into_iter().map(|(name,)| name);
    // Where there is none, the system column is named.
    Ok(names.filter(|name| name != "_id").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_stands_in_the_statement_that_makes_the_table() {
        let ddl = "CREATE TABLE IF NOT EXISTS \"doc\".\"t\" (\n   \"a\" NUMERIC(20, 2),\n   \"b\" NUMERIC(38),\n   \"c\" TEXT\n)";
        assert_eq!(scale_of(ddl, "a"), Some(2));
        assert_eq!(scale_of(ddl, "b"), None);
        assert_eq!(scale_of(ddl, "c"), None);
        let ddl = "CREATE TABLE IF NOT EXISTS \"doc\".\"t\" (\n   \"o\" OBJECT(STRICT) AS (\n      \"a\" NUMERIC(10, 1)\n   ),\n   \"a\" NUMERIC(20, 2)\n)";
        assert_eq!(scale_of(ddl, "a"), Some(2), "the field of an object is not the column");
    }
}
