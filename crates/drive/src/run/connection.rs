//! One connection: takes the next operation, makes it, waits for its intended start, carries it out.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_source::{Error, Kind, LOOK, Result};

use crate::arrivals::process::Draws;
use crate::arrivals::schedule::{Arrival, Schedule};
use crate::plan::types::{Pace, Plan};
use crate::run::recorder::{Sample, Samples};
use crate::work::outcome::{Failure, Outcome};
use crate::work::target::Session;

/// A wait that is shorter than this is spent looking at the clock: a system call takes as long.
const SPIN: Duration = Duration::from_micros(4);
/// How long to wait between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);

/// What all connections of a run share.
pub(crate) struct Shared<'a> {
    pub plan: &'a Plan,
    pub schedule: Mutex<Schedule>,
    pub began: Instant,
    /// Nanoseconds from the start: then a closed loop ends.
    pub end: u64,
    /// Nanoseconds from the start: then operations that have not begun do not begin.
    pub deadline: u64,
    pub cancel: &'a AtomicBool,
    /// A connection has failed in a way that ends the run.
    pub stop: AtomicBool,
}

impl Shared<'_> {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Relaxed) || self.stop.load(Relaxed)
    }

    fn next(&self) -> Result<Option<Arrival>> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// Waits until then; whether the run goes on.
    fn wait_until(&self, at: u64) -> bool {
        loop {
            let left = Duration::from_nanos(at.saturating_sub(self.now()));
            if left.is_zero() {
                return true;
            }
            if self.is_over() {
                return false;
            }
            if left > SPIN { std::thread::sleep(left.min(LOOK)) } else { std::hint::spin_loop() }
        }
    }
}

/// Lets a sleeping thread wake when it asked to, and not up to 50 µs later.
pub(crate) fn wake_on_time() {
    #[cfg(target_os = "linux")]
    // SAFETY: prctl(2) with PR_SET_TIMERSLACK takes a number and changes this thread alone.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// Carries out operations until there are no more.
pub(crate) fn drive(session: &mut dyn Session, shared: &Shared<'_>, samples: &Samples) -> Result<()> {
    wake_on_time();
    // When the last operation ended, and how long it took.
    let (mut free_since, mut last_service, mut last_by_driver) = (0, 0, false);
    while !shared.is_over() {
        if let Pace::Closed { think, .. } = &shared.plan.pace
            && (shared.now() >= shared.end
                || !think.is_zero() && !shared.wait_until(shared.now() + think.as_nanos() as u64))
        {
            break;
        }
        let Some(arrival) = shared.next()? else { break };
        let claimed = shared.now();
        let due = arrival.at.unwrap_or(claimed);
        if claimed > shared.deadline {
            let message = "the run ended before a connection was free";
            let outcome = Outcome::Failed(Failure::new("unstarted", message, true));
            let (operation, started, by_driver) = (arrival.operation, claimed, last_by_driver);
            let sample = Sample {
                operation,
                intended: due,
                started,
                ended: claimed,
                attempts: 1,
                outcome,
                was_free: false,
                by_driver,
            };
            samples.push(sample);
            continue;
        }
        let not_made = session.prepare(arrival.operation, arrival.draw)?;
        let was_free = claimed <= due;
        if !shared.wait_until(due) {
            session.settle(&Outcome::Failed(Failure::new("unstarted", "", true)));
            break;
        }
        samples.in_flight.store(1, Relaxed);
        let started = shared.now();
        // In a closed loop what the driver itself needs before is no latency.
        let intended = arrival.at.unwrap_or(started);
        let (outcome, attempts) = match not_made {
            Some(outcome) => (outcome, 1),
            None => carry_out(session, shared, arrival.draw),
        };
        let ended = shared.now();
        session.settle(&outcome);
        samples.in_flight.store(0, Relaxed);
        // A late start is the driver's if the connection was free, or if the driver itself took longer between
        // two operations than the server for the one before.
        let own = started.saturating_sub(free_since);
        let by_driver = was_free || own > last_service;
        (free_since, last_service, last_by_driver) = (ended, ended - started, by_driver);
        let operation = arrival.operation;
        samples.push(Sample { operation, intended, started, ended, attempts, outcome, was_free, by_driver });
    }
    Ok(())
}

/// Tries as often as the plan allows.
fn carry_out(session: &mut dyn Session, shared: &Shared<'_>, draw: u64) -> (Outcome, u32) {
    let (began, mut attempts) = (Instant::now(), 1);
    let mut draws = Draws::new(draw);
    loop {
        if let Err(failure) = reconnected(session, shared) {
            return (Outcome::Failed(failure), attempts);
        }
        let outcome = session.execute();
        // It was not sent: the server may come back in time.
        let away = matches!(&outcome, Outcome::Failed(failure) if failure.kind == "connect");
        if away && began.elapsed() < shared.plan.reconnect && !shared.is_over() {
            std::thread::sleep(AGAIN);
            continue;
        }
        let again = matches!(&outcome, Outcome::Failed(failure)
            if failure.without_effect && ["40001", "40P01"].contains(&failure.kind.as_str()));
        if !again || attempts > shared.plan.retries || shared.is_over() {
            return (outcome, attempts);
        }
        // So that two that met do not meet again.
        std::thread::sleep(Duration::from_micros(draws.below(1000 << attempts.min(6))));
        attempts += 1;
    }
}

/// Opens the connection, waiting for a server that is away as long as the plan says.
fn reconnected(session: &mut dyn Session, shared: &Shared<'_>) -> std::result::Result<(), Failure> {
    let end = Instant::now() + shared.plan.reconnect;
    loop {
        let error: Error = match session.open() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if error.kind() != Kind::Connection || Instant::now() >= end || shared.is_over() {
            return Err(Failure::new("connect", error.to_string(), true));
        }
        std::thread::sleep(AGAIN);
    }
}
