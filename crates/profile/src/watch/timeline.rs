//! A sampler's observations of a run: a bounded series of samples, and figures derived from it.
//!
//! Samples hold sums since the start, not rates. So samples can be dropped, and the rate over any two of them
//! is still correct.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::trace::seconds;

/// Samples of this process and others, in time order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The current interval between samples, except for the closer ones at the start of the run; it doubles
    /// when the series is thinned.
    #[serde(with = "seconds")]
    pub interval: Duration,
    /// The samples.
    pub samples: Vec<Sample>,
    /// Names of our threads; several threads with one name form one series.
    pub threads: Vec<String>,
    /// Names of the other process trees.
    pub watched: Vec<String>,
    /// What could not be sampled, one sentence each.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// One moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The time since the start of the run.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// This process.
    pub own: Usage,
    /// CPU seconds of our threads since sampling started, in the order of [`Timeline::threads`]; shorter if
    /// threads were added later.
    #[serde(default)]
    pub threads: Vec<f64>,
    /// Rows counted by the run's phases.
    #[serde(default)]
    pub rows: u64,
    /// Bytes sent on our own connections since counting started.
    pub wire_sent: u64,
    /// Bytes received on our own connections.
    pub wire_received: u64,
    /// The other process trees, in the order of [`Timeline::watched`]; `None` once gone.
    #[serde(default)]
    pub watched: Vec<Option<Usage>>,
}

/// The resource usage of a process or process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU seconds since sampling started, user plus system.
    pub cpu: f64,
    /// Resident memory in bytes; the maximum if samples were thinned.
    pub resident: Option<u64>,
    /// Bytes read from storage since sampling started.
    pub read: Option<u64>,
    /// Bytes written to storage since sampling started.
    pub written: Option<u64>,
    /// Processes in the tree.
    pub processes: u32,
}

/// The maxima of the sampled values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Maxima {
    /// Resident memory of this process in bytes.
    pub memory: Option<u64>,
    /// Processors in use by this process, over half a second.
    pub processors: f64,
    /// Rows per second, over half a second.
    pub rows_per_second: f64,
    /// Bytes sent per second on our own connections, over half a second.
    pub sent_per_second: f64,
}

/// The window for maxima of rates: over shorter times they would be random.
const WINDOW: Duration = Duration::from_millis(500);

/// Points of a series: seconds since the start of the run, and a value.
pub type Points = Vec<(f64, f64)>;

impl Timeline {
    /// The largest sampled resident memory of this process, in bytes.
    pub fn peak_resident(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| sample.own.resident).max()
    }

    /// The change of a sum per second, between consecutive samples. For CPU seconds this is the number of
    /// processors in use.
    ///
    /// ```
    /// # let timeline = sawmill_profile::Timeline::default();
    /// let processors = timeline.rate(|sample| Some(sample.own.cpu));
    /// let sent_per_second = timeline.rate(|sample| Some(sample.wire_sent as f64));
    /// # assert!(processors.is_empty() && sent_per_second.is_empty());
    /// ```
    pub fn rate(&self, sum: impl Fn(&Sample) -> Option<f64>) -> Points {
        let pairs = self.samples.windows(2).filter_map(|pair| match pair {
            [before, after] => {
                let time = after.at.saturating_sub(before.at).as_secs_f64();
                let change = sum(after)? - sum(before)?;
                (time > 0.0).then(|| (after.at.as_secs_f64(), change / time))
            }
            _ => None,
        });
        pairs.collect()
    }

    /// The maxima of the sampled values. Rates are over half a second, or over the whole run if it is
    /// shorter.
    pub fn maxima(&self) -> Maxima {
        let most = |sum: &dyn Fn(&Sample) -> f64| {
            let mut begin = 0;
            let mut most = 0.0f64;
            for (place, end) in self.samples.iter().enumerate() {
                // The window begins at the last sample at least half a second earlier.
                let before = |at: usize| {
                    let start = self.samples.get(at).filter(|_| at <= place)?;
                    (end.at.saturating_sub(start.at) >= WINDOW).then_some(start)
                };
                while before(begin + 1).is_some() {
                    begin += 1;
                }
                let whole = place + 1 == self.samples.len() && most == 0.0;
                let start = before(begin).or_else(|| self.samples.first().filter(|_| whole));
                if let Some(start) = start {
                    let time = end.at.saturating_sub(start.at).as_secs_f64();
                    if time > 0.0 {
                        most = most.max((sum(end) - sum(start)) / time);
                    }
                }
            }
            most
        };
        Maxima {
            memory: self.peak_resident(),
            processors: most(&|sample| sample.own.cpu),
            rows_per_second: most(&|sample| sample.rows as f64),
            sent_per_second: most(&|sample| sample.wire_sent as f64),
        }
    }

    /// Processors in use by the threads with one name, over time.
    pub fn thread_share(&self, thread: usize) -> Points {
        self.rate(|sample| Some(sample.threads.get(thread).copied().unwrap_or(0.0)))
    }

    /// CPU seconds of all threads by name, busiest first.
    pub fn thread_totals(&self) -> Vec<(&str, f64)> {
        let last = self.samples.last().map_or(&[][..], |sample| &sample.threads);
        let mut totals: Vec<(&str, f64)> =
            self.threads.iter().map(String::as_str).zip(last.iter().copied()).collect();
        totals.sort_by(|a, b| b.1.total_cmp(&a.1));
        totals
    }

    /// Drops every second sample except the last, but keeps their peaks.
    pub(crate) fn thin_out(&mut self) {
        let mut kept: Vec<Sample> = Vec::with_capacity(self.samples.len() / 2 + 1);
        let mut pending: Option<Sample> = None;
        for mut sample in self.samples.drain(..) {
            match pending.take() {
                None => pending = Some(sample),
                Some(before) => {
                    sample.keep_peaks(&before);
                    kept.push(sample);
                }
            }
        }
        kept.extend(pending);
        self.samples = kept;
        self.interval *= 2;
    }

    /// Merges the last sample with the one before it if they are closer than `closest`.
    ///
    /// The last sample is taken at the stop, whenever that is. CPU times lag behind the clock by some
    /// milliseconds, so a rate over less time may exceed the machine's processors many times.
    pub(crate) fn merge_close_end(&mut self, closest: Duration) {
        let [_, .., before, last] = &mut self.samples[..] else { return };
        if last.at.saturating_sub(before.at) < closest {
            last.keep_peaks(before);
            let place = self.samples.len() - 2;
            self.samples.remove(place);
        }
    }
}

impl Sample {
    /// Takes over the peaks of an earlier sample that is dropped.
    fn keep_peaks(&mut self, before: &Self) {
        self.own.resident = self.own.resident.max(before.own.resident);
        for (now, then) in self.watched.iter_mut().zip(&before.watched) {
            if let (Some(now), Some(then)) = (now, then) {
                now.resident = now.resident.max(then.resident);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tenths: u64, resident: u64) -> Sample {
        let own = Usage { cpu: tenths as f64 / 20.0, resident: Some(resident), ..Usage::default() };
        Sample { at: Duration::from_millis(tenths * 100), own, ..Sample::default() }
    }

    #[test]
    fn maxima_cover_half_a_second_or_a_shorter_run() {
        let rows = [0, 0, 10, 10, 1000, 1000, 1000, 1000, 1000, 1010, 1020];
        let with_rows = |count: usize| Timeline {
            samples: (0..count).map(|n| Sample { rows: rows[n], ..sample(n as u64, 7) }).collect(),
            ..Timeline::default()
        };
        let maxima = with_rows(11).maxima();
        assert_eq!((maxima.memory, maxima.rows_per_second), (Some(7), 2000.0));
        assert!((maxima.processors - 0.5).abs() < 1e-9, "{maxima:?}");
        assert!((with_rows(3).maxima().rows_per_second - 50.0).abs() < 1e-9);
        assert_eq!(Timeline::default().maxima(), Maxima::default());
    }

    #[test]
    fn thinning_keeps_the_peak_the_last_sample_and_the_rates() {
        let mut timeline = Timeline {
            interval: Duration::from_millis(100),
            samples: (0..9).map(|n| sample(n, if n == 4 { 99 } else { 5 })).collect(),
            ..Timeline::default()
        };
        timeline.thin_out();
        assert_eq!(timeline.samples.len(), 5);
        assert_eq!(timeline.peak_resident(), Some(99));
        assert_eq!(timeline.samples.last().unwrap().at, Duration::from_millis(800));
        assert_eq!(timeline.interval, Duration::from_millis(200));
        let processors = timeline.rate(|sample| Some(sample.own.cpu));
        assert!(processors.iter().all(|(_, rate)| (rate - 0.5).abs() < 1e-9), "{processors:?}");
    }

    #[test]
    fn a_sample_just_before_the_stop_is_merged_into_the_last_one() {
        let last = Sample { at: Duration::from_micros(200_160), ..sample(2, 5) };
        let samples = vec![sample(0, 5), sample(1, 5), sample(2, 99), last];
        let mut timeline = Timeline { samples, ..Timeline::default() };
        timeline.merge_close_end(Duration::from_millis(5));
        assert_eq!((timeline.samples.len(), timeline.peak_resident()), (3, Some(99)));
        timeline.merge_close_end(Duration::from_millis(5));
        assert_eq!(timeline.samples.len(), 3);
    }
}
