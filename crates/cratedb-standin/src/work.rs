//! CPU time that rows are made to cost, for measurements against a server that is as slow as the real one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Turns of a loop for each row. Turns and not time: a thread that has to wait for a processor does not get
/// its work done meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Work {
    turns: AtomicU64,
}

fn turn(turns: u64) {
    let mut state = 1u64;
    for _ in 0..turns {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

impl Work {
    /// From now on a row costs so much on this machine.
    pub(crate) fn set(&self, cost: Duration) {
        const TRIAL: u64 = 2_000_000;
        // The quickest of some trials: the others were disturbed.
        let trial = || {
            let started = Instant::now();
            turn(TRIAL);
            started.elapsed()
        };
        let quickest = (0..10).map(|_| trial()).min().unwrap_or_default().as_secs_f64().max(1e-9);
        self.turns.store((cost.as_secs_f64() / quickest * TRIAL as f64) as u64, Relaxed);
    }

    /// Does what so many rows cost.
    pub(crate) fn rows(&self, rows: usize) {
        turn(self.turns.load(Relaxed) * rows as u64);
    }
}
