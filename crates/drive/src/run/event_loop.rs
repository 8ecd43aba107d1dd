//! One thread that serves several clients of a closed loop: sends their operations, and reads answers as they come.
//! Where answers come all the time, waiting once for several costs a third less processor time an operation than a
//! thread for each connection. At a set rate it costs a third more, because connections then mostly wait: there each
//! has its thread.
//!
//! Whatever keeps a thread (opening a connection, trying again after a while) is left to a thread of its own, which
//! serves that connection to the end of the run.

use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use sawmill_profile::joined;
use sawmill_source::{Error, Kind, LOOK, Result};

use crate::arrivals::schedule::{Arrival, Schedule};
use crate::mix::pick::Pick;
use crate::plan::pooling::Pooling;
use crate::plan::types::{Operation, Pace, Plan, Work};
use crate::run::connection::{Before, Ended, Shared, carry_out, drive, tries_again};
use crate::run::queue::Claim;
use crate::run::recorder::Samples;
use crate::work::outcome::Outcome;
use crate::work::target::Session;

/// Connections of one thread, where the processors suffice.
const CONNECTIONS: usize = 8;
/// Rows of a statement that is sent without a look at whether the server takes it.
const FEW_ROWS: u64 = 16;

/// Into how many groups connections go, each with a thread; `None` if each connection needs a thread of its own:
/// operations of several statements or many rows, and those that have to make earlier rows anew, would keep
/// other connections waiting.
pub(crate) fn groups(plan: &Plan, pace: &Pace, sessions: &[Box<dyn Session + '_>]) -> Option<usize> {
    let together = matches!(pace, Pace::Closed { think, .. } if think.is_zero())
        && plan.pooling == Pooling::Kept
        && plan.operations.iter().all(is_short)
        && sessions.len() > 1
        && sessions.iter().all(|session| session.descriptor().is_some());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    together.then(|| processors.min(sessions.len().div_ceil(CONNECTIONS)))
}

fn is_short(operation: &Operation) -> bool {
    let few = match operation.steps.as_slice() {
        [Work::Insert { rows, .. }] => *rows <= FEW_ROWS,
        [Work::Copy { .. } | Work::Bulk { .. } | Work::Unnest { .. }] => false,
        [_] => !operation.transaction,
        _ => false,
    };
    few && operation.earlier_rows().all(|(_, pick)| pick != Pick::Uniform)
}

/// A client with its connection.
pub(crate) struct Seat<'env> {
    session: Box<dyn Session + 'env>,
    samples: &'env Samples,
    schedule: Schedule,
    before: Before,
    /// The operation that is under way, and when it was started.
    under_way: Option<(Arrival, u64)>,
}

impl<'env> Seat<'env> {
    pub(crate) fn new(session: Box<dyn Session + 'env>, samples: &'env Samples, schedule: Schedule) -> Self {
        Self { session, samples, schedule, before: Before::default(), under_way: None }
    }
}

struct EventLoop<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    /// `None`: a thread of its own serves the connection.
    seats: Vec<Option<Seat<'env>>>,
    /// For each seat: its socket while an operation is under way, or -1.
    sockets: Vec<libc::pollfd>,
    busy: usize,
    /// Clients that are to begin an operation.
    next: Vec<usize>,
    alone: Vec<ScopedJoinHandle<'scope, Result<()>>>,
}

/// Serves connections until the run ends.
///
/// # Errors
/// An operation cannot be made, or no thread be started.
pub(crate) fn serve<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    seats: Vec<Seat<'env>>,
    shared: &'env Shared<'env>,
) -> Result<()> {
    let sockets = seats.iter().map(|_| libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }).collect();
    let next = (0..seats.len()).collect();
    let seats = seats.into_iter().map(Some).collect();
    let mut serving = EventLoop { scope, shared, seats, sockets, busy: 0, next, alone: Vec::new() };
    let done = serving.run();
    if done.is_err() {
        shared.stop.store(true, Relaxed);
    }
    let ended = serving.alone.into_iter().map(joined);
    // All have to end, whatever became of the first.
    ended.fold(done, |done, ended| done.and(ended))
}

impl EventLoop<'_, '_> {
    fn run(&mut self) -> Result<()> {
        self.shared.wait_until(0, Duration::ZERO);
        let (mut now, mut looked) = (self.shared.now(), 0);
        while !self.shared.is_over() {
            for at in std::mem::take(&mut self.next) {
                self.start(at, now)?;
            }
            if self.busy == 0 && self.next.is_empty() {
                return Ok(());
            }
            now = self.wait_and_read()?;
            if now.saturating_sub(looked) > LOOK.as_nanos() as u64 {
                looked = now;
                self.give_up(now, self.shared.plan.patience().as_nanos().try_into().unwrap_or(u64::MAX))?;
            }
        }
        // The run was interrupted: answers that are on their way may still come.
        self.next.clear();
        let end = self.shared.now() + LOOK.as_nanos() as u64;
        while self.busy > 0 && self.shared.now() < end {
            self.wait_and_read()?;
        }
        self.give_up(self.shared.now(), 0)
    }

    /// Makes and starts the next operation of a client, if the run has not ended.
    fn start(&mut self, at: usize, now: u64) -> Result<()> {
        let Some(seat) = &mut self.seats[at] else { return Ok(()) };
        if self.shared.is_over() || now >= self.shared.end {
            return Ok(());
        }
        let Some(arrival) = seat.schedule.next()? else { return Ok(()) };
        let not_made = seat.session.prepare(arrival.operation, arrival.draw)?;
        seat.samples.in_flight.store(1, Relaxed);
        seat.under_way = Some((arrival, self.shared.now()));
        self.busy += 1;
        match not_made.or_else(|| seat.session.begin()) {
            None => self.sockets[at].fd = seat.session.descriptor().unwrap_or(-1),
            Some(outcome) => {
                if self.ended(at, outcome, self.shared.now())? {
                    // After the answers that others wait for.
                    self.next.push(at);
                }
            }
        }
        Ok(())
    }

    /// Waits for answers, reads what has come, and goes on with the clients that have their answer. Returns the time.
    fn wait_and_read(&mut self) -> Result<u64> {
        let ready = wait(&mut self.sockets, if self.next.is_empty() { LOOK } else { Duration::ZERO });
        // What is readable now has come by now: reading one answer does not make the others slower.
        let now = self.shared.now();
        for at in 0..if ready { self.sockets.len() } else { 0 } {
            if std::mem::take(&mut self.sockets[at].revents) == 0 {
                continue;
            }
            let outcome = self.seats[at].as_mut().and_then(|seat| seat.session.progress());
            if let Some(outcome) = outcome
                && self.ended(at, outcome, now)?
            {
                self.start(at, now)?;
            }
        }
        Ok(now)
    }

    /// Gives up operations that were started so many nanoseconds ago, or earlier.
    fn give_up(&mut self, now: u64, ago: u64) -> Result<()> {
        for at in 0..self.seats.len() {
            let Some(seat) = &mut self.seats[at] else { continue };
            if seat.under_way.is_some_and(|(_, started)| now.saturating_sub(started) >= ago) {
                let outcome = seat.session.give_up();
                // The connection is closed: the client goes on in a thread, unless the run is over.
                self.ended(at, outcome, now)?;
            }
        }
        Ok(())
    }

    /// Records an operation that has ended; whether the client goes on here. What needs another attempt, or another
    /// connection, goes to a thread.
    fn ended(&mut self, at: usize, outcome: Outcome, now: u64) -> Result<bool> {
        self.sockets[at].fd = -1;
        let Some(seat) = &mut self.seats[at] else { return Ok(false) };
        let Some((arrival, started)) = seat.under_way.take() else { return Ok(false) };
        self.busy -= 1;
        let claim = Claim::at_once(arrival, started);
        let ended = Ended { claim, started, ended: now.max(started), attempts: 1, outcome };
        if tries_again(&ended.outcome, 1, self.shared) {
            return self.leave(at, Some(ended)).map(|()| false);
        }
        ended.record(seat.session.as_mut(), self.shared, seat.samples, &mut seat.before);
        match seat.session.descriptor() {
            Some(_) => Ok(true),
            None => self.leave(at, None).map(|()| false),
        }
    }

    /// Leaves a connection to a thread of its own, with an operation that is to be tried again.
    fn leave(&mut self, at: usize, again: Option<Ended>) -> Result<()> {
        let Some(mut seat) = self.seats[at].take() else { return Ok(()) };
        if self.shared.is_over() {
            if let Some(ended) = again {
                ended.record(seat.session.as_mut(), self.shared, seat.samples, &mut seat.before);
            }
            return Ok(());
        }
        let shared = self.shared;
        let spawned = shared.spawn(self.scope, move || {
            let session = seat.session.as_mut();
            if let Some(mut ended) = again {
                (ended.outcome, ended.attempts) =
                    carry_out(session, shared, ended.claim.arrival.draw, Some(ended.outcome));
                ended.ended = shared.now();
                ended.record(session, shared, seat.samples, &mut seat.before);
            }
            drive(session, shared, seat.samples, Some(seat.schedule), seat.before)
        });
        self.alone.push(spawned.map_err(|error| {
            Error::new(Kind::Config, format!("cannot start a thread for a connection: {error}"))
        })?);
        Ok(())
    }
}

/// Waits until one of the sockets is readable, but not longer; whether one is.
fn wait(sockets: &mut [libc::pollfd], longest: Duration) -> bool {
    let longest = libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(longest.subsec_nanos()),
    };
    // SAFETY: ppoll(2) gets the entries with their number, and a time; all live until it returns.
    let ready = unsafe {
        libc::ppoll(sockets.as_mut_ptr(), sockets.len() as libc::nfds_t, &raw const longest, std::ptr::null())
    };
    ready > 0
}
