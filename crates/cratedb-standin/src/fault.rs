//! What can be made to go wrong, batch by batch.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A fault of one batch of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before anything is done.
    DropBefore,
    /// Half of the rows go in, then the connection ends.
    DropInTheMiddle,
    /// All rows go in, then the connection ends without an answer.
    DropAfter,
    /// 503, nothing is done.
    Unavailable,
    /// 429, nothing is done.
    Busy,
    /// The answer takes its time.
    Slow(Duration),
    /// Every row comes back with code 5002 and is not in.
    LostShard,
    /// Half of the rows go in, then the server restarts: it refuses connections for the first time, and for the second
    /// it has not recovered its tables yet.
    Restart(Duration, Duration),
    /// The node is gone, and its connections with it.
    Disappear,
}

/// Faults of the batches to come.
#[derive(Debug, Default)]
pub struct Faults {
    next: Mutex<VecDeque<Option<Fault>>>,
}

impl Faults {
    /// Adds faults for the next batches, `None` for one that goes well.
    pub fn plan(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// The fault of the batch that is here now.
    pub(crate) fn take(&self) -> Option<Fault> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }

    /// Faults that have not happened yet.
    pub fn left(&self) -> usize {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
