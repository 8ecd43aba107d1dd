//! The commands for records: the status of loads, pruning, and forgetting.

use std::collections::HashSet;
use std::time::Duration;

use sawmill_loader::{
    FileStatus, Forgotten, LoadFacts, LoadOptions, LoadStatus, Pruned, TableName, retry_reached,
};
use sawmill_pgwire::{Connection, KnownServer, Server, refuse_pooler};
use sawmill_source::{Control, Result};

use crate::records::checkpoint::{Checkpoints, Records, UNITS, advisory_key};
use crate::rejected::rejects::{REJECTS, REJECTS_UNLOGGED};
use crate::table::catalogue::{Link, find, name_of};
use crate::table::part_tables;
use crate::target::Postgres;
use crate::types::made_types;

/// The name of the table `c` in the schema `n` as a [`TableName`] shows it, and records have it.
pub(super) const RECORDED_NAME: &str = "CASE WHEN translate(n.nspname::text, '.\"', '') = n.nspname \
     THEN n.nspname::text ELSE '\"' || replace(n.nspname, '\"', '\"\"') || '\"' END || '.' || \
     CASE WHEN translate(c.relname::text, '.\"', '') = c.relname \
     THEN c.relname::text ELSE '\"' || replace(c.relname, '\"', '\"\"') || '\"' END";

/// Whether the table of a load `l` is there: the table itself, whatever its name, or another one of its name.
pub(super) fn table_exists() -> String {
    format!(
        "EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = l.table_oid::oid OR {RECORDED_NAME} = l.target)"
    )
}

/// All loads recorded on the server, or all into one table, latest first. `checkpoint_schema` is the schema
/// of the tables of records. Without these tables the list is empty.
///
/// # Errors
/// No connection, or no permission.
pub fn status(
    server: &Server,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    control: &Control<'_>,
) -> Result<Vec<LoadStatus>> {
    let checkpoints = Checkpoints::new(checkpoint_schema)?;
    let read = || {
        let connection = Connection::open(server, control)?;
        let link = Link::new(&connection, control);
        refuse_pooler(&connection, server, control)?;
        read(server, &checkpoints.on(link), table)
    };
    retry_reached(LoadOptions::default().retries, control, &|| server.is_reached(), read)
}

/// The same over a connection.
pub(super) fn read(
    server: &Server,
    records: &Records<'_>,
    table: Option<&TableName>,
) -> Result<Vec<LoadStatus>> {
    let link = records.link;
    if !records.exist()? {
        return Ok(Vec::new());
    }
    // A 64-bit advisory lock is split into two columns of 32 bits
    // (https://www.postgresql.org/docs/current/view-pg-locks.html).
    let locks = "SELECT (classid::bigint << 32) | objid::bigint FROM pg_catalog.pg_locks \
                 WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
                 AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())";
    let held: HashSet<i64> = records.link.list(locks, &[])?.into_iter().collect();
    let moment =
        |column: &str| format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    // Unlogged tables cannot be read on a standby.
    let (units, rejects) = match records.link.value("SELECT pg_catalog.pg_is_in_recovery()", &[])? {
        true => (records.table(UNITS), vec![records.table(REJECTS)]),
        false => (records.all_units(), vec![records.table(REJECTS), records.table(REJECTS_UNLOGGED)]),
    };
    let there = records.rejects_tables()?;
    let rejects = rejects.into_iter().filter(|table| there.contains(table));
    let rejects = rejects.map(|table| format!("SELECT load_id, file FROM {table}"));
    let rejects = rejects.chain([String::from("SELECT ''::text AS load_id, 0 AS file WHERE false")]);
    let rejects = rejects.collect::<Vec<_>>().join(" UNION ALL ");
    let name_now = format!(
        "(SELECT {RECORDED_NAME} FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = l.table_oid::oid AND l.database = $1 AND strpos(l.load_id, '/') = 0 \
         AND (l.completed IS NOT NULL OR l.mode IN ('append', 'truncate')))"
    );
    let sql = format!(
        "SELECT l.load_id, coalesce({name_now}, l.target), l.mode, l.files, {}, {}, count(u.rows), coalesce(sum(u.rows), 0)::bigint, \
           ARRAY(SELECT coalesce(sum(f.rows), 0)::bigint FROM generate_series(0, cardinality(l.files) - 1) at \
             LEFT JOIN {} f ON f.load_id = l.load_id AND f.file = at GROUP BY at ORDER BY at), \
           ARRAY(SELECT count(f.load_id) FROM generate_series(0, cardinality(l.files) - 1) at \
             LEFT JOIN ({rejects}) f ON f.load_id = l.load_id AND f.file = at GROUP BY at ORDER BY at), \
           l.fingerprints, l.facts, {} \
         FROM {} l LEFT JOIN {} u USING (load_id) GROUP BY l.load_id ORDER BY l.begun DESC, l.load_id",
        moment("l.begun"),
        moment("l.completed"),
        units,
        table_exists(),
        records.table("loads"),
        units
    );
    let mut loads = Vec::new();
    let database = records.database(&KnownServer::new(server, link.connection, link.control)?)?;
    for row in link.query(&sql, &[&database])? {
        let (load_id, target): (String, String) = (link.get(&row, 0)?, link.get(&row, 1)?);
        if table.is_some_and(|table| !is_meant(table, &target)) {
            continue;
        }
        let (units, rows): (i64, i64) = (link.get(&row, 6)?, link.get(&row, 7)?);
        let (names, of_files): (Vec<String>, Vec<i64>) = (link.get(&row, 3)?, link.get(&row, 8)?);
        let (rejected, prints): (Vec<i64>, Vec<String>) = (link.get(&row, 9)?, link.get(&row, 10)?);
        let files = names.into_iter().zip(prints).zip(of_files.into_iter().zip(&rejected));
        let files = files.map(|((name, print), (rows, rejected))| {
            FileStatus::new(name, &print, rows as u64, *rejected as u64)
        });
        let load = LoadStatus {
            table: target,
            mode: link.get(&row, 2)?,
            files: files.collect(),
            begun: link.get(&row, 4)?,
            completed: link.get(&row, 5)?,
            units: units as u64,
            rows: rows as u64,
            rejected: rejected.iter().sum::<i64>() as u64,
            table_exists: link.get(&row, 12)?,
            facts: LoadFacts::from_text(link.get::<Option<String>>(&row, 11)?.as_deref()),
            audited_batches: None,
            running: held.contains(&advisory_key(&load_id)),
            load_id,
        };
        loads.push(load.with_facts());
    }
    Ok(loads)
}

/// Whether a table that may be named without its schema is the recorded one.
pub(super) fn is_meant(table: &TableName, recorded: &str) -> bool {
    let Ok(recorded) = recorded.parse::<TableName>() else { return false };
    table.name() == recorded.name() && table.schema().is_none_or(|schema| recorded.schema() == Some(schema))
}

/// Removes records that no later load needs, of loads that ended longer ago than `older_than`, into any table
/// or one. With `dry_run` it only lists them.
///
/// # Errors
/// No connection, or no permission.
pub fn prune(
    server: &Server,
    checkpoint_schema: &str,
    table: Option<&TableName>,
    (older_than, dry_run): (Duration, bool),
    control: &Control<'_>,
) -> Result<Pruned> {
    let checkpoints = Checkpoints::new(checkpoint_schema)?;
    // If the answer to the commit is lost, the next attempt finds nothing any more.
    let mut committing: Option<Pruned> = None;
    let remove = || {
        let connection = Connection::open(server, control)?;
        let link = Link::new(&connection, control);
        refuse_pooler(&connection, server, control)?;
        let before = "SELECT to_char((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC', \
                      'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
        let records = checkpoints.on(link);
        let cutoff: String = records.link.value(before, &[&older_than.as_secs_f64()])?;
        let loads = read(server, &records, None)?;
        let mut pruned = Pruned::decide(loads, &cutoff, dry_run)
            .of_table(|name| table.is_none_or(|table| is_meant(table, name)));
        if dry_run || pruned.removed.is_empty() {
            return Ok(committing.take().unwrap_or(pruned));
        }
        link.begin()?;
        let ids: Vec<String> = pruned.removed.iter().map(|load| load.load_id.clone()).collect();
        for id in ids {
            if !records.remove_unneeded(&id)? {
                pruned.keep_changed(&id);
            }
        }
        committing = Some(pruned.clone());
        link.commit()?;
        records.drop_if_empty()?;
        Ok(pruned)
    };
    retry_reached(LoadOptions::default().retries, control, &|| server.is_reached(), remove)
}

impl Records<'_> {
    /// Removes a load's record in the open transaction, unless the load has begun to run or its table has come back
    /// since the decision.
    fn remove_unneeded(&self, id: &str) -> Result<bool> {
        if !self.try_lock(id)? {
            return Ok(false);
        }
        let sql = format!(
            "DELETE FROM {} l WHERE load_id = $1 AND (mode = 'upsert' OR NOT {})",
            self.table("loads"),
            table_exists()
        );
        Ok(self.link.execute(&sql, &[&id])? == 1)
    }
}

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
