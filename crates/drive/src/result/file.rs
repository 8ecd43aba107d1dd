//! The result file.

use std::collections::BTreeMap;
use std::time::Duration;

use sawmill_profile::{Machine, format_counted, format_duration};
use serde::{Deserialize, Serialize};

use crate::result::histogram::Durations;
use crate::result::latency::Distribution;
use crate::result::proof::Proof;
use crate::result::second::{ChaosEvent, Second};

/// The name of the format, in the field `format`.
pub const FORMAT: &str = "sawmill-drive";
/// The version of the schema, in the field `version`.
pub const VERSION: u64 = 1;

/// The result of a load test. Documented in `docs/bench-results.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveResult {
    /// Always [`FORMAT`].
    pub format: String,
    /// The version of the schema: [`VERSION`].
    pub version: u64,
    /// When the run began: UTC, RFC 3339.
    pub started: String,
    /// The same in seconds since 1970: parts of one run begin together.
    pub began: f64,
    /// The command line.
    pub command: String,
    /// Where the driver ran.
    pub machine: Machine,
    /// Name to version: our own, the server's.
    pub versions: BTreeMap<String, String>,
    /// The settings of the run.
    pub run: RunDescription,
    /// Whether the driver kept its own schedule. If not, no figure of this file describes the server.
    pub valid: bool,
    /// Why the result is invalid; empty if it is valid.
    pub invalid_because: Vec<String>,
    /// The run was stopped before its end.
    pub interrupted: bool,
    /// The condition that ended the run early, and the measured value.
    pub aborted: Option<String>,
    /// All operations together, without the warm-up.
    pub total: OperationResult,
    /// Each operation, without the warm-up, in the order of the plan.
    pub operations: Vec<OperationResult>,
    /// Second by second, the warm-up included.
    pub seconds: Vec<Second>,
    /// The actions that disturbed the server.
    pub chaos: Vec<ChaosEvent>,
    /// The limits, and whether they held.
    pub limits: Vec<LimitResult>,
    /// The state of the rows, table by table; empty if nothing was checked.
    pub proof: Vec<Proof>,
    /// The driver's own cost and lateness.
    pub driver: DriverReport,
    /// The search for the highest rate, if there was one; the other figures are then of a trial at the rate that it
    /// reports.
    pub find_max: Option<FindMax>,
}

/// The settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The plan's name.
    pub name: String,
    /// The server, without its password.
    pub target: String,
    /// `open`: operations have intended start times, or `closed`: the next one begins when one has ended.
    pub loop_kind: String,
    /// How operations arrive: `constant`, `poisson`, `bursts of 50`, `trace FILE`; empty in a closed loop.
    pub arrivals: String,
    /// The rate over time: `1000/s`, `ramp 100/s..1000/s over 60 s`; empty in a closed loop.
    pub shape: String,
    /// Connections to the server.
    pub connections: u64,
    /// Seconds at the start that do not count.
    pub warm_up: f64,
    /// Seconds that count.
    pub duration: f64,
    /// Decides all random draws.
    pub seed: u64,
    /// The isolation level of transactions; missing if it is the server's default.
    pub isolation: Option<String>,
    /// A hash of the plan's tables, operations and settings: the parts of a run share it.
    pub plan: String,
    /// The number of this driving process, and how many there are: `2/4`; missing if it is the only one.
    pub part: Option<String>,
    /// The names of the operations, in the order of the plan.
    pub operations: Vec<String>,
    /// The tables and checks in `proof`, examined after the run; empty if the run was not asked to check.
    #[serde(default)]
    pub proves: Vec<String>,
}

/// An operation over the whole run, without the warm-up. It counts by its intended start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationResult {
    /// Its name; `all` for the total.
    pub name: String,
    /// How many were scheduled.
    pub intended: u64,
    /// How many ended well.
    pub ok: u64,
    /// Operations a second that ended well.
    pub rate: f64,
    /// Rows that the successful operations wrote or read.
    pub rows: u64,
    /// How many failed, by kind: an SQLSTATE such as `23505`, `crate-4000` (an error code of CrateDB), `timeout`,
    /// `lost` (the connection), `check` (a wrong result), `unstarted` (the run ended before a connection was free).
    pub errors: BTreeMap<String, u64>,
    /// A message of the server for each kind of error.
    pub messages: BTreeMap<String, String>,
    /// Attempts beyond the first.
    pub retries: u64,
    /// How many ended well after more than one attempt.
    pub retried: u64,
    /// Operations that started more than a millisecond after their intended start.
    pub late: u64,
    /// From the intended start to the end, of those that ended well.
    pub latency: Distribution,
    /// From the actual start to the end, of those that ended well.
    pub service: Distribution,
    /// From the intended start to the end, of those that were sent and failed.
    pub failures: Distribution,
}

impl OperationResult {
    /// Sums several results: adds histograms count by count, and takes the name of the last.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        let (mut latency, mut service) = (Durations::default(), Durations::default());
        let mut failures = Durations::default();
        for one in all {
            sum.name.clone_from(&one.name);
            sum.intended += one.intended;
            sum.ok += one.ok;
            sum.rate += one.rate;
            sum.rows += one.rows;
            sum.retries += one.retries;
            sum.retried += one.retried;
            sum.late += one.late;
            add_counts(&mut sum.errors, &one.errors);
            one.messages.iter().for_each(|(kind, message)| {
                sum.messages.entry(kind.clone()).or_insert_with(|| message.clone());
            });
            latency.add(&one.latency.histogram);
            service.add(&one.service.histogram);
            failures.add(&one.failures.histogram);
        }
        Self { latency: latency.into(), service: service.into(), failures: failures.into(), ..sum }
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Adds counts by kind.
pub(crate) fn add_counts(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (kind, count) in more {
        *sums.entry(kind.clone()).or_default() += count;
    }
}

/// A limit and the measured value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitResult {
    /// The limit as it was given: `insert.p99 < 20ms`.
    pub limit: String,
    /// The measured value, in the unit of the limit.
    pub measured: String,
    /// Whether it held.
    pub held: bool,
}

/// The driver itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverReport {
    /// CPU time of the process while the counted part ran, in seconds.
    pub cpu: f64,
    /// CPU time for each operation, in microseconds.
    pub cpu_us_per_operation: f64,
    /// How late operations started although a connection was free.
    pub lateness: Distribution,
    /// Operations that started more than a millisecond late, mostly because connections waited for slow answers.
    pub late_by_server: u64,
    /// Operations that started late mostly because of the driver: it did not run, woke late, or was busy itself.
    pub late_by_driver: u64,
    /// Operations that started late mostly because all connections were busy, each as long as usual.
    pub late_by_pool: u64,
    /// Operations that the driver spoilt: more than a millisecond and more than a tenth of their latency is the
    /// driver's.
    pub spoilt: u64,
    /// How often this process paused for more than 5 ms in the counted part, because it was stopped, had no processor,
    /// or its machine stood still. After a merge, this and `paused` describe the driving process that paused longest.
    pub pauses: u64,
    /// The total length of these pauses in seconds.
    pub paused: f64,
    /// For how many seconds each connection's thread, on average, waited for a processor in operations that the driver
    /// spoilt.
    #[serde(default)]
    pub waited: f64,
    /// Operations a second that this driver makes with the same plan against a target that does nothing, as
    /// fast as it can; missing if it was not measured.
    pub capacity: Option<f64>,
}

impl DriverReport {
    /// How long it did not run, and how long its connections waited for a processor.
    pub fn idle(&self) -> Vec<String> {
        let long = |seconds: f64| format_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let mut idle = Vec::new();
        if self.pauses > 0 {
            let pauses = format_counted(self.pauses, "pause");
            idle.push(format!("the driver did not run for {} in {pauses}", long(self.paused)));
        }
        if self.waited > 0.0 {
            idle.push(format!("each connection waited {} for a processor", long(self.waited)));
        }
        idle
    }
}

/// The search for the highest rate that holds the limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindMax {
    /// The limits that had to hold.
    pub limits: Vec<String>,
    /// The highest rates that held them, one for each repeated search, in operations a second.
    pub found: Vec<f64>,
    /// Their median; for an even number of searches, the lower of the two middle rates, which was tried.
    pub rate: f64,
    /// The lower end of the median's interval: exact at 95 % from six searches on, otherwise the lowest rate.
    pub low: f64,
    /// The upper end, or the highest rate.
    pub high: f64,
    /// The share of experiments in which such an interval contains the true median.
    pub confidence: f64,
    /// Why operations were late at the lowest rate that did not hold: `driver`, `server` or `pool` (busy connections).
    /// Empty if all rates held, or if no operation was late.
    pub bound_by: String,
    /// Every rate that was tried.
    pub trials: Vec<Trial>,
}

impl FindMax {
    /// "72/s to 75/s with 75 % confidence, 3 searches"; a single search has no interval.
    pub fn evidence(&self, rate: impl Fn(f64) -> String) -> String {
        let [low, high] = [self.low, self.high].map(rate);
        match self.found.len() {
            ..2 => "1 search".to_owned(),
            several => {
                format!(
                    "{low} to {high} with {:.0} % confidence, {several} searches",
                    self.confidence * 100.0
                )
            }
        }
    }
}

/// A rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Operations a second that were scheduled.
    pub rate: f64,
    /// Operations a second that ended well.
    pub achieved: f64,
    /// The 99th percentile of the latency, in microseconds.
    pub p99_us: u64,
    /// Whether the limits held.
    pub held: bool,
    /// Whether the driver kept its schedule.
    pub valid: bool,
}
