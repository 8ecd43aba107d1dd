//! A PostgreSQL server, as a load finds it.

use sawmill_inspect::Finding;
use sawmill_pgwire::{Connection, Server};
use sawmill_profile::Profile;

use super::Report;
use crate::error::Error;
use crate::interrupt;
use crate::screen::phases::bytes;

/// A query for the server's version, privileges and settings, one column each.
const FACTS: &str = "\
SELECT current_setting('server_version'), \
  has_database_privilege(current_database(), 'CREATE'), \
  has_schema_privilege(coalesce(current_schema(), 'public'), 'CREATE'), \
  current_setting('max_connections')::bigint - (SELECT count(*) FROM pg_catalog.pg_stat_activity \
    WHERE backend_type = 'client backend'), \
  (SELECT setting::bigint * 1048576 FROM pg_catalog.pg_settings WHERE name = 'max_wal_size'), \
  (SELECT setting::bigint * 8192 FROM pg_catalog.pg_settings WHERE name = 'shared_buffers'), \
  current_setting('fsync'), current_setting('wal_level'), pg_catalog.pg_is_in_recovery(), \
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle in transaction' \
    AND now() - state_change > interval '5 minutes'), \
  current_setting('synchronous_standby_names'), \
  (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE NOT active)";

/// A `max_wal_size` below this forces checkpoints during a load.
const WAL: i64 = 4 << 30;
/// A load uses up to this many connections by default, and one for itself.
const CONNECTIONS: i64 = 9;
/// Indexes larger than these `shared_buffers` are read from disk.
const BUFFERS: i64 = 512 << 20;

pub(super) fn check(url: &str) -> Result<Report, Error> {
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
    let mut findings = obstacles((flag(8)?, flag(1)? || flag(2)?), number(3)?, (number(9)?, number(11)?));
    findings.extend(costly((number(4)?, number(5)?), &text(6)?, &text(7)?, &text(10)?));
    Ok(Report { looked_at: format!("PostgreSQL {}, {}", text(0)?, connection.place()), findings })
}

/// What holds up a load: a standby, missing privileges, free connections, idle transactions and unread slots.
fn obstacles((standby, may_create): (bool, bool), free: i64, (idle, unread): (i64, i64)) -> Vec<Finding> {
    let found = [
        (
            standby,
            "the server is a standby".to_owned(),
            "it takes no rows",
            "give the address of the primary server",
        ),
        (
            !may_create,
            "this role may create neither schemas nor tables".to_owned(),
            "a load needs its records and a table",
            "GRANT CREATE ON DATABASE ... TO ..., or name a schema of yours with --checkpoint-schema",
        ),
        (
            free < CONNECTIONS,
            format!("{free} connections are free"),
            "a load waits or fails with more",
            "sawmill load --connections 2, or raise max_connections",
        ),
        (
            idle > 0,
            format!("{idle} sessions have been idle in a transaction for five minutes"),
            "a load that needs their table waits, and VACUUM removes nothing",
            "SELECT pid, query FROM pg_stat_activity WHERE state = 'idle in transaction'",
        ),
        (
            unread > 0,
            format!("{unread} replication slots have no reader"),
            "the server keeps the WAL of a load for them, until its disk is full",
            "SELECT slot_name FROM pg_replication_slots WHERE NOT active, then pg_drop_replication_slot(...)",
        ),
    ];
    kept(found)
}

/// Settings that slow a load or risk its rows.
fn costly((wal, buffers): (i64, i64), fsync: &str, wal_level: &str, standbys: &str) -> Vec<Finding> {
    let found = [
        (
            fsync == "off",
            "fsync is off".to_owned(),
            "a crash of the system loses the database",
            "ALTER SYSTEM SET fsync = on",
        ),
        (
            !standbys.is_empty(),
            format!("commits wait for standbys: {standbys}"),
            "each unit of a load waits for them",
            "sawmill load --set synchronous_commit=local, if the standbys may follow later",
        ),
        (
            wal < WAL,
            format!("max_wal_size is {}", bytes(wal.unsigned_abs())),
            "long loads force checkpoints, which write pages again",
            "ALTER SYSTEM SET max_wal_size = '16GB'; SELECT pg_reload_conf()",
        ),
        (
            buffers < BUFFERS,
            format!("shared_buffers is {}", bytes(buffers.unsigned_abs())),
            "indexes that are larger are read from disk while rows come in",
            "ALTER SYSTEM SET shared_buffers = '25 % of the memory', then restart; or load first and index after: --key-after, --index",
        ),
        (
            wal_level == "logical",
            "wal_level is logical".to_owned(),
            "the WAL of a load is larger than with replica",
            "leave it if a subscriber needs it; else ALTER SYSTEM SET wal_level = replica, then restart",
        ),
    ];
    kept(found)
}

/// Returns the findings, without the checks that found nothing.
fn kept<const N: usize>(found: [(bool, String, &'static str, &'static str); N]) -> Vec<Finding> {
    let found = found.into_iter().filter(|(is_there, ..)| *is_there);
    found.map(|(_, what, cost, command)| Finding::new(what, cost, command)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_leads_to_its_finding() {
        let names = |found: Vec<Finding>| {
            found.into_iter().map(|finding| finding.what).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(names(obstacles((false, true), 100, (0, 0))), "");
        assert_eq!(names(costly((WAL, BUFFERS), "on", "replica", "")), "");
        assert_eq!(
            names(obstacles((true, false), 2, (3, 1))),
            "the server is a standby; this role may create neither schemas nor tables; 2 connections are free; 3 sessions \
             have been idle in a transaction for five minutes; 1 replication slots have no reader"
        );
        assert_eq!(
            names(costly((1 << 30, 128 << 20), "off", "logical", "FIRST 1 (a)")),
            "fsync is off; commits wait for standbys: FIRST 1 (a); max_wal_size is 1.07 GB; shared_buffers is 134 MB; \
             wal_level is logical"
        );
    }
}
