//! Operations that wait for a connection, and why.

use std::collections::VecDeque;
use std::sync::Mutex;

use sawmill_source::Result;

use crate::arrivals::schedule::{Arrival, Schedule};
use crate::run::delay::{Causes, Delay, Spent};

/// The queue from which the connections of an open loop take operations.
pub(crate) struct Queue {
    schedule: Schedule,
    /// Operations taken from the schedule to count the backlog.
    due: VecDeque<Arrival>,
    causes: Causes,
}

/// Maximum operations to check before connections may take one again.
const LOOKED_AT: usize = 1000;
/// Maximum number of operations up to which a backlog is counted.
const MAX_BACKLOG: usize = 1_000_000;

impl Queue {
    pub(crate) fn new(schedule: Schedule, connections: usize) -> Mutex<Self> {
        Mutex::new(Self { schedule, due: VecDeque::new(), causes: Causes::new(connections) })
    }

    /// The next operation. Once the operation is known, `claimed` returns the time, how the connection has spent
    /// its time since its last operation, and how long the process has been paused so far.
    pub(crate) fn next(&mut self, claimed: impl FnOnce() -> (u64, Spent, u64)) -> Result<Option<Claim>> {
        let next = self.due.pop_front().map_or_else(|| self.schedule.next(), |due| Ok(Some(due)));
        let Some(arrival) = next? else { return Ok(None) };
        let (claimed, spent, paused) = claimed();
        let wait = arrival.at.map_or(0, |due| claimed.saturating_sub(due));
        Ok(Some(Claim { arrival, claimed, delay: self.causes.take(wait, spent, paused) }))
    }

    /// Counts operations that are due by now; `None` if there may be more, to be asked again.
    pub(crate) fn look(&mut self, now: u64) -> Option<u64> {
        let is_due = |arrival: &&Arrival| arrival.at.is_some_and(|at| at <= now);
        for _ in 0..LOOKED_AT {
            let all = self.due.len() >= MAX_BACKLOG || self.due.back().is_some_and(|last| !is_due(&last));
            // The lines of a trace were all read before the run.
            let next = if all { None } else { self.schedule.next().ok().flatten() };
            match next {
                Some(arrival) => self.due.push_back(arrival),
                None => return Some(self.due.iter().take_while(is_due).count() as u64),
            }
        }
        None
    }
}

/// An operation that a connection has taken.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    pub arrival: Arrival,
    pub claimed: u64,
    /// The causes of its wait after it was due.
    pub delay: Delay,
}

impl Claim {
    /// A claim of a closed loop's client, which waits for no connection.
    pub(crate) fn at_once(arrival: Arrival, now: u64) -> Self {
        Self { arrival, claimed: now, delay: Delay::default() }
    }
}
