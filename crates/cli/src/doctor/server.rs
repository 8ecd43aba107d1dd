//! A PostgreSQL server, as a load finds it.

use sawmill_inspect::Finding;
use sawmill_pgwire::{Connection, Server};
use sawmill_profile::Profile;

use super::Report;
use crate::error::Error;
use crate::interrupt;

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
    AND now() - state_change > interval '5 minutes')";

/// A `max_wal_size` below this forces checkpoints during a load.
const WAL: i64 = 4 << 30;
/// A load uses up to this many connections by default, and one for itself.
const CONNECTIONS: i64 = 9;

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
    let mut findings = Vec::new();
    let mut find = |what: String, cost: &str, command: &str| findings.push(Finding::new(what, cost, command));
    if flag(8)? {
        find("the server is a standby".into(), "it takes no rows", "give the address of the primary server");
    }
    if !flag(1)? && !flag(2)? {
        find(
            "this role may create neither schemas nor tables".into(),
            "a load needs its records and a table",
            "GRANT CREATE ON DATABASE ... TO ..., or name a schema of yours with --checkpoint-schema",
        );
    }
    let free = number(3)?;
    if free < CONNECTIONS {
        find(
            format!("{free} connections are free"),
            "a load waits or fails with more",
            "sawmill load --connections 2, or raise max_connections",
        );
    }
    if text(6)? == "off" {
        find(
            "fsync is off".into(),
            "a crash of the system loses the database",
            "ALTER SYSTEM SET fsync = on",
        );
    }
    let wal = number(4)?;
    if wal < WAL {
        find(
            format!("max_wal_size is {}", crate::screen::phases::bytes(wal.unsigned_abs())),
            "long loads force checkpoints, which write pages again",
            "ALTER SYSTEM SET max_wal_size = '16GB'; SELECT pg_reload_conf()",
        );
    }
    let buffers = number(5)?;
    if buffers < 512 << 20 {
        find(
            format!("shared_buffers is {}", crate::screen::phases::bytes(buffers.unsigned_abs())),
            "indexes that are larger are read from disk while rows come in",
            "ALTER SYSTEM SET shared_buffers = '25 % of the memory', then restart; or load first and index after: --key-after, --index",
        );
    }
    if text(7)? == "logical" {
        find(
            "wal_level is logical".into(),
            "the WAL of a load is larger than with replica",
            "leave it if a subscriber needs it; else ALTER SYSTEM SET wal_level = replica, then restart",
        );
    }
    let idle = number(9)?;
    if idle > 0 {
        find(
            format!("{idle} sessions have been idle in a transaction for five minutes"),
            "a load that needs their table waits, and VACUUM removes nothing",
            "SELECT pid, query FROM pg_stat_activity WHERE state = 'idle in transaction'",
        );
    }
    Ok(Report { looked_at: format!("PostgreSQL {}, {}", text(0)?, connection.place()), findings })
}
