//! Phases of a run: named stretches of wall time with their CPU time, memory, rows and bytes, and the spans
//! of the threads that worked in them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::trace::ledger::{AttachedThread, SpanSink};
use crate::trace::live::LiveThread;
use crate::trace::seconds;
use crate::trace::span_report::ThreadReport;
use crate::trace::system::hardware::{Hardware, HardwareCounters, HardwareSnapshot};
use crate::trace::system::peak_memory::PeakMemory;
use crate::trace::system::process;
use crate::trace::wire::WireCounters;

/// One measured run with its finished phases. Clones share it.
#[derive(Clone, Debug)]
pub struct Profile {
    run: Arc<Run>,
}

#[derive(Debug)]
struct Run {
    started: Instant,
    phases_started: AtomicU64,
    hardware: Option<HardwareCounters>,
    wire: WireCounters,
    /// The rows of all outermost phases.
    rows: Arc<AtomicU64>,
    finished: Mutex<Vec<Finished>>,
}

/// A finished phase. Keeps its sink, because threads may be detached later.
#[derive(Debug)]
struct Finished {
    order: u64,
    report: PhaseReport,
    sink: SpanSink,
}

impl Default for Profile {
    fn default() -> Self {
        Self::new()
    }
}

impl Profile {
    /// A run without phases.
    pub fn new() -> Self {
        Self::starting(None)
    }

    /// A run whose phases include hardware counters if the kernel provides them. The counters follow the
    /// existing threads and all that those start.
    pub fn with_hardware() -> Self {
        Self::starting(Some(HardwareCounters::open()))
    }

    fn starting(hardware: Option<HardwareCounters>) -> Self {
        Self {
            run: Arc::new(Run {
                started: Instant::now(),
                phases_started: AtomicU64::new(0),
                hardware,
                wire: WireCounters::new(),
                rows: Arc::default(),
                finished: Mutex::default(),
            }),
        }
    }

    /// The total row count of its phases.
    #[cfg(feature = "measure")]
    pub(crate) fn rows(&self) -> &Arc<AtomicU64> {
        &self.run.rows
    }

    /// Starts a phase. Its peak memory is measured from here.
    pub fn phase(&self, name: &'static str) -> Phase {
        self.start_phase(name, 0)
    }

    fn start_phase(&self, name: &'static str, depth: u32) -> Phase {
        let peak = PeakMemory::start();
        Phase {
            profile: self.clone(),
            name,
            depth,
            order: self.run.phases_started.fetch_add(1, Relaxed),
            peak,
            sink: SpanSink::default(),
            hardware_before: self.run.hardware.as_ref().map(HardwareCounters::snapshot),
            cpu_before: process::cpu_times(),
            started: Instant::now(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The phases finished so far, in start order; a nested phase follows the one around it, with a greater
    /// depth.
    pub fn phases(&self) -> Vec<PhaseReport> {
        let mut finished = self.run.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.sort_by_key(|phase| phase.order);
        finished
            .iter()
            .map(|phase| PhaseReport { threads: phase.sink.threads(), ..phase.report.clone() })
            .collect()
    }

    /// The bytes sent and received on the run's own connections, counted by their transport.
    pub fn wire(&self) -> &WireCounters {
        &self.run.wire
    }

    /// Time since the run started.
    pub fn elapsed(&self) -> Duration {
        self.run.started.elapsed()
    }

    /// When the run started; a `Sampler` with the same start shares its time axis.
    pub fn started(&self) -> Instant {
        self.run.started
    }
}

/// A running phase. Threads share it by reference and count on it.
#[derive(Debug)]
pub struct Phase {
    profile: Profile,
    name: &'static str,
    depth: u32,
    order: u64,
    started: Instant,
    cpu_before: (Duration, Duration),
    hardware_before: Option<HardwareSnapshot>,
    peak: PeakMemory,
    sink: SpanSink,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Phase {
    /// Counts processed rows.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
        if self.depth == 0 {
            self.profile.run.rows.fetch_add(rows, Relaxed);
        }
    }

    /// Counts processed bytes: read, written or sent, depending on the phase.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Rows counted so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The byte counters of the run's own connections.
    pub fn wire(&self) -> &WireCounters {
        self.profile.wire()
    }

    /// Starts a phase within this one.
    pub fn phase(&self, name: &'static str) -> Phase {
        self.profile.start_phase(name, self.depth + 1)
    }

    /// Records the spans of the calling thread in this phase until the guard is dropped.
    pub fn attach(&self, thread_name: &str) -> AttachedThread {
        self.sink.attach(thread_name)
    }

    /// The current activity of the attached threads.
    pub fn live(&self) -> Vec<LiveThread> {
        self.sink.live()
    }

    /// The sink for threads that cannot borrow the phase.
    pub fn sink(&self) -> SpanSink {
        self.sink.clone()
    }

    /// Ends the phase and adds its report to the profile. Threads still attached appear in
    /// [`Profile::phases`] once they are detached, but not in the returned report.
    pub fn finish(self) -> PhaseReport {
        let wall = self.started.elapsed();
        let (user, system) = process::cpu_times();
        let user = user.saturating_sub(self.cpu_before.0);
        let system = system.saturating_sub(self.cpu_before.1);
        let report = PhaseReport {
            name: self.name.to_owned(),
            depth: self.depth,
            started: self.started.saturating_duration_since(self.profile.run.started),
            wall,
            cpu: user + system,
            system,
            rows: self.rows(),
            bytes: self.bytes(),
            peak_memory: self.peak.so_far(),
            hardware: match (&self.profile.run.hardware, &self.hardware_before) {
                (Some(counters), Some(before)) => counters.since(before),
                _ => Hardware::NotMeasured,
            },
            threads: self.sink.threads(),
        };
        let finished = Finished { order: self.order, report: report.clone(), sink: self.sink };
        self.profile.run.finished.lock().unwrap_or_else(PoisonError::into_inner).push(finished);
        report
    }
}

/// The measurements of one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// The phase's name.
    pub name: String,
    /// 0 for an outermost phase, 1 for a phase within one, and so on.
    #[serde(default)]
    pub depth: u32,
    /// When it started, relative to the start of the run.
    #[serde(with = "seconds", default)]
    pub started: Duration,
    /// Wall-clock time from start to finish.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time of all threads of this process, user plus system.
    #[serde(with = "seconds")]
    pub cpu: Duration,
    /// The part of `cpu` spent in the kernel.
    #[serde(with = "seconds", default)]
    pub system: Duration,
    /// The number of rows counted.
    pub rows: u64,
    /// The number of bytes counted.
    pub bytes: u64,
    /// Peak resident memory in bytes during the phase, or since the process started if the peak cannot be
    /// reset; `None` if the system does not report it.
    pub peak_memory: Option<u64>,
    /// Hardware counters of all threads during the phase.
    #[serde(default)]
    pub hardware: Hardware,
    /// Spans of the attached threads.
    #[serde(default)]
    pub threads: Vec<ThreadReport>,
}

impl PhaseReport {
    /// Rows per second.
    pub fn rows_per_second(&self) -> f64 {
        self.rows as f64 / self.wall.as_secs_f64().max(1e-9)
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_listed_in_start_order_with_their_depth() {
        let profile = Profile::new();
        let load = profile.phase("load");
        let encode = load.phase("encode");
        encode.add_rows(5);
        encode.finish();
        load.finish();
        profile.phase("verify").finish();
        let phases = profile.phases();
        let seen: Vec<_> = phases.iter().map(|phase| (phase.name.as_str(), phase.depth)).collect();
        assert_eq!(seen, [("load", 0), ("encode", 1), ("verify", 0)]);
        assert!(phases[1].started >= phases[0].started);
        assert!(phases[1].wall <= phases[0].wall);
    }

    #[test]
    fn a_thread_detached_after_the_end_still_appears_in_the_profile() {
        let profile = Profile::new();
        let phase = profile.phase("load");
        let attached = phase.attach("late");
        phase.finish();
        drop(attached);
        assert_eq!(profile.phases()[0].threads[0].name, "late");
    }

    #[test]
    fn a_report_survives_json() {
        let phase = Profile::with_hardware().phase("load");
        let attached = phase.attach("writer 1");
        crate::span("encode").add_bytes(7);
        drop(attached);
        let report = phase.finish();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<PhaseReport>(&text).unwrap(), report);
    }
}
