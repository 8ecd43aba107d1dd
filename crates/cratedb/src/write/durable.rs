//! Rows that a server has acknowledged and would lose in a crash: of tables whose translog is written
//! asynchronously
//! (<https://cratedb.com/docs/crate/reference/en/latest/sql/statements/create-table.html#translog-durability>).

use sawmill_source::Result;
use serde_json::json;

use crate::connect::sql::Sql;
use crate::table::names::CrateTable;

/// Whether the table's `translog.durability` is `ASYNC`.
pub(crate) fn may_lose_rows(sql: &mut Sql<'_>, table: &CrateTable) -> Result<bool> {
    let statement = "SELECT settings['translog']['durability'] FROM information_schema.tables \
                     WHERE table_schema = ? AND table_name = ?";
    let answer = sql.run(statement, &[json!(table.schema), json!(table.name)])?;
    let settings = answer.all::<(Option<String>,)>()?;
    Ok(settings.iter().any(|(durability,)| durability.as_deref() == Some("ASYNC")))
}

/// Writes all acknowledged rows of the table to disk. Segments are only merged to drop deleted rows, and a loaded
/// table has none.
pub(crate) fn make_durable(sql: &mut Sql<'_>, table: &CrateTable) -> Result<()> {
    let statement =
        format!("OPTIMIZE TABLE {} WITH (only_expunge_deletes = true, flush = true)", table.quoted());
    sql.run(&statement, &[]).map(drop)
}
