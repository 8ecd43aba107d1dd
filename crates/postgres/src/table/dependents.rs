//! Objects that depend on a table to be replaced: the server does not drop a table that views or foreign keys
//! refer to. They are looked up before the first row is sent.

use sawmill_loader::TableName;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

/// Refuses to replace a table on which other objects depend, unless those are replaced `together` with it.
pub(crate) fn refuse(
    connection: &Connection,
    table: &TableName,
    together: &[u32],
    control: &Control<'_>,
) -> Result<()> {
    let sql = "SELECT DISTINCT CASE WHEN r.oid IS NULL THEN pg_catalog.pg_describe_object(d.classid, d.objid, 0) \
                 ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, r.ev_class, 0) END \
               FROM pg_catalog.pg_depend d \
               LEFT JOIN pg_catalog.pg_rewrite r \
                 ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid \
               LEFT JOIN pg_catalog.pg_constraint c \
                 ON d.classid = 'pg_catalog.pg_constraint'::regclass AND c.oid = d.objid \
               WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ANY ($1) AND d.deptype = 'n' \
               AND (r.ev_class <> ALL ($1) OR c.contype = 'f' AND c.conrelid <> ALL ($1) AND c.conparentid = 0) ORDER BY 1";
    let mut others: Vec<String> = Vec::new();
    for row in connection.query(control, sql, &[&together])? {
        others.push(connection.get(&row, 0)?);
    }
    match others.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            Kind::Exists,
            format!(
                "the table cannot be replaced, because other objects depend on it: {}",
                others.join(", ")
            ),
        )
        .at(format!("table {table}, {}", connection.place()))
        .advise("load in mode truncate, which keeps the table, or drop these first")),
    }
}
