//! Collects what connections leave, and ends seconds.

use std::sync::Mutex;
use std::time::Duration;

use crate::arrivals::shape::RateClock;
use crate::observer::{Observer, Snapshot};
use crate::plan::abort::Abort;
use crate::result::file::RunDescription;
use crate::result::second::{Second, ServerSample};
use crate::run::recorder::{Recorder, Sample, Samples, under_way};

/// A second may be this much shorter.
const TOLERANCE: f64 = 0.025;

pub(crate) struct Watching<'a> {
    description: &'a RunDescription,
    recorder: &'a mut Recorder,
    clock: Option<&'a RateClock>,
    pub observer: &'a mut dyn Observer,
    pub seconds: Vec<Second>,
    /// Memory for samples, which connections get in exchange for theirs.
    room: Vec<Sample>,
    /// The end of the last second.
    reached: f64,
    /// Conditions that end the run early.
    abort_when: &'a [Abort],
    /// The condition that has ended the run, and the measured value.
    pub aborted: Option<String>,
}

impl<'a> Watching<'a> {
    pub(crate) fn new(
        description: &'a RunDescription,
        recorder: &'a mut Recorder,
        clock: Option<&'a RateClock>,
        observer: &'a mut dyn Observer,
        abort_when: &'a [Abort],
    ) -> Self {
        let (seconds, room, reached, aborted) = (Vec::new(), Vec::new(), 0.0, None);
        Self { description, recorder, clock, observer, seconds, room, reached, abort_when, aborted }
    }

    /// Counts the samples left until `now`, and ends a second if it is time. Returns the number of samples.
    pub(crate) fn tick(
        &mut self,
        now: Duration,
        samples: &[Samples],
        latest: &Mutex<Option<ServerSample>>,
        backlog: &dyn Fn() -> u64,
        ended: bool,
    ) -> usize {
        let mut counted = 0;
        for source in samples {
            self.room.clear();
            source.take(&mut self.room);
            counted += self.room.len();
            self.room.iter().for_each(|sample| self.recorder.count(sample));
        }
        let at = now.as_secs_f64();
        let length = at - self.reached;
        if length < 1.0 - TOLERANCE && !(ended && length > 0.0) {
            return counted;
        }
        let intended = self.clock.map(|clock| clock.between(self.reached, at) / length);
        let mut second = self.recorder.end_second(at, length, 0.0, under_way(samples));
        second.intended = intended.unwrap_or(second.achieved);
        second.backlog = backlog();
        second.server = latest.lock().ok().and_then(|mut latest| latest.take());
        self.reached = at;
        let snapshot = Snapshot {
            run: self.description,
            second: &second,
            intervals: &self.recorder.intervals,
            warming: &self.recorder.warming,
            operations: &self.recorder.operations,
            totals: &self.recorder.totals,
            driver: &self.recorder.driver,
        };
        self.observer.second(&snapshot);
        self.recorder.begin_second();
        self.seconds.push(second);
        self.judge(at);
        counted
    }

    /// Whether what has happened until `at` ends the run.
    fn judge(&mut self, at: f64) {
        let counted = at - self.description.warm_up;
        if self.aborted.is_some() || self.abort_when.is_empty() || counted <= 0.0 {
            return;
        }
        let (total, operations) = self.recorder.results(counted);
        self.aborted = self.abort_when.iter().find_map(|abort| abort.because(counted, &total, &operations));
    }
}
