//! Forgetting a load: removing its records, and the tables that it created.

use sawmill_loader::{Forgotten, LoadOptions, TableName};
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_source::{Control, Result};

use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue::{Link, find, name_of};
use crate::table::part_tables;
use crate::target::Postgres;
use crate::types::made_types;

/// Removes the records of all loads into a table and what unfinished loads left behind, and with `drop_table`
/// the table itself, which also goes if it is empty and an unfinished load has made it; each with the types created for
/// it and the tables of its lists. The schema of the checkpoints is dropped when it becomes empty. Rows appended to a table that existed before stay.
///
/// # Errors
/// No connection, no permission, or a running load into the table.
pub fn forget(postgres: &Postgres, drop_table: bool, control: &Control<'_>) -> Result<Forgotten> {
    let retries = LoadOptions::default().retries;
    let mut committing = Forgotten::default();
    postgres.retried(retries, control, || remove(postgres, drop_table, &mut committing, control))
}

fn remove(
    postgres: &Postgres,
    drop_table: bool,
    committing: &mut Forgotten,
    control: &Control<'_>,
) -> Result<Forgotten> {
    let checkpoints = Checkpoints::new(&postgres.checkpoint_schema)?;
    let connection = Connection::open(&postgres.server, control)?;
    let link = Link::new(&connection, control);
    refuse_pooler(&connection, &postgres.server, control)?;
    let staging = find(link, &postgres.table.staging())?;
    let table = find(link, &postgres.table)?;
    let schema = match (&table, &staging, postgres.table.schema()) {
        (Some(found), ..) | (None, Some(found), _) => Some(found.schema.clone()),
        (None, None, Some(schema)) => Some(schema.to_owned()),
        (None, None, None) => crate::table::catalogue::current_schema(link).ok(),
    };
    let (mut forgotten, mut drop_table) = (Forgotten::default(), drop_table);
    let Some(schema) = schema else { return Ok(forgotten) };
    let name = postgres.table.within(&schema);
    let records = checkpoints.on(link);
    let recorded = records.exist()?;
    let server = KnownServer::new(&postgres.server, &connection, control)?;
    if recorded {
        records.create()?;
    }
    link.batch("BEGIN")?;
    if recorded {
        if let Some(database) = records.database(&server)? {
            records.follow_names(&database)?;
        }
        records.lock_target(&name.to_string())?;
        for load in records.unfinished(&name.to_string())? {
            part_tables::drop_of_load(&records, &load.id)?;
            let made = table.as_ref().filter(|table| load.facts.made_table && table.oid == load.table_oid);
            if made.is_some() && !drop_table {
                records.link.batch(&format!("LOCK TABLE {}", name.quoted()))?;
                drop_table = records.is_empty(&name)?;
            }
        }
        part_tables::drop_emptied(&records, &name)?;
        let mut parts = Vec::new();
        for oid in records.tables_of_lists(&name.to_string())? {
            let part = name_of(link, oid)?;
            parts.extend(part.filter(|part| drop_table || part.is_staging()));
        }
        if !parts.is_empty() {
            // In one statement: some refer to others.
            let names: Vec<String> = parts.iter().map(TableName::quoted).collect();
            link.batch(&format!("DROP TABLE {}", names.join(", ")))?;
            forgotten.staging_dropped |= parts.iter().any(TableName::is_staging);
        }
    }
    if let Some(staging) = staging.filter(|_| (recorded || drop_table) && postgres.mode.gathers()) {
        made_types::drop_table(link, &name.staging(), staging.oid)?;
        forgotten.staging_dropped = true;
    }
    if let Some(table) = table.filter(|_| drop_table) {
        made_types::drop_table(link, &name, table.oid)?;
        forgotten.table_dropped = true;
    }
    if recorded {
        forgotten.loads = records.delete_target(&name.to_string())?;
    }
    // If the answer to the commit is lost, the next attempt finds nothing any more.
    forgotten.loads = forgotten.loads.max(committing.loads);
    forgotten.staging_dropped |= committing.staging_dropped;
    forgotten.table_dropped |= committing.table_dropped;
    *committing = forgotten;
    link.batch("COMMIT")?;
    if recorded {
        records.drop_if_empty()?;
    }
    Ok(forgotten)
}
