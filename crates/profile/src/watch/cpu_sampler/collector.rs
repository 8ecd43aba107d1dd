//! The thread that sets up a timer for every thread and takes the stacks out of their slots.

mod interrupted;
mod sampled_stacks;
mod slots;
mod thread_timers;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::watch::background::Background;

use interrupted::SLOTS;
pub use sampled_stacks::SampledStacks;
use slots::Sampled;
use thread_timers::ThreadTimers;

/// Samples per second of a thread's CPU time; a prime, so that it does not synchronise with loops.
const FREQUENCY: u32 = 199;
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / FREQUENCY as u64);

/// How often to look for new threads and collect stacks. A thread that ends sooner is missed.
const EVERY: Duration = Duration::from_millis(5);
/// The most addresses to keep, 16 MiB of them; of later stacks only the thread is recorded.
const MAX_FRAMES: usize = 2 << 20;

/// The collecting thread.
#[derive(Debug)]
pub(super) struct Collector(Background<SampledStacks>);

impl Collector {
    pub(super) fn start() -> io::Result<Self> {
        let (send, receive) = bounded(1);
        let thread = Background::start("CPU sampler", move |stopped| {
            // SAFETY: gettid has no preconditions.
            let mut timers = ThreadTimers::new(PERIOD, unsafe { libc::gettid() } as u32);
            let mut collected = Collected::default();
            let begun = interrupted::install().and_then(|()| timers.refresh());
            let begun = begun.map(|threads| collected.name(&threads));
            let failed = begun.is_err();
            // The starting thread waits for this.
            let _ = send.send(begun);
            if failed { SampledStacks::default() } else { collect(timers, collected, stopped) }
        })?;
        let begun = receive.recv();
        begun.unwrap_or_else(|_| Err(io::Error::other("the collecting thread has ended")))?;
        Ok(Self(thread))
    }

    pub(super) fn stop(mut self) -> Option<SampledStacks> {
        self.0.stop()
    }
}

fn collect(mut timers: ThreadTimers, mut collected: Collected, stopped: &Receiver<()>) -> SampledStacks {
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        SLOTS.drain(|sampled| collected.add(sampled));
        // If a new thread gets no timer, sample the others anyway.
        if let Ok(threads) = timers.refresh() {
            collected.name(&threads);
        }
    }
    drop(timers);
    interrupted::end();
    SLOTS.drain(|sampled| collected.add(sampled));
    SampledStacks { stacks: collected.stacks, lost: SLOTS.lost() }
}

/// Stacks by thread and addresses, with the number of periods in which each was seen.
#[derive(Default)]
struct Collected {
    names: BTreeMap<u32, String>,
    stacks: HashMap<(String, Vec<usize>), u64>,
    frames: usize,
}

impl Collected {
    /// Reads the names of threads while they exist.
    fn name(&mut self, threads: &[u32]) {
        for thread in threads {
            if let Ok(name) = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")) {
                self.names.insert(*thread, name.trim_end().to_owned());
            }
        }
    }

    fn add(&mut self, sampled: Sampled) {
        // A pool's thread may have been named after it started.
        self.name(&[sampled.thread]);
        let name = self.names.get(&sampled.thread).cloned().unwrap_or_default();
        let mut key = (name, sampled.frames);
        if self.frames >= MAX_FRAMES && !self.stacks.contains_key(&key) {
            key.1.clear();
        }
        let frames = key.1.len();
        let count = self.stacks.entry(key).or_insert_with(|| {
            self.frames += frames;
            0
        });
        *count += u64::from(sampled.weight);
    }
}
