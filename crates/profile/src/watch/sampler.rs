//! A thread that samples the run every 100 ms, in the first second every 20 ms: memory, CPU by thread, bytes
//! of storage and of our own connections, and the same for other process trees.
//!
//! The thread is named `sampler` and is included in its own figures: 0.2 % of one processor at 100 ms,
//! without other processes (`cargo run --release -p sawmill-profile --example sampler_cost`). Sampling ends
//! when [`Sampler`] is stopped or dropped. Memory is bounded: when the series is full, every second sample is
//! dropped and the interval doubles, so that runs of a second and of an hour both have between half and all
//! of [`SamplerOptions::most_samples`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::error::{Error, Result};
use crate::trace::phase::Profile;
use crate::trace::system::target::Target;
use crate::trace::wire::WireCounters;
use crate::watch::background::Background;
use crate::watch::observed::Observed;
use crate::watch::timeline::Timeline;

/// The start of a run is sampled at this fraction of the interval, for this many intervals, so that runs of
/// less than a second are covered too.
const START: (u32, u32) = (5, 10);
/// The shortest interval.
const MIN: Duration = Duration::from_millis(5);

impl Target {
    /// The process that the target currently refers to. If a server and its children share a socket, this is
    /// the server.
    ///
    /// # Errors
    /// No process listens there, or the process is not visible from here (another user, a container).
    pub fn pid(&self) -> Result<u32> {
        #[cfg(target_os = "linux")]
        return match self {
            Self::Pid(pid) => match crate::watch::proc_files::Stat::read(&format!("/proc/{pid}/stat")) {
                Some(_) => Ok(*pid),
                None => Err(Error::failed("the process does not exist", format!("pid {pid}"), "")),
            },
            Self::TcpPort(port) => crate::watch::listener::of_port(*port),
            Self::UnixSocket(path) => crate::watch::listener::of_unix_socket(path),
        };
        #[cfg(not(target_os = "linux"))]
        Err(Error::failed(
            "other processes are sampled on Linux only",
            format!("{self:?}"),
            "leave it out, or measure on Linux",
        ))
    }
}

/// What to sample, and how often.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    interval: Duration,
    most_samples: usize,
    started: Instant,
    wire: Option<WireCounters>,
    rows: Option<Arc<AtomicU64>>,
    targets: Vec<(String, u32)>,
    missing: Vec<String>,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            most_samples: 1200,
            started: Instant::now(),
            wire: None,
            rows: None,
            targets: Vec::new(),
            missing: Vec::new(),
        }
    }
}

impl SamplerOptions {
    /// Every 100 ms, at most 1200 samples, this process alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the interval, at least 5 ms; the first ten intervals use a fifth of it.
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval: interval.max(MIN), ..self }
    }

    /// Sets the maximum number of samples, at least 16.
    pub fn most_samples(self, most: usize) -> Self {
        Self { most_samples: most.max(16), ..self }
    }

    /// Sets the zero of the time axis; for a profile, use [`crate::Profile::started`].
    pub fn started(self, started: Instant) -> Self {
        Self { started, ..self }
    }

    /// Samples a profile's run on its time axis: its rows and the bytes of its connections.
    pub fn profile(self, profile: &Profile) -> Self {
        let rows = Some(Arc::clone(profile.rows()));
        Self { rows, ..self.started(profile.started()).wire(profile.wire()) }
    }

    /// Also samples the bytes of our own connections.
    pub fn wire(self, counters: &WireCounters) -> Self {
        Self { wire: Some(counters.clone()), ..self }
    }

    /// Also samples another process and its descendants, under a name. If the process is not found, the run
    /// continues and [`Timeline::missing`] gives the reason.
    pub fn watch(mut self, name: &str, target: &Target) -> Self {
        match target.pid() {
            Ok(pid) => self.targets.push((name.to_owned(), pid)),
            Err(error) => self.missing.push(format!("{name}: {error}")),
        }
        self
    }
}

/// Samples until stopped or dropped.
///
/// ```
/// use sawmill_profile::{Sampler, SamplerOptions};
/// let sampler = Sampler::start(SamplerOptions::new()).unwrap();
/// // ... the run ...
/// let timeline = sampler.stop();
/// assert!(timeline.samples.len() >= 2);
/// ```
#[derive(Debug)]
pub struct Sampler(Background<Timeline>);

impl Sampler {
    /// Starts the thread and takes the first sample.
    ///
    /// # Errors
    /// The system cannot start another thread.
    pub fn start(options: SamplerOptions) -> Result<Self> {
        let mut missing = options.missing;
        missing.extend(crate::watch::observed::missing_here());
        let mut timeline = Timeline {
            interval: options.interval,
            watched: options.targets.iter().map(|(name, _)| name.clone()).collect(),
            missing,
            ..Timeline::default()
        };
        let mut observed = Observed::new(options.started, options.wire, options.rows, &options.targets);
        observed.sample(&mut timeline);
        let most = options.most_samples;
        let work = move |stopped: &Receiver<()>| run(timeline, observed, most, stopped);
        Background::start("sampler", work).map(Self).map_err(|error| {
            let advice = "raise the thread limit (ulimit -u)";
            Error::failed(format!("the sampling thread cannot be started: {error}"), "", advice)
        })
    }

    /// Takes a last sample, ends the thread and returns the samples.
    pub fn stop(mut self) -> Timeline {
        self.0.stop().unwrap_or_default()
    }
}

fn run(mut timeline: Timeline, mut observed: Observed, most: usize, stopped: &Receiver<()>) -> Timeline {
    let mut next = Instant::now();
    let (fraction, intervals) = START;
    let (start, dense) = (next + timeline.interval * intervals, timeline.interval / fraction);
    let mut last = false;
    while !last {
        next += if next < start { dense.max(MIN) } else { timeline.interval };
        // Samples missed while the machine was suspended are not made up for.
        next = next.max(Instant::now());
        // Also sample what happened up to the stop.
        last = stopped.recv_deadline(next) != Err(RecvTimeoutError::Timeout);
        if timeline.samples.len() >= most {
            timeline.thin_out();
        }
        observed.sample(&mut timeline);
    }
    timeline.merge_close_end(MIN);
    timeline
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::system::thread_clock::thread_cpu_time;
    use crate::watch::process_tree::ProcessTree;
    use std::net::TcpListener;

    #[test]
    fn threads_memory_wire_and_a_server_are_sampled() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = WireCounters::new();
        let options = SamplerOptions::new()
            .interval(Duration::from_millis(10))
            .wire(&wire)
            .watch("server", &Target::TcpPort(port))
            .watch("gone", &Target::Pid(u32::MAX));
        let sampler = Sampler::start(options).unwrap();
        let busy = std::thread::Builder::new().name("busy bee".into()).spawn(|| {
            let until = thread_cpu_time() + 120_000_000;
            while thread_cpu_time() < until {
                std::hint::spin_loop();
            }
        });
        wire.add_sent(1234);
        busy.unwrap().join().unwrap();
        let timeline = sampler.stop();
        let last = timeline.samples.last().unwrap();
        assert_eq!((last.wire_sent, last.watched.len()), (1234, 1));
        assert!(timeline.peak_resident().unwrap() > 1_000_000);
        assert!(last.watched[0].unwrap().resident.unwrap() > 1_000_000);
        assert!(last.own.cpu > 0.1 && last.watched[0].unwrap().cpu > 0.05, "{last:?}");
        let bee = timeline.thread_totals().into_iter().find(|(name, _)| *name == "busy bee").unwrap();
        assert!(bee.1 > 0.02, "an ended thread keeps its CPU time: {bee:?}");
        assert!(timeline.missing[0].starts_with("gone: the process does not exist"));
        let text = serde_json::to_string(&timeline).unwrap();
        assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap().threads, timeline.threads);
    }

    /// The processors that a server used in its first quarter of a second, and when; and whether it was at work in the
    /// first tenth.
    fn watched_server() -> (Vec<(f64, f64)>, bool) {
        let mut server = std::process::Command::new("sh")
            .args(["-c", "read line; (while :; do :; done) & a=$!; read line; kill $a"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let options = SamplerOptions::new().watch("server", &Target::Pid(server.id()));
        let sampler = Sampler::start(options).unwrap();
        let began = Instant::now();
        std::io::Write::write_all(server.stdin.as_mut().unwrap(), b"begin\n").unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let early = ProcessTree::new(server.id()).usage().unwrap().cpu;
        let at_work = early > Duration::from_millis(20) && began.elapsed() < Duration::from_millis(130);
        std::thread::sleep(Duration::from_millis(150));
        let timeline = sampler.stop();
        drop(server.stdin.take());
        server.wait().unwrap();
        let used = timeline.rate(|sample| Some(sample.watched[0].as_ref()?.cpu));
        // A sample's time is read just before its CPU times; on a busy machine something may run between.
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        for sample in &timeline.samples {
            let cpu = sample.watched[0].as_ref().unwrap().cpu;
            assert!(cpu < processors * (sample.at.as_secs_f64() * 1.2 + 0.1), "{used:?}");
        }
        (used, at_work)
    }

    #[test]
    fn a_server_is_seen_in_the_first_tenth_of_a_second() {
        // On a busy machine the server, or the sampler, may have no processor that early.
        let mut missed = 0;
        for _ in 0..20 {
            let (used, at_work) = watched_server();
            if used.iter().any(|(at, used)| *at < 0.15 && *used > 0.1) {
                return;
            }
            missed += u32::from(at_work);
        }
        assert!(missed < 10, "it was at work and not seen {missed} times");
    }

    #[test]
    fn a_long_run_is_thinned_to_the_bound() {
        let is_thinned = |milliseconds| {
            let options = SamplerOptions::new().interval(Duration::from_millis(5)).most_samples(16);
            let sampler = Sampler::start(options).unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            let timeline = sampler.stop();
            assert!(timeline.samples.len() <= 17);
            timeline.interval > Duration::from_millis(5)
        };
        // On a busy machine samples are rare.
        assert!([250, 1_000, 4_000, 16_000].into_iter().any(is_thinned));
    }
}
