//! Rows of the source that a table had before they were sent to it, by their keys.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sawmill_loader::Tally;

/// What a run knows of such rows. The server says of a row whether it has it; only on the row's first try
/// this cannot be the row itself.
#[derive(Debug)]
pub(crate) struct ThereBefore {
    named: Mutex<Tally>,
    unnamed: AtomicU64,
    uncounted: AtomicBool,
}

impl ThereBefore {
    /// None so far, of a load of so many columns.
    pub(crate) fn none(columns: usize) -> Self {
        Self {
            named: Mutex::new(Tally::empty(columns)),
            unnamed: AtomicU64::new(0),
            uncounted: AtomicBool::new(false),
        }
    }

    /// These rows were there, with the same values.
    pub(crate) fn add(&self, rows: &Tally) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).add(rows);
    }

    /// So many rows of a batch were there, it is not known which.
    pub(crate) fn add_unnamed(&self, rows: u64) {
        self.unnamed.fetch_add(rows, Relaxed);
    }

    /// A row was there, and may be of an earlier try.
    pub(crate) fn lose_count(&self) {
        self.uncounted.store(true, Relaxed);
    }

    /// How many rows were there at least.
    pub(crate) fn rows(&self) -> u64 {
        self.unnamed.load(Relaxed) + self.named.lock().unwrap_or_else(PoisonError::into_inner).rows
    }

    /// Whether that is all of them.
    pub(crate) fn is_counted(&self) -> bool {
        !self.uncounted.load(Relaxed)
    }

    /// What they come to, unless it is not known which they are. Rows that may be of an earlier try are taken
    /// to be that.
    pub(crate) fn tally(&self) -> Option<Tally> {
        (self.unnamed.load(Relaxed) == 0)
            .then(|| self.named.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}
