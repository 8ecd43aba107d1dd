//! CPU time that each row is made to cost, to measure against a server as slow as the real one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Loop iterations per row. Iterations rather than time, since a thread makes no progress while it waits for
/// a processor.
#[derive(Debug, Default)]
pub(crate) struct RowCost {
    iterations: AtomicU64,
}

fn spin(iterations: u64) {
    let mut state = 1u64;
    for _ in 0..iterations {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

impl RowCost {
    /// Sets the cost of a row on this machine.
    pub(crate) fn set(&self, cost: Duration) {
        const TRIAL: u64 = 2_000_000;
        // The fastest of several trials: the others were disturbed.
        let trial = || {
            let started = Instant::now();
            spin(TRIAL);
            started.elapsed()
        };
        let quickest = (0..10).map(|_| trial()).min().unwrap_or_default().as_secs_f64().max(1e-9);
        self.iterations.store((cost.as_secs_f64() / quickest * TRIAL as f64) as u64, Relaxed);
    }

    /// Spends the cost of `rows` rows.
    pub(crate) fn spend(&self, rows: usize) {
        spin(self.iterations.load(Relaxed) * rows as u64);
    }
}
