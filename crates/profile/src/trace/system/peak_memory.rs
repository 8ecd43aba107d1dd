//! Measures the peak memory of several phases at once, although the system keeps only one peak per process.
//!
//! The peak is reset whenever a phase starts. Before that, the current peak is recorded for every open phase,
//! so that a nested phase does not hide the peak of the one around it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::trace::system::process;
use crate::trace::turns;

static OPEN: Mutex<Vec<Weak<AtomicU64>>> = Mutex::new(Vec::new());

/// The peak of one open phase; 0 until the system has reported one.
#[derive(Debug)]
pub(crate) struct PeakMemory {
    seen: Arc<AtomicU64>,
}

impl PeakMemory {
    /// Starts measuring from the memory that is resident now.
    pub(crate) fn start() -> Self {
        let seen = Arc::new(AtomicU64::new(0));
        if turns::is_simulated() {
            return Self { seen };
        }
        let mut open = enter_peak();
        process::reset_peak_memory();
        open.push(Arc::downgrade(&seen));
        Self { seen }
    }

    /// The peak since [`PeakMemory::start`]; `None` if the system does not report it.
    pub(crate) fn so_far(&self) -> Option<u64> {
        if !turns::is_simulated() {
            drop(enter_peak());
        }
        Some(self.seen.load(Relaxed)).filter(|peak| *peak > 0)
    }
}

/// Records the process's current peak for all open phases and drops finished ones.
fn enter_peak() -> std::sync::MutexGuard<'static, Vec<Weak<AtomicU64>>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let peak = process::peak_memory().unwrap_or(0);
    open.retain(|phase| match phase.upgrade() {
        Some(seen) => {
            seen.fetch_max(peak, Relaxed);
            true
        }
        None => false,
    });
    open
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_started_later_does_not_hide_the_peak_of_an_earlier_one() {
        const SIZE: usize = 96 << 20;
        let outer = PeakMemory::start();
        drop(std::hint::black_box(vec![1u8; SIZE]));
        let inner = PeakMemory::start();
        assert!(outer.so_far().unwrap() >= SIZE as u64);
        assert!(inner.so_far().is_some());
    }
}
