//! A heartbeat, as jHiccup's: a thread that wakes every other millisecond. Where it wakes late, this process did not
//! run: it was stopped, its CPU quota was used up, or its machine stood still.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The distance of two beats.
pub(crate) const BEAT: Duration = Duration::from_millis(2);
/// A beat that is late by more is a pause; less is usual on a machine that works.
const LATE_BEAT: u64 = 5_000_000;

/// A time in which this process did not run, in nanoseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub at: u64,
    pub length: u64,
}

impl Pause {
    /// How much of the pause lies between two moments.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        (self.at + self.length).min(to).saturating_sub(self.at.max(from))
    }
}

/// The pauses that the heartbeat has noted, for all threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<Beats>);

#[derive(Debug, Default)]
struct Beats {
    /// The last beat; `None` while nothing beats.
    last: Option<u64>,
    paused: u64,
    pauses: Vec<Pause>,
}

impl Beats {
    /// The pause that lasts until `now`, if that is one.
    fn pause(&self, now: u64) -> Option<Pause> {
        let at = self.last? + BEAT.as_nanos() as u64;
        let length = now.saturating_sub(at);
        (length > LATE_BEAT).then_some(Pause { at, length })
    }
}

impl Pulse {
    fn lock(&self) -> MutexGuard<'_, Beats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The heartbeat's thread runs now.
    pub(crate) fn beat(&self, now: u64) {
        let mut beats = self.lock();
        if let Some(pause) = beats.pause(now) {
            beats.paused += pause.length;
            beats.pauses.push(pause);
        }
        beats.last = Some(now);
    }

    /// How long this process did not run until `now`, in nanoseconds. A pause that the heartbeat's thread has not
    /// noted yet, because another thread woke before it, is counted.
    pub(crate) fn paused(&self, now: u64) -> u64 {
        let beats = self.lock();
        beats.paused + beats.pause(now).map_or(0, |pause| pause.length)
    }

    /// How long this process was paused between two moments.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        // Most operations are shorter, and the thread ran at both moments.
        if to.saturating_sub(from) <= LATE_BEAT {
            return 0;
        }
        let beats = self.lock();
        let noted = beats.pauses.iter().rev().take_while(|pause| pause.at + pause.length > from);
        noted.chain(&beats.pause(to)).map(|pause| pause.between(from, to)).sum()
    }

    /// All pauses.
    pub(crate) fn pauses(&self) -> Vec<Pause> {
        self.lock().pauses.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_pause_is_known_to_every_thread_before_the_heartbeat_has_noted_it() {
        let pulse = Pulse::default();
        assert_eq!(pulse.paused(90 * MS), 0, "nothing beats yet");
        pulse.beat(100 * MS);
        assert_eq!(pulse.paused(106 * MS), 0, "the scheduler's usual delay");
        assert_eq!(pulse.paused(502 * MS), 400 * MS);
        pulse.beat(503 * MS);
        assert_eq!((pulse.paused(503 * MS), pulse.paused(504 * MS)), (401 * MS, 401 * MS));
        assert_eq!((pulse.between(0, 504 * MS), pulse.between(302 * MS, 402 * MS)), (401 * MS, 100 * MS));
        assert_eq!((pulse.between(503 * MS, 504 * MS), pulse.between(503 * MS, 515 * MS)), (0, 10 * MS));
        let pauses = pulse.pauses();
        assert_eq!(pauses, [Pause { at: 102 * MS, length: 401 * MS }]);
        assert_eq!((pauses[0].between(0, 202 * MS), pauses[0].between(600 * MS, 700 * MS)), (100 * MS, 0));
    }
}
