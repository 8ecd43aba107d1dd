//! A PostgreSQL server, as a load finds it.

use sawmill_inspect::Finding;
use sawmill_pgwire::{Connection, Server};
use sawmill_profile::Profile;

use super::Report;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::phases::{bytes, counted};

/// A query for the server's version, privileges and settings, one column each. Sessions of other roles, which
/// `pg_stat_activity` hides from ordinary ones, count among the connections.
const FACTS: &str = "\
SELECT current_setting('server_version'), \
  has_database_privilege(current_database(), 'CREATE') OR EXISTS (SELECT FROM pg_catalog.pg_namespace \
    WHERE nspname = '_sawmill' AND has_schema_privilege(oid, 'CREATE')), \
  EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = current_schema() AND has_schema_privilege(oid, 'CREATE')), \
  least((SELECT rolconnlimit + 1 - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE usename = session_user) \
      FROM pg_catalog.pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper), \
    (SELECT datconnlimit + 1 - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) \
      FROM pg_catalog.pg_database WHERE datname = current_database() AND datconnlimit >= 0 \
        AND current_setting('is_superuser') <> 'on'), \
    current_setting('max_connections')::bigint + 1 - (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database) \
    - CASE current_setting('is_superuser') WHEN 'on' THEN 0 ELSE (SELECT sum(setting::bigint) \
      FROM pg_catalog.pg_settings WHERE name IN ('superuser_reserved_connections', 'reserved_connections')) \
    END)::bigint, \
  (SELECT setting::bigint * 1048576 FROM pg_catalog.pg_settings WHERE name = 'max_wal_size'), \
  (SELECT setting::bigint * 8192 FROM pg_catalog.pg_settings WHERE name = 'shared_buffers'), \
  current_setting('fsync'), current_setting('wal_level'), \
  pg_catalog.pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', \
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle in transaction' \
    AND now() - state_change > interval '5 minutes'), \
  current_setting('synchronous_standby_names'), \
  (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE NOT active), \
  format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user), \
  format('GRANT CREATE ON SCHEMA %I TO %I', coalesce(current_schema(), 'public'), current_user), \
  current_setting('server_version_num')::bigint / 10000 + 2012, \
  now() > make_date((current_setting('server_version_num')::int / 10000 + 2012), 11, 15), \
  CASE WHEN coalesce(inet_server_addr() = inet_client_addr(), true) THEN \
    coalesce((SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory'), '') ELSE '' END";

/// A `max_wal_size` below this forces checkpoints during a load.
const WAL: i64 = 4 << 30;
/// A load uses up to this many connections by default, and one for itself.
const CONNECTIONS: i64 = 9;
/// A disk with less free space is soon full.
const DISK: u64 = 10 << 30;
/// Indexes larger than these `shared_buffers` are read from disk.
const BUFFERS: i64 = 512 << 20;

pub(super) fn check(url: &str) -> Result<Report> {
    let server: Server = url.parse()?;
    let phase = Profile::new().phase("doctor");
    let control = interrupt::control(&phase);
    let connection = Connection::open(&server, &control)?;
    let rows = connection.query(&control, FACTS, &[])?;
    let Some(row) = rows.first() else {
        return Err(Error::failure("the server answered without a row", connection.place(), ""));
    };
    let flag = |at| connection.get::<bool>(row, at);
    let number = |at| connection.get::<i64>(row, at);
    let text = |at| connection.get::<String>(row, at);
    let lacks = [(!flag(1)?, text(12)?), (!flag(2)?, text(13)?)];
    let mut findings = obstacles(flag(8)?, &lacks, number(3)?, (number(9)?, number(11)?));
    let disk = free_bytes(&text(16)?);
    findings.extend(kept([(
        disk.is_some_and(|free| free < DISK),
        format!("{} free on the disk of the server", bytes(disk.unwrap_or_default())),
        "a load that fills it stops the server",
        &[],
        "free some space",
    )]));
    findings.extend(costly((number(4)?, number(5)?), &text(6)?, &text(7)?, &text(10)?));
    let (version, until) = (text(0)?, format!("November {}", number(14)?));
    findings.extend(kept([(
        flag(15)?,
        format!("PostgreSQL {version} has had no fixes since {until}"),
        "its faults stay",
        &[],
        "move to a newer major version with pg_upgrade",
    )]));
    let disk = disk.map_or_else(
        || "its disk is not visible from here".to_owned(),
        |free| format!("{} free on its disk", bytes(free)),
    );
    let looked_at = format!("PostgreSQL {version} (fixes until {until}), {}, {disk}", connection.place());
    Ok(Report::new(looked_at, findings))
}

/// The free bytes of the file system of a folder of this machine.
fn free_bytes(folder: &str) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// What holds up a load: a standby, missing privileges with their GRANT, free connections, idle transactions and
/// unread slots.
fn obstacles(
    standby: bool,
    [(no_records, for_records), (no_tables, for_tables)]: &[(bool, String); 2],
    free: i64,
    (idle, unread): (i64, i64),
) -> Vec<Finding> {
    let counted = |count: i64, noun: &str| counted(u64::try_from(count).unwrap_or(0), noun);
    kept([
        (
            standby,
            "the server is a standby, or sessions of this role are read-only".to_owned(),
            "it takes no rows",
            &[],
            "give the address of the primary server; for a read-only role: ALTER ROLE CURRENT_USER SET \
             default_transaction_read_only = off",
        ),
        (
            *no_records,
            "this role may not create the schema _sawmill".to_owned(),
            "a load needs it once, for its records",
            &[for_records.as_str()],
            "or name a schema of this role: sawmill load --checkpoint-schema",
        ),
        (
            *no_tables,
            "this role may not create tables in its default schema".to_owned(),
            "a load into a new table needs that",
            &[for_tables.as_str()],
            "",
        ),
        (
            free < CONNECTIONS,
            format!("{} free for this role", counted(free, "connection")),
            "a load waits or fails with more",
            &[],
            "load with --connections 2; or raise max_connections, or the limit of the role or database",
        ),
        (
            idle > 0,
            format!("{} idle in a transaction for five minutes", counted(idle, "session")),
            "a load that needs their table waits, and VACUUM removes nothing",
            &["SELECT pid, query FROM pg_stat_activity WHERE state = 'idle in transaction'"],
            "",
        ),
        (
            unread > 0,
            format!("{} without a reader", counted(unread, "replication slot")),
            "the server keeps the WAL of a load for them, until its disk is full",
            &["SELECT slot_name FROM pg_replication_slots WHERE NOT active"],
            "pg_drop_replication_slot removes one",
        ),
    ])
}

/// Settings that slow a load or risk its rows.
fn costly((wal, buffers): (i64, i64), fsync: &str, wal_level: &str, standbys: &str) -> Vec<Finding> {
    kept([
        (
            fsync == "off",
            "fsync is off".to_owned(),
            "a crash of the system loses the database",
            &["ALTER SYSTEM SET fsync = on", RELOAD],
            "",
        ),
        (
            !standbys.is_empty(),
            format!("commits wait for standbys: {standbys}"),
            "each unit of a load waits for them",
            &[],
            "if they may follow later, load with --set synchronous_commit=local",
        ),
        (
            wal < WAL,
            format!("max_wal_size is {}", bytes(wal.unsigned_abs())),
            "long loads force checkpoints, which write pages again",
            &["ALTER SYSTEM SET max_wal_size = '16GB'", RELOAD],
            "",
        ),
        (
            buffers < BUFFERS,
            format!("shared_buffers is {}", bytes(buffers.unsigned_abs())),
            "indexes that are larger are read from disk while rows come in",
            &["ALTER SYSTEM SET shared_buffers = '2GB'"],
            "or a quarter of the memory, then restart; or index after the load: --key-after, --index",
        ),
        (
            wal_level == "logical",
            "wal_level is logical".to_owned(),
            "the WAL of a load is larger than with replica",
            &["ALTER SYSTEM SET wal_level = replica"],
            "unless a subscriber needs it; then restart",
        ),
    ])
}

const RELOAD: &str = "SELECT pg_reload_conf()";

/// Returns the findings, without the checks that found nothing.
fn kept<const N: usize>(found: [(bool, String, &str, &[&str], &str); N]) -> Vec<Finding> {
    let found = found.into_iter().filter(|(is_there, ..)| *is_there);
    found.map(|(_, what, cost, commands, advice)| Finding::new(what, cost, commands, advice)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_leads_to_its_finding() {
        let names = |found: Vec<Finding>| {
            found.into_iter().map(|finding| finding.what).collect::<Vec<_>>().join("; ")
        };
        let lacks = |lacks: bool| [(lacks, String::new()), (lacks, String::new())];
        assert_eq!(names(obstacles(false, &lacks(false), 100, (0, 0))), "");
        assert_eq!(names(costly((WAL, BUFFERS), "on", "replica", "")), "");
        assert_eq!(
            names(obstacles(true, &lacks(true), 2, (3, 1))),
            "the server is a standby, or sessions of this role are read-only; this role may not create the schema _sawmill; this role may not create tables in its \
             default schema; 2 connections free for this role; 3 sessions idle in a transaction for five minutes; 1 replication slot without a reader"
        );
        assert_eq!(
            names(costly((1 << 30, 128 << 20), "off", "logical", "FIRST 1 (a)")),
            "fsync is off; commits wait for standbys: FIRST 1 (a); max_wal_size is 1.07 GB; shared_buffers is 134 MB; \
             wal_level is logical"
        );
    }
}
