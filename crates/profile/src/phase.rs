//! Phases of a run: named stretches of wall time with the CPU, memory, rows and bytes they took.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::process;

/// One measured run: the phases that were finished in it, in their order. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    finished: Arc<Mutex<Vec<PhaseReport>>>,
}

impl Profile {
    /// A run without phases.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a phase. Peak memory is counted from here on.
    pub fn phase(&self, name: &'static str) -> Phase {
        process::reset_peak_memory();
        Phase {
            profile: self.clone(),
            name,
            started: Instant::now(),
            cpu_before: process::cpu_time(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The finished phases so far.
    pub fn phases(&self) -> Vec<PhaseReport> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A phase under way. Threads share it by reference and count on it.
#[derive(Debug)]
pub struct Phase {
    profile: Profile,
    name: &'static str,
    started: Instant,
    cpu_before: Duration,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Phase {
    /// Counts rows as done.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
    }

    /// Counts bytes as moved: read, written or sent, whatever the phase is about.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Rows counted so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Ends the phase and enters its report into the profile.
    pub fn finish(self) -> PhaseReport {
        let report = PhaseReport {
            name: self.name.to_owned(),
            wall: self.started.elapsed(),
            cpu: process::cpu_time().saturating_sub(self.cpu_before),
            rows: self.rows(),
            bytes: self.bytes(),
            peak_memory: process::peak_memory(),
        };
        self.profile.finished.lock().unwrap_or_else(PoisonError::into_inner).push(report.clone());
        report
    }
}

/// What one phase took.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// The name it was started with.
    pub name: String,
    /// Wall-clock time from start to finish.
    pub wall: Duration,
    /// CPU time of all threads of this process, user and system.
    pub cpu: Duration,
    /// Rows counted.
    pub rows: u64,
    /// Bytes counted.
    pub bytes: u64,
    /// Peak resident memory in bytes while it ran; since the process started where the peak cannot
    /// be reset; `None` where the system does not tell.
    pub peak_memory: Option<u64>,
}

impl PhaseReport {
    /// Rows a second.
    pub fn rows_per_second(&self) -> f64 {
        self.rows as f64 / self.wall.as_secs_f64().max(1e-9)
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}
