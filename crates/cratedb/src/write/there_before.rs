//! Rows of the source that a table had before they were sent to it, by their keys.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sawmill_loader::Tally;

/// Counts of rows whose key the table had when they were sent first: of another load or program, or of a request that
/// arrived twice, which the count at the end tells apart.
#[derive(Debug, Default)]
pub(crate) struct ThereBefore {
    named: Mutex<Tally>,
    /// Rows of batches of which it is not known which rows they are.
    pub unnamed: AtomicU64,
    /// A row was there that an earlier try may have inserted.
    pub uncounted: AtomicBool,
}

impl ThereBefore {
    /// No rows yet, for `columns` columns.
    pub(crate) fn none(columns: usize) -> Self {
        Self { named: Mutex::new(Tally::empty(columns)), ..Self::default() }
    }

    /// Adds rows that were there with the same values.
    pub(crate) fn add(&self, rows: &Tally) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).add(rows);
    }

    /// A lower bound of the rows that were there.
    pub(crate) fn rows(&self) -> u64 {
        self.unnamed.load(Relaxed) + self.named.lock().unwrap_or_else(PoisonError::into_inner).rows
    }

    /// Whether [`rows`](Self::rows) is exact.
    pub(crate) fn is_counted(&self) -> bool {
        !self.uncounted.load(Relaxed)
    }

    /// The sum of these rows; `None` if it is not known which they are. Includes rows that an earlier try may have
    /// inserted.
    pub(crate) fn tally(&self) -> Option<Tally> {
        (self.unnamed.load(Relaxed) == 0)
            .then(|| self.named.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}
