//! One second of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::latency::Percentiles;

/// The events of one second. Operations count in the second in which they ended, `intended` in the second for which
/// they were scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The end of the second, in seconds from the start of the run; the first one may be longer.
    pub at: f64,
    /// How long it was.
    pub length: f64,
    /// It belongs to the warm-up, which the totals exclude.
    pub warm_up: bool,
    /// Scheduled operations a second; in a closed loop the same as `achieved`.
    pub intended: f64,
    /// Successful operations a second.
    pub achieved: f64,
    /// Operations that started more than a millisecond after their intended start.
    pub late: u64,
    /// Late operations for which the driver was mostly responsible: it did not run, woke late, or was busy itself.
    pub late_by_driver: u64,
    /// Late operations for which busy connections were mostly responsible.
    pub late_by_pool: u64,
    /// Operations that are being executed at the end of the second.
    pub in_flight: u64,
    /// Operations that are due at the end of the second and wait for a connection; 0 in a closed loop.
    pub backlog: u64,
    /// By name of the operation.
    pub operations: BTreeMap<String, OperationSecond>,
    /// The server's own figures.
    pub server: Option<ServerSample>,
}

/// An operation in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationSecond {
    /// How many succeeded.
    pub ok: u64,
    /// How many rows those wrote or read.
    pub rows: u64,
    /// How many failed, by kind: `23505` (an SQLSTATE), `crate-4000`, `timeout`, `lost`, `check`, `unstarted`.
    pub errors: BTreeMap<String, u64>,
    /// Attempts beyond the first.
    pub retries: u64,
    /// From the intended start to the end.
    pub latency: Percentiles,
    /// From the actual start to the end.
    pub service: Percentiles,
    /// Counts of `latency` in coarse buckets, for heat maps: `[[up to microseconds, count], ...]`.
    pub heat: Vec<(u64, u64)>,
}

/// The server's own figures, and the system's figures for its processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSample {
    /// Processors that its processes used, on average over the second; only for a server on this machine.
    pub processors: Option<f64>,
    /// Resident memory of its processes in bytes; only for a server on this machine.
    pub memory: Option<u64>,
    /// Bytes of write-ahead log written in the second.
    pub wal: Option<u64>,
    /// Checkpoints that were completed in the second.
    pub checkpoints: Option<u64>,
    /// Sessions that wait, by type and event: `Lock: transactionid`.
    pub waits: BTreeMap<String, u64>,
    /// Sessions that execute a statement.
    pub active: Option<u64>,
}

/// Something that was done to the server while the test ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChaosEvent {
    /// When it began, in seconds from the start of the run.
    pub at: f64,
    /// How long it took: for a kill, until the server accepted connections again.
    pub took: f64,
    /// The action: `kill server`, or the command.
    pub what: String,
    /// Why it failed; missing if it did not.
    pub error: Option<String>,
}
