//! A loader's process and its planned faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

use super::World;
use super::fault::{Fault, Step};

/// One run of the command.
pub struct Process {
    pub world: Arc<World>,
    pub number: usize,
    pub cancel: AtomicBool,
    pub is_dead: AtomicBool,
    /// The server has answered it.
    pub has_reached: AtomicBool,
    pub steps: AtomicU64,
    /// Faults, and the steps from which on they happen as soon as they can.
    faults: Mutex<Vec<(u64, Fault)>>,
    /// The number of steps of a thousand at which a connection fails.
    pub rate: u64,
}

impl Process {
    pub fn new(world: &Arc<World>, faults: Vec<(u64, Fault)>, rate: u64) -> Arc<Self> {
        let number = world.state().server.audit.enter();
        Arc::new(Self {
            world: Arc::clone(world),
            number,
            cancel: AtomicBool::new(false),
            is_dead: AtomicBool::new(false),
            has_reached: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            faults: Mutex::new(faults),
            rate,
        })
    }

    /// The faults that happen at this step.
    pub fn due(&self, number: u64, step: Step) -> Vec<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |(at, fault): &mut (u64, Fault)| *at <= number && fault.happens_at(step);
        faults.extract_if(.., due).map(|(_, fault)| fault).collect()
    }
}
