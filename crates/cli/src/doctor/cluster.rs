//! A CrateDB cluster, as a load finds it.

use std::time::Duration;

use sawmill_cratedb::{CrateReply, CrateServer, CrateStatements};
use sawmill_inspect::Finding;
use serde_json::Value;

use super::Report;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::phases::{bytes, counted};

// The tables: <https://cratedb.com/docs/crate/reference/en/latest/admin/system-information.html>.
const NODES: &str = "SELECT name, version['number'], heap['max'] FROM sys.nodes";
// The cluster's own checks: partitions, tables of old versions, recovery settings, shards, watermarks of disks.
const CHECKS: [&str; 2] = [
    "SELECT severity, description, passed FROM sys.checks",
    "SELECT severity, description, passed FROM sys.node_checks",
];
const SETTINGS: &str = "SELECT settings['stats']['enabled'] FROM sys.cluster";
const SHARDS: &str = "SELECT routing_state, count(*) FROM sys.shards GROUP BY routing_state";
const BLOCKS: &str = "SELECT table_schema, table_name, settings['blocks']['write'], \
     settings['blocks']['read_only_allow_delete'] FROM information_schema.tables";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer. As values they may take fifty times as much.
const MAX_ANSWER: usize = 4 << 20;
/// A heap below this makes large requests of a load trip a circuit breaker.
const HEAP: u64 = 1 << 30;

struct Cluster {
    statements: CrateStatements,
    place: String,
}

impl Cluster {
    /// The rows of a statement; the inner error is the server's refusal.
    fn rows(&mut self, statement: &str) -> Result<Result<Vec<Vec<Value>>, String>, Error> {
        let body = serde_json::json!({ "stmt": statement }).to_string();
        let failed = |what: String| {
            Error::failure(what, self.place.clone(), "check the address, the user and the server")
        };
        match self.statements.send(body.as_bytes(), interrupt::flag()) {
            CrateReply::Done(answer) => {
                let answer: Value = serde_json::from_slice(&answer)
                    .map_err(|error| failed(format!("cannot read the answer: {error}")))?;
                let rows = answer["rows"].as_array().cloned().unwrap_or_default();
                Ok(Ok(rows.into_iter().filter_map(|row| row.as_array().cloned()).collect()))
            }
            // An error without a code precedes any statement, as after a wrong password.
            CrateReply::Refused(0, what) => Err(failed(format!("the server refuses the request: {what}"))),
            CrateReply::Refused(_, what) => Ok(Err(what)),
            CrateReply::NotSent(what) | CrateReply::Unknown(what) => Err(failed(what)),
        }
    }
}

pub(super) fn check(url: &str) -> Result<Report> {
    let server: CrateServer = url.parse()?;
    let place = server.to_string();
    let statements = CrateStatements::new(&server, PATIENCE, MAX_ANSWER)?;
    let mut cluster = Cluster { statements, place };
    let mut findings = Vec::new();
    let nodes = match cluster.rows(NODES)? {
        Ok(nodes) => nodes,
        Err(what) => {
            findings.push(Finding::new(
                format!("this user may not read sys.nodes: {what}"),
                "a load cannot see whether a lost request still runs, and waits longer",
                &[],
                "as a superuser: GRANT DQL ON SCHEMA sys TO this user",
            ));
            Vec::new()
        }
    };
    findings.extend(nodes.iter().filter_map(|node| small_heap(node)));
    for statement in CHECKS {
        findings
            .extend(cluster.rows(statement)?.unwrap_or_default().iter().filter_map(|row| failed_check(row)));
    }
    findings.extend(cluster.rows(SETTINGS)?.unwrap_or_default().iter().filter_map(|row| blind(row)));
    findings.extend(unassigned(&cluster.rows(SHARDS)?.unwrap_or_default()));
    findings.extend(cluster.rows(BLOCKS)?.unwrap_or_default().iter().filter_map(|table| blocked(table)));
    let version =
        nodes.first().and_then(|node| cell(node, 1).as_str().map(str::to_owned)).unwrap_or_default();
    let counted = counted(nodes.len() as u64, "node");
    let looked_at = format!("CrateDB {version}, {}, {counted}", cluster.place);
    Ok(Report::new(looked_at, findings))
}

/// A value; null where the server sends fewer.
fn cell(row: &[Value], at: usize) -> &Value {
    row.get(at).unwrap_or(&Value::Null)
}

fn small_heap(node: &[Value]) -> Option<Finding> {
    let (name, heap) = (cell(node, 0).as_str()?, cell(node, 2).as_u64()?);
    (heap < HEAP).then(|| {
        Finding::new(
            format!("node {name} has a heap of {}", bytes(heap)),
            "requests of a load may trip a circuit breaker",
            &[],
            "restart it with CRATE_HEAP_SIZE=2g, or a quarter of the memory; or load with --batch-bytes 1MB --connections 2",
        )
    })
}

/// A check of the server's own that does not pass.
fn failed_check(row: &[Value]) -> Option<Finding> {
    if cell(row, 2).as_bool() != Some(false) {
        return None;
    }
    let description = cell(row, 1).as_str().unwrap_or_default();
    let severity = cell(row, 0).as_u64().unwrap_or_default();
    Some(Finding::new(
        description.to_owned(),
        format!("a check of the server's own, severity {severity} of 3"),
        &["SELECT * FROM sys.checks WHERE NOT passed"],
        "the description names the page",
    ))
}

/// The cluster keeps no list of jobs.
fn blind(settings: &[Value]) -> Option<Finding> {
    (cell(settings, 0).as_bool() == Some(false)).then(|| {
        Finding::new(
            "stats.enabled is off",
            "sys.jobs is empty: a load cannot see whether a lost request still runs",
            &["SET GLOBAL PERSISTENT stats.enabled = true"],
            "",
        )
    })
}

fn unassigned(shards: &[Vec<Value>]) -> Option<Finding> {
    let waiting = shards.iter().filter(|row| cell(row, 0).as_str() == Some("UNASSIGNED"));
    let count: u64 = waiting.filter_map(|row| cell(row, 1).as_u64()).sum();
    (count > 0).then(|| {
        Finding::new(
            counted(count, "unassigned shard"),
            "a replica that no node holds protects nothing; rows of a missing primary cannot be written",
            &["SELECT table_name, count(*) FROM sys.shards WHERE routing_state = 'UNASSIGNED' GROUP BY 1"],
            "add nodes, or set number_of_replicas = '0-1' for these tables",
        )
    })
}

fn blocked(table: &[Value]) -> Option<Finding> {
    let is_blocked = [2, 3].iter().any(|at| cell(table, *at).as_bool() == Some(true));
    let quoted = |at| Some(format!("\"{}\"", cell(table, at).as_str()?.replace('"', "\"\"")));
    let name = format!("{}.{}", quoted(0)?, quoted(1)?);
    let command = format!("ALTER TABLE {name} RESET (\"blocks.read_only_allow_delete\", \"blocks.write\")");
    is_blocked.then(|| {
        Finding::new(
            format!("{name} is blocked for writing"),
            "a load into it waits, then ends with an error",
            &[command.as_str()],
            "free disk space first",
        )
    })
}
