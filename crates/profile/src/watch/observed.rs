//! Takes one sample: the system's figures for this process, its threads and other processes, as sums since
//! the first sample.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::trace::system::process;
use crate::trace::wire::WireCounters;
#[cfg(target_os = "linux")]
use crate::watch::process_tree::{ProcessTree, TreeUse};
use crate::watch::timeline::{Sample, Timeline, Usage};

#[cfg(target_os = "linux")]
use threads::ThreadTimes;

/// How often the figures of one sample are read at most.
const MAX_READINGS: usize = 4;
/// A reading that takes no longer is taken as of one moment.
const QUICK: Duration = Duration::from_millis(1);

/// Everything that is sampled, with its state at the first sample.
#[derive(Debug)]
pub(crate) struct Observed {
    started: Instant,
    wire: Option<WireCounters>,
    rows: Option<Arc<AtomicU64>>,
    cpu_before: f64,
    #[cfg(target_os = "linux")]
    storage_before: Option<(u64, u64)>,
    #[cfg(target_os = "linux")]
    threads: ThreadTimes,
    #[cfg(target_os = "linux")]
    trees: Vec<(ProcessTree, Option<TreeUse>)>,
}

impl Observed {
    pub(crate) fn new(
        started: Instant,
        wire: Option<WireCounters>,
        rows: Option<Arc<AtomicU64>>,
        targets: &[(String, u32)],
    ) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = targets;
        Self {
            started,
            wire,
            rows,
            cpu_before: process::cpu_time().as_secs_f64(),
            #[cfg(target_os = "linux")]
            storage_before: crate::watch::proc_files::storage_bytes("/proc/self/io"),
            #[cfg(target_os = "linux")]
            threads: ThreadTimes::default(),
            #[cfg(target_os = "linux")]
            trees: targets.iter().map(|(_, pid)| (ProcessTree::new(*pid), None)).collect(),
        }
    }

    /// Adds a sample to the timeline. If this thread did not run for a while between the clock and the last figure,
    /// the rates would be wrong: then the figures are read again.
    pub(crate) fn sample(&mut self, timeline: &mut Timeline) {
        let mut best: Option<(Duration, Sample)> = None;
        for _ in 0..MAX_READINGS {
            let sample = self.read(timeline);
            let took = self.started.elapsed().saturating_sub(sample.at);
            if best.as_ref().is_none_or(|(shortest, _)| took < *shortest) {
                best = Some((took, sample));
            }
            if took <= QUICK {
                break;
            }
        }
        timeline.samples.extend(best.map(|(_, sample)| sample));
    }

    /// Reads all figures.
    fn read(&mut self, timeline: &mut Timeline) -> Sample {
        let mut sample = Sample {
            at: self.started.elapsed(),
            own: Usage {
                cpu: (process::cpu_time().as_secs_f64() - self.cpu_before).max(0.0),
                resident: resident(),
                processes: 1,
                ..Usage::default()
            },
            rows: self.rows.as_ref().map_or(0, |rows| rows.load(Relaxed)),
            wire_sent: self.wire.as_ref().map_or(0, WireCounters::sent),
            wire_received: self.wire.as_ref().map_or(0, WireCounters::received),
            ..Sample::default()
        };
        self.sample_proc(&mut sample, timeline);
        sample
    }

    #[cfg(not(target_os = "linux"))]
    fn sample_proc(&mut self, _: &mut Sample, _: &mut Timeline) {}

    #[cfg(target_os = "linux")]
    fn sample_proc(&mut self, sample: &mut Sample, timeline: &mut Timeline) {
        let storage = crate::watch::proc_files::storage_bytes("/proc/self/io");
        if let (Some(now), Some(before)) = (storage, self.storage_before) {
            sample.own.read = Some(now.0.saturating_sub(before.0));
            sample.own.written = Some(now.1.saturating_sub(before.1));
        }
        sample.threads = self.threads.sample(&mut timeline.threads);
        sample.watched = self
            .trees
            .iter_mut()
            .map(|(tree, before)| {
                let now = tree.usage()?;
                let before = before.get_or_insert(now);
                let since = |pick: fn((u64, u64)) -> u64| {
                    Some(pick(now.storage?).saturating_sub(pick(before.storage?)))
                };
                Some(Usage {
                    cpu: now.cpu.saturating_sub(before.cpu).as_secs_f64(),
                    resident: Some(now.resident),
                    read: since(|(read, _)| read),
                    written: since(|(_, written)| written),
                    processes: now.processes,
                })
            })
            .collect();
    }
}

/// What this system does not report, one sentence each.
pub(crate) fn missing_here() -> Vec<String> {
    #[cfg(target_os = "linux")]
    return match crate::watch::proc_files::storage_bytes("/proc/self/io") {
        Some(_) => Vec::new(),
        None => vec!["storage bytes: this kernel does not count them".to_owned()],
    };
    #[cfg(not(target_os = "linux"))]
    return missing_elsewhere();
}

#[cfg(not(target_os = "linux"))]
fn missing_elsewhere() -> Vec<String> {
    let mut missing = vec![
        "CPU time of individual threads: sampled on Linux only".to_owned(),
        "storage bytes: sampled on Linux only".to_owned(),
        "other processes: sampled on Linux only".to_owned(),
    ];
    if !cfg!(target_os = "macos") {
        missing.push("resident memory: sampled on Linux and macOS only".to_owned());
    }
    missing
}

#[cfg(target_os = "linux")]
fn resident() -> Option<u64> {
    crate::watch::proc_files::resident_and_shared("/proc/self/statm").map(|(resident, _)| resident)
}

#[cfg(target_os = "macos")]
fn resident() -> Option<u64> {
    let size = size_of::<libc::proc_taskinfo>() as libc::c_int;
    // SAFETY: an all-zero proc_taskinfo is a valid value, and proc_pidinfo writes at most `size` bytes
    // through the valid pointer.
    unsafe {
        let mut info: libc::proc_taskinfo = std::mem::zeroed();
        let pointer = (&raw mut info).cast();
        let pid = std::process::id() as libc::c_int;
        (libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, pointer, size) == size)
            .then_some(info.pti_resident_size)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn resident() -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
mod threads {
    use std::collections::BTreeMap;

    use crate::watch::proc_files::{self, Stat, numbered};

    /// The most thread names to distinguish; further threads form one series.
    const MAX_NAMES: usize = 64;
    const OTHERS: &str = "other threads";

    /// CPU time of our threads by name, including ended threads.
    #[derive(Debug, Default)]
    pub(crate) struct ThreadTimes {
        /// CPU seconds of each thread when first and last seen, with its series.
        live: BTreeMap<u32, Thread>,
        /// CPU seconds of ended threads, by series.
        ended: Vec<f64>,
        sampled_before: bool,
    }

    #[derive(Debug)]
    struct Thread {
        series: usize,
        before: f64,
        now: f64,
        seen: bool,
    }

    impl ThreadTimes {
        pub(crate) fn sample(&mut self, names: &mut Vec<String>) -> Vec<f64> {
            for thread in self.live.values_mut() {
                thread.seen = false;
            }
            for id in numbered("/proc/self/task") {
                let Some((name, cpu)) = read(id) else { continue };
                let series = series_of(&name, names);
                // A thread that exists at the first sample has used CPU time before; a later one has not.
                let before = if self.sampled_before { 0.0 } else { cpu };
                let thread = self.live.entry(id).or_insert(Thread { series, before, now: cpu, seen: true });
                if thread.series != series {
                    // The thread was renamed: its time so far stays with the old name.
                    add(&mut self.ended, thread.series, thread.now - thread.before);
                    (thread.series, thread.before) = (series, thread.now);
                }
                thread.now = cpu.max(thread.now);
                thread.seen = true;
            }
            self.sampled_before = true;
            let ended = &mut self.ended;
            self.live.retain(|_, thread| {
                if !thread.seen {
                    add(ended, thread.series, thread.now - thread.before);
                }
                thread.seen
            });
            let mut sums = self.ended.clone();
            sums.resize(names.len().max(sums.len()), 0.0);
            for thread in self.live.values() {
                add(&mut sums, thread.series, thread.now - thread.before);
            }
            sums
        }
    }

    fn read(id: u32) -> Option<(String, f64)> {
        let stat = Stat::read(&format!("/proc/self/task/{id}/stat"))?;
        let cpu = proc_files::run_time(&format!("/proc/self/task/{id}/schedstat"));
        Some((stat.name, cpu.unwrap_or(stat.own_cpu).as_secs_f64()))
    }

    fn series_of(name: &str, names: &mut Vec<String>) -> usize {
        let place = |names: &[String], name: &str| names.iter().position(|have| have == name);
        if let Some(series) = place(names, name) {
            return series;
        }
        let name = if names.len() < MAX_NAMES { name } else { OTHERS };
        place(names, name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    }

    fn add(sums: &mut Vec<f64>, series: usize, seconds: f64) {
        if sums.len() <= series {
            sums.resize(series + 1, 0.0);
        }
        if let Some(sum) = sums.get_mut(series) {
            *sum += seconds;
        }
    }
}
