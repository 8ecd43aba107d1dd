//! A writer's process, its planned faults, and what becomes of its requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_store::simulated::object_store::{Error, Result};

use super::bucket::Bucket;
use super::fault::{Fault, Step};
use super::{State, World};

/// One run of the command.
pub struct Process {
    pub world: Arc<World>,
    pub number: usize,
    pub cancel: Arc<AtomicBool>,
    pub is_dead: AtomicBool,
    steps: AtomicU64,
    /// Faults, and the steps from which on they happen as soon as they can.
    faults: Mutex<Vec<(u64, Fault)>>,
    /// The number of requests of a thousand that fail.
    rate: u64,
}

/// The error of a client that has sent a request as often as it may.
fn failed(step: Step, why: &str) -> Error {
    Error::Generic { store: "S3", source: format!("Error performing {step:?}: {why}").into() }
}

impl Process {
    pub fn new(world: &Arc<World>, faults: Vec<(u64, Fault)>, rate: u64) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            number: world.enter(),
            cancel: Arc::default(),
            is_dead: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            faults: Mutex::new(faults),
            rate,
        })
    }

    /// The faults that happen at this step.
    fn due(&self, state: &mut State, step: Step) -> Vec<Fault> {
        let number = self.steps.fetch_add(1, SeqCst);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |(at, fault): &mut (u64, Fault)| *at <= number && fault.happens_at(step);
        let mut due: Vec<Fault> = faults.extract_if(.., due).map(|(_, fault)| fault).collect();
        if state.draw.below(1_000) < self.rate {
            due.push(state.draw.of(&[Fault::CutBefore, Fault::CutAfter, Fault::Throttled]));
        }
        due
    }

    /// Sends a request when it is this process's turn. `effect` is what the store does.
    pub fn request<T>(
        &self,
        step: Step,
        key: String,
        effect: impl Fn(&mut Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // Code that runs on after the kill reaches nothing.
        if self.is_dead.load(SeqCst) {
            return Err(failed(step, "killed"));
        }
        let mut state = self.world.turn(self.number);
        state.bucket.clock += 1;
        state.bucket.catch_up(false);
        let faults = self.due(&mut state, step);
        state.tell(|| {
            let happens = if faults.is_empty() { String::new() } else { format!("  <== {faults:?}") };
            format!("writer {} {step:?} {key}{happens}", self.number)
        });
        let mut fate = None;
        for fault in faults {
            state.coverage.count(fault, step);
            match fault {
                Fault::Killed => {
                    self.is_dead.store(true, SeqCst);
                    fate = Some(state.draw.of(&[Fault::CutBefore, Fault::CutAfter]));
                }
                Fault::Cancelled => self.cancel.store(true, SeqCst),
                fault => fate = fate.or(Some(fault)),
            }
        }
        let bucket = &mut state.bucket;
        let answer = match fate {
            None => effect(bucket),
            Some(Fault::CutAfter) => {
                drop(effect(bucket));
                Err(failed(step, "connection reset"))
            }
            Some(Fault::Doubled) => effect(bucket).and_then(|_| effect(bucket)),
            Some(Fault::Throttled) => Err(failed(step, "status code: 503 SlowDown")),
            Some(Fault::Late) => {
                let after = state.draw.between(1, 12);
                state.bucket.arrive_after(after, Box::new(move |bucket| drop(effect(bucket))));
                Err(failed(step, "timeout"))
            }
            Some(_) => Err(failed(step, "connection reset")),
        };
        state.look(self.number);
        answer
    }
}
