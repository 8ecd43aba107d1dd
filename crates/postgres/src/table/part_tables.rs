//! PartTable tables: each is filled by one worker, found by the records of its units, attached to the staging
//! table, and in the end named after the final table.

use sawmill_loader::{PART, TableName, quote};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue::find;

/// A committed part table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartTable {
    pub name: TableName,
    /// The table is already its parent.
    pub attached: bool,
}

/// The part tables of a load, in the order of creation.
pub(crate) fn of_load(
    connection: &Connection,
    checkpoints: &Checkpoints,
    id: &str,
    control: &Control<'_>,
) -> Result<Vec<PartTable>> {
    let sql = format!(
        "SELECT n.nspname::text, c.relname::text, EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid) \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid IN (SELECT part_oid FROM {} u WHERE load_id = $1) ORDER BY c.oid",
        checkpoints.all_units()
    );
    let mut parts = Vec::new();
    for row in connection.query(control, &sql, &[&id])? {
        let (schema, name): (String, String) = (connection.get(&row, 0)?, connection.get(&row, 1)?);
        parts.push(PartTable {
            name: TableName::new(Some(&schema), &name)?,
            attached: connection.get(&row, 2)?,
        });
    }
    Ok(parts)
}

/// A number higher than those of all part tables of the load.
pub(crate) fn next_number(parts: &[PartTable]) -> u32 {
    let number = |part: &PartTable| {
        let (_, digits) = part.name.name().rsplit_once('_')?;
        digits.parse::<u32>().ok()
    };
    parts.iter().filter_map(number).max().map_or(1, |highest| highest.saturating_add(1))
}

/// Makes the part tables children of the table, in the caller's transaction.
pub(crate) fn inherit(
    connection: &Connection,
    parts: &[PartTable],
    parent: &TableName,
    control: &Control<'_>,
) -> Result<()> {
    for part in parts.iter().filter(|part| !part.attached) {
        let attach = format!("ALTER TABLE {} INHERIT {}", part.name.quoted(), parent.quoted());
        connection.batch(control, &attach)?;
    }
    Ok(())
}

/// Names the part tables after the final table, `NAME_1` and so on, in the caller's transaction.
pub(crate) fn rename(
    connection: &Connection,
    parts: &[PartTable],
    table: &TableName,
    control: &Control<'_>,
) -> Result<Vec<TableName>> {
    let mut names = Vec::with_capacity(parts.len());
    for (number, part) in (1..).zip(parts) {
        let name = table.numbered(number);
        if find(connection, &name, control)?.is_some() {
            return Err(Error::new(Kind::Exists, "a part of the table needs this name, but it is taken")
                .at(format!("table {name}, {}", connection.place()))
                .advise("rename or drop that table and run the same command again"));
        }
        let rename = format!("ALTER TABLE {} RENAME TO {}", part.name.quoted(), quote(name.name()));
        connection.batch(control, &rename)?;
        names.push(name);
    }
    Ok(names)
}

/// The children of a table that [`rename`] has named.
fn named_children(
    connection: &Connection,
    table: &TableName,
    control: &Control<'_>,
) -> Result<Vec<TableName>> {
    let rows = connection.query(
        control,
        "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_inherits i \
         JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE i.inhparent = to_regclass($1) AND NOT c.relispartition",
        &[&table.quoted()],
    )?;
    let mut children = Vec::new();
    for row in &rows {
        let (schema, name): (String, String) = (connection.get(row, 0)?, connection.get(row, 1)?);
        let child = TableName::new(Some(&schema), &name)?;
        if (1..=rows.len() as u32).any(|number| table.numbered(number) == child) {
            children.push(child);
        }
    }
    Ok(children)
}

/// Drops unlogged part tables without records: a crash of the server has emptied them and the records of
/// their units.
pub(crate) fn drop_emptied(
    connection: &Connection,
    checkpoints: &Checkpoints,
    table: &TableName,
    control: &Control<'_>,
) -> Result<()> {
    let Some(schema) = table.schema() else { return Ok(()) };
    // Before it commits, another run's part table is not visible, and then its records are.
    let sql = format!(
        "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpersistence = 'u' AND strpos(c.relname::text, $2) > 0 \
         AND NOT EXISTS (SELECT FROM {} u WHERE u.part_oid = c.oid)",
        checkpoints.all_units()
    );
    for row in connection.query(control, &sql, &[&schema, &PART])? {
        let name: String = connection.get(&row, 0)?;
        if table.has_part(&name) {
            let part = TableName::new(Some(schema), &name)?;
            connection.batch(control, &format!("DROP TABLE {}", part.quoted()))?;
        }
    }
    Ok(())
}

/// Drops part tables that no load needs any more, in the caller's transaction.
pub(crate) fn drop_all(connection: &Connection, parts: &[PartTable], control: &Control<'_>) -> Result<()> {
    for part in parts {
        connection.batch(control, &format!("DROP TABLE IF EXISTS {}", part.name.quoted()))?;
    }
    Ok(())
}

/// Drops a table and its part tables, if it exists, in the caller's transaction.
pub(crate) fn drop_table(connection: &Connection, table: &TableName, control: &Control<'_>) -> Result<()> {
    let mut names = vec![table.quoted()];
    names.extend(named_children(connection, table, control)?.iter().map(TableName::quoted));
    connection.batch(control, &format!("DROP TABLE IF EXISTS {}", names.join(", ")))
}
