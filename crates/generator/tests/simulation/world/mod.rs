//! A world of one seed: a bucket, writers, and faults.

pub mod audit;
pub mod bucket;
pub mod client;
#[path = "../../../../loader/tests/simulation/shared/coverage.rs"]
pub mod coverage;
#[path = "../../../../loader/tests/simulation/shared/draw.rs"]
pub mod draw;
pub mod fault;
pub mod mistake;
#[path = "../../../../loader/tests/simulation/shared/outcome.rs"]
pub mod outcome;
pub mod process;
pub mod run;
pub mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use audit::Audit;
use bucket::{Bucket, Objects};
use coverage::Coverage;
use draw::Draw;
use mistake::Mistake;

/// The simulation's name on the command line.
pub const PROTOCOL: &str = "store";
/// Seeds that the tests run.
pub const SEEDS: u64 = 1_000;

/// The bucket and its writers. Each writer has threads of the system, and one of them runs at a time.
pub struct World {
    state: Mutex<State>,
    turn: Condvar,
}

pub struct State {
    pub bucket: Bucket,
    pub audit: Audit,
    pub draw: Draw,
    pub coverage: Coverage,
    /// Who did what, and when; `None` if it is not recorded.
    pub history: Option<Vec<String>>,
    /// The objects after the last request of each writer.
    pub seen: BTreeMap<usize, Objects>,
    writers: usize,
    running: BTreeSet<usize>,
    waiting: BTreeSet<usize>,
    next: Option<usize>,
}

impl World {
    pub fn new(draw: Draw, lag: u64, mistake: Option<Mistake>, trace: bool) -> Arc<Self> {
        let state = State {
            bucket: Bucket::new(lag, mistake),
            audit: Audit::default(),
            draw,
            coverage: Coverage::default(),
            history: trace.then(Vec::new),
            seen: BTreeMap::new(),
            writers: 0,
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            next: None,
        };
        Arc::new(Self { state: Mutex::new(state), turn: Condvar::new() })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another writer starts; returns its number.
    pub fn enter(&self) -> usize {
        let mut state = self.state();
        state.writers += 1;
        let number = state.writers;
        state.running.insert(number);
        number
    }

    /// A writer has ended.
    pub fn leave(&self, number: usize) {
        let mut state = self.state();
        state.running.remove(&number);
        // A request that panicked waits no more.
        state.waiting.remove(&number);
        self.turn.notify_all();
    }

    /// Waits for the turn of a writer. When all wait, the seed chooses.
    pub fn turn(&self, number: usize) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.waiting.insert(number);
        loop {
            let State { draw, running, waiting, next, .. } = &mut *state;
            if next.is_none() && waiting == running {
                let all: Vec<usize> = waiting.iter().copied().collect();
                *next = Some(draw.of(&all));
                self.turn.notify_all();
            }
            if *next == Some(number) {
                *next = None;
                waiting.remove(&number);
                return state;
            }
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    /// Records what happened.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(format!("{:>5} {}", self.bucket.clock, what()));
        }
    }

    /// Looks at what a request has changed.
    pub fn look(&mut self, writer: usize) {
        for key in std::mem::take(&mut self.bucket.appeared) {
            if let Some(object) = self.bucket.objects.get(&key) {
                self.audit.appears(&key, object);
            }
        }
        self.seen.insert(writer, self.bucket.objects.clone());
    }
}
