//! Faults that can be injected, batch by batch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A fault for one batch of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before any work is done.
    DropBefore,
    /// Half of the rows are inserted, then the connection ends.
    DropInTheMiddle,
    /// All rows are inserted, then the connection ends without a response.
    DropAfter,
    /// All rows are inserted, and the answer never comes: the connection stays open.
    Silent,
    /// The connection ends, and the request reaches the server so much later.
    Late(Duration),
    /// The connection ends when half of the rows are in, and the request runs on for so long; then the others
    /// go in, unless it was killed.
    Orphan(Duration),
    /// Status 503, without any effect.
    Unavailable,
    /// Status 429, without any effect.
    Busy,
    /// The server works on the batch for so long.
    Slow(Duration),
    /// The server works on the batch until the [`Hold`] is dropped.
    Held,
    /// The request is delivered twice, as by a proxy that retries; the second delivery is the one that is answered.
    Twice,
    /// The request is answered, and delivered once more: the second delivery is planned at once and runs for so long;
    /// then its rows go in, unless it was killed.
    Echo(Duration),
    /// Every row returns code 5002 and is not inserted.
    LostShard,
    /// Every row is refused as the table is blocked for writing, as on a full disk.
    Blocked,
    /// The request is refused, because the partitions of its rows would be too many.
    TooManyShards,
    /// Half of the rows are inserted, then the server restarts: it refuses connections for the first
    /// duration, and has not recovered its tables for the second.
    Restart(Duration, Duration),
    /// The node is gone, along with its connections.
    Disappear,
}

/// The faults for upcoming batches.
#[derive(Debug, Default)]
pub struct Faults {
    next: Mutex<VecDeque<Option<Fault>>>,
    holds: AtomicUsize,
}

/// The server works on a batch while this exists.
#[derive(Debug)]
pub struct Hold<'a>(&'a Faults);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Relaxed);
    }
}

impl Faults {
    /// Adds faults for the next batches; `None` is a successful batch.
    pub fn plan(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// Holds the batch after this many others. Create it on the thread that would fail, so that a failure ends it.
    pub fn hold_after(&self, others: usize) -> Hold<'_> {
        self.holds.fetch_add(1, Relaxed);
        self.plan(std::iter::repeat_n(None, others).chain([Some(Fault::Held)]));
        Hold(self)
    }

    pub(crate) fn hold(&self) -> bool {
        self.holds.load(Relaxed) > 0
    }

    /// The fault for the current batch.
    pub(crate) fn take(&self) -> Option<Fault> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }

    /// The number of remaining faults.
    pub fn left(&self) -> usize {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
