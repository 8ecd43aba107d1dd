//! How a run is watched: a snapshot each second.

use crate::result::file::{DriveResult, DriverReport, OperationResult, RunDescription};
use crate::result::histogram::Durations;
use crate::result::second::{ChaosEvent, Second};

/// Receives the events of a run, on a separate thread that the workers do not wait for.
pub trait Observer: Send {
    /// The run begins.
    fn started(&mut self, _run: &RunDescription) {}
    /// A second has ended.
    fn second(&mut self, snapshot: &Snapshot<'_>);
    /// Something was done to the server.
    fn chaos(&mut self, _event: &ChaosEvent) {}
    /// The run has ended.
    fn ended(&mut self, _result: &DriveResult) {}
}

/// The state of a run at the end of a second.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The settings of the run.
    pub run: &'a RunDescription,
    /// The second that has ended.
    pub second: &'a Second,
    /// The exact histograms of this second, in the order of `run.operations`.
    pub intervals: &'a [IntervalHistograms],
    /// The operations among them that belong to the warm-up.
    pub warming: &'a [IntervalHistograms],
    /// Everything so far, without the warm-up, in the order of `run.operations`. `latency` and `service` have
    /// no histograms yet: these are in `totals`.
    pub operations: &'a [OperationResult],
    /// The histograms of everything so far, without the warm-up, in the same order.
    pub totals: &'a [IntervalHistograms],
    /// The causes of late starts so far, without the warm-up. `lateness` has no histogram yet.
    pub driver: &'a DriverReport,
}

/// Histograms of one operation.
#[derive(Clone, Debug, Default)]
pub struct IntervalHistograms {
    /// From the intended start to the end, of successful operations.
    pub latency: Durations,
    /// From the actual start to the end, of successful operations.
    pub service: Durations,
    /// From the intended start to the end, of operations that were sent and failed.
    pub failures: Durations,
}

impl IntervalHistograms {
    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.failures.add(&other.failures);
    }

    /// Clears all values, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.latency.clear();
        self.service.clear();
        self.failures.clear();
    }
}

impl Observer for () {
    fn second(&mut self, _: &Snapshot<'_>) {}
}
