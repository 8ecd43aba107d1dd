//! Recording: connections leave samples, and one thread counts them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::observer::IntervalHistograms;
use crate::result::file::{DriverReport, OperationResult};
use crate::result::histogram::Durations;
use crate::result::second::{OperationSecond, Second};
use crate::run::delay::{Cause, Delay};
use crate::run::verdict::is_spoilt;
use crate::work::outcome::{NO_ROW, Outcome, UNSTARTED};

/// Operations that start later than this are late.
pub(crate) const LATE: u64 = 1_000_000;

/// An operation that has ended; times in nanoseconds from the start of the run.
#[derive(Debug)]
pub(crate) struct Sample {
    pub operation: usize,
    pub intended: u64,
    pub started: u64,
    pub ended: u64,
    pub attempts: u32,
    pub outcome: Outcome,
    /// The connection was free at the intended start.
    pub was_free: bool,
    /// The causes of its wait before it was started.
    pub delay: Delay,
    /// How long this process was paused between its start and its end.
    pub paused: u64,
    /// How long its thread waited for a processor in that time, perhaps because of a pause.
    pub waited: u64,
}

impl Sample {
    /// From the intended start to the actual one, in nanoseconds.
    fn wait(&self) -> u64 {
        self.started.saturating_sub(self.intended)
    }

    /// From the intended start to the end.
    fn latency(&self) -> Duration {
        Duration::from_nanos(self.ended.saturating_sub(self.intended))
    }
}

/// Where connections leave samples.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    waiting: Mutex<Vec<Sample>>,
    pub in_flight: AtomicU64,
}

impl Samples {
    fn lock(&self) -> MutexGuard<'_, Vec<Sample>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, sample: Sample) {
        self.lock().push(sample);
    }

    /// Takes the samples left so far; `into` is empty and gives its memory.
    pub(crate) fn take(&self, into: &mut Vec<Sample>) {
        std::mem::swap(&mut *self.lock(), into);
    }
}

/// The counts so far.
pub(crate) struct Recorder {
    names: Vec<String>,
    /// End of the warm-up, in nanoseconds from the start: nothing before it counts in the totals.
    warm_up: u64,
    pub totals: Vec<IntervalHistograms>,
    pub operations: Vec<OperationResult>,
    /// End of the last operation that counts, in nanoseconds from the start.
    pub last_end: u64,
    /// Late operations by cause, and the driver's pauses.
    pub driver: DriverReport,
    /// How long the threads of spoilt operations waited for a processor, in nanoseconds.
    waited: u64,
    /// How late connections woke that waited for an intended start.
    lateness: Durations,
    /// Histograms of the current second.
    pub intervals: Vec<IntervalHistograms>,
    /// Histograms of the current second's warm-up part.
    pub warming: Vec<IntervalHistograms>,
    second: Second,
    /// The second's operations, in the order of the plan.
    operations_here: Vec<OperationSecond>,
}

impl Recorder {
    pub(crate) fn new(names: &[String], warm_up: Duration) -> Self {
        let operation = |name: &String| OperationResult { name: name.clone(), ..OperationResult::default() };
        Self {
            names: names.to_vec(),
            warm_up: warm_up.as_nanos() as u64,
            totals: vec![IntervalHistograms::default(); names.len()],
            operations: names.iter().map(operation).collect(),
            last_end: 0,
            driver: DriverReport::default(),
            waited: 0,
            lateness: Durations::default(),
            intervals: vec![IntervalHistograms::default(); names.len()],
            warming: vec![IntervalHistograms::default(); names.len()],
            second: Second::default(),
            operations_here: vec![OperationSecond::default(); names.len()],
        }
    }

    /// Counts an operation that has ended.
    pub(crate) fn count(&mut self, sample: &Sample) {
        let counts = sample.intended >= self.warm_up;
        let cause = (sample.wait() > LATE).then(|| sample.delay.cause());
        let here = &mut self.operations_here[sample.operation];
        let histograms = if counts { &mut self.intervals } else { &mut self.warming };
        let interval = &mut histograms[sample.operation];
        here.retries += u64::from(sample.attempts - 1);
        self.second.late += u64::from(cause.is_some());
        self.second.late_by_driver += u64::from(cause == Some(Cause::Driver));
        self.second.late_by_pool += u64::from(cause == Some(Cause::Pool));
        // Latency only counts successful operations: an immediate refusal does not make a server faster.
        match &sample.outcome {
            Outcome::Ok(rows) => {
                here.ok += 1;
                here.rows += rows;
                interval.latency.record(sample.latency());
                interval.service.record(Duration::from_nanos(sample.ended.saturating_sub(sample.started)));
            }
            Outcome::Failed(failure) => {
                *here.errors.entry(failure.kind.clone()).or_default() += 1;
                // Operations that were never sent took no time.
                if ![UNSTARTED, NO_ROW].contains(&failure.kind.as_str()) {
                    interval.failures.record(sample.latency());
                }
            }
        }
        if counts {
            self.count_driver(sample, cause);
            self.count_result(sample, cause.is_some());
        }
    }

    /// Counts what the driver did to an operation, which was late for a `cause`.
    fn count_driver(&mut self, sample: &Sample, cause: Option<Cause>) {
        if sample.was_free {
            self.lateness.record(Duration::from_nanos(sample.wait()));
        }
        match cause {
            Some(Cause::Driver) => self.driver.late_by_driver += 1,
            Some(Cause::Pool) => self.driver.late_by_pool += 1,
            Some(Cause::Server) => self.driver.late_by_server += 1,
            None => {}
        }
        if is_spoilt(sample.delay.driver + sample.paused.max(sample.waited), sample.latency()) {
            self.driver.spoilt += 1;
            self.waited += sample.waited;
        }
    }

    fn count_result(&mut self, sample: &Sample, is_late: bool) {
        self.last_end = self.last_end.max(sample.ended);
        let result = &mut self.operations[sample.operation];
        result.intended += 1;
        result.late += u64::from(is_late);
        result.retries += u64::from(sample.attempts - 1);
        match &sample.outcome {
            Outcome::Ok(rows) => {
                result.ok += 1;
                result.rows += rows;
                result.retried += u64::from(sample.attempts > 1);
            }
            Outcome::Failed(failure) => {
                *result.errors.entry(failure.kind.clone()).or_default() += 1;
                result.messages.entry(failure.kind.clone()).or_insert_with(|| failure.message.clone());
            }
        }
    }

    /// Ends a second: what happened in it. Its exact histograms are in `intervals` until the next call of
    /// [`begin_second`](Self::begin_second).
    pub(crate) fn end_second(&mut self, at: f64, length: f64, intended: f64, in_flight: u64) -> Second {
        self.fold();
        let mut second = std::mem::take(&mut self.second);
        let here =
            std::mem::replace(&mut self.operations_here, vec![OperationSecond::default(); self.names.len()]);
        let happened = self.names.iter().cloned().zip(here);
        second.operations = happened.filter(|(_, one)| one.ok > 0 || !one.errors.is_empty()).collect();
        let done: u64 = second.operations.values().map(|operation| operation.ok).sum();
        (second.at, second.length, second.in_flight) = (at, length, in_flight);
        second.warm_up = at <= self.warm_up as f64 / 1e9 + 1e-3;
        second.achieved = done as f64 / length;
        second.intended = intended;
        for (name, interval) in self.names.iter().zip(&self.intervals) {
            let Some(OperationSecond { latency, service, heat, .. }) = second.operations.get_mut(name) else {
                continue;
            };
            *latency = (&interval.latency).into();
            *service = (&interval.service).into();
            *heat = interval.latency.coarse();
        }
        second
    }

    /// Adds the second's histograms to the totals, and then the warm-up part to the second's histograms.
    fn fold(&mut self) {
        let totals = self.totals.iter_mut().zip(&mut self.intervals).zip(&self.warming);
        for ((total, interval), warming) in totals {
            total.add(interval);
            interval.add(warming);
        }
    }

    pub(crate) fn begin_second(&mut self) {
        self.intervals.iter_mut().chain(&mut self.warming).for_each(IntervalHistograms::clear);
    }

    /// The effect of the driver, which has so many connections, on the operations.
    pub(crate) fn driver(&self, connections: u64) -> DriverReport {
        let waited = self.waited as f64 / 1e9 / connections.max(1) as f64;
        DriverReport { lateness: self.lateness.clone().into(), waited, ..self.driver.clone() }
    }

    /// The results of all operations, with their histograms, over this many seconds.
    pub(crate) fn results(&mut self, seconds: f64) -> (OperationResult, Vec<OperationResult>) {
        // A run may end before its first second does.
        self.fold();
        let result = |(operation, total): (&OperationResult, &IntervalHistograms)| OperationResult {
            rate: operation.ok as f64 / seconds.max(1e-9),
            latency: total.latency.clone().into(),
            service: total.service.clone().into(),
            failures: total.failures.clone().into(),
            ..operation.clone()
        };
        let each: Vec<OperationResult> = self.operations.iter().zip(&self.totals).map(result).collect();
        let all = OperationResult { name: "all".to_owned(), ..OperationResult::sum(each.iter()) };
        (all, each)
    }
}

/// The number of operations under way.
pub(crate) fn under_way(all: &[Samples]) -> u64 {
    all.iter().map(|samples| samples.in_flight.load(Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_warm_up_is_in_the_totals() {
        let mut recorder = Recorder::new(&["insert".to_owned()], Duration::from_secs(1));
        for intended in [900_000_000, 1_100_000_000] {
            recorder.count(&Sample {
                operation: 0,
                intended,
                started: intended + 5 * LATE,
                ended: intended + 6 * LATE,
                attempts: 2,
                outcome: Outcome::Ok(3),
                was_free: true,
                delay: Delay { driver: 5 * LATE, ..Delay::default() },
                paused: 0,
                waited: LATE,
            });
        }
        let second = recorder.end_second(1.5, 1.5, 0.0, 0);
        assert_eq!((second.late, second.operations["insert"].ok), (2, 2));
        let count = |all: &[IntervalHistograms]| all[0].latency.count();
        assert_eq!(
            (count(&recorder.intervals), count(&recorder.warming), count(&recorder.totals)),
            (2, 1, 1)
        );
        recorder.begin_second();
        assert_eq!((count(&recorder.intervals), count(&recorder.warming)), (0, 0));
        assert_eq!((recorder.driver.late_by_driver, recorder.driver.spoilt), (1, 1));
        assert_eq!(recorder.last_end, 1_100_000_000 + 6 * LATE);
        let (total, _) = recorder.results(1.0);
        assert_eq!((total.intended, total.ok, total.rows, total.retries, total.late), (1, 1, 3, 1, 1));
        assert_eq!(total.latency.percentiles.count, 1);
        let driver = recorder.driver(2);
        assert_eq!((driver.lateness.percentiles.count, driver.waited), (1, 0.0005));
    }
}
