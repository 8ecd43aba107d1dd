//! One connection: takes the next operation, makes it, waits for its intended start, carries it out.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::distr::weighted::WeightedIndex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sawmill_source::{Kind, LOOK, Result};

use crate::arrivals::schedule::{Schedule, Spread};
use crate::plan::pooling::{Away, Pooling};
use crate::plan::types::{Pace, Plan};
use crate::run::delay::Spent;
use crate::run::processor::Processor;
use crate::run::pulse::Pulse;
use crate::run::queue::{Claim, Queue};
use crate::run::recorder::{LATE, Sample, Samples};
use crate::work::outcome::{Failure, Outcome, UNSTARTED};
use crate::work::target::Session;

/// A wait that is shorter than this is spent looking at the clock: a system call takes as long.
const SPIN: Duration = Duration::from_micros(4);
/// If a connection's intended starts are closer than this, it sleeps at least this long, and then starts all due
/// operations one after the other. Waking up for each would cost more than carrying it out.
const DENSE: Duration = Duration::from_micros(30);

/// Time for threads to start and for the first rows to be made.
const START: Duration = Duration::from_millis(20);
/// A thread of a connection needs little.
pub(crate) const STACK: usize = 512 * 1024;

/// Keeps the draws of clients apart.
const STREAMS: u64 = 0xA24B_AED4_963E_E407;

/// The state that all connections of a run share.
pub(crate) struct Shared<'a> {
    pub plan: &'a Plan,
    /// The plan's pace, or a closed loop to measure the driver itself.
    pub pace: Pace,
    pub queue: Mutex<Queue>,
    pub pulse: Pulse,
    pub weights: WeightedIndex<f64>,
    pub began: Instant,
    /// End of a closed loop, in nanoseconds from the start.
    pub end: u64,
    /// Nanoseconds from the start after which no operation begins.
    pub deadline: u64,
    pub cancel: &'a AtomicBool,
    /// A connection has failed in a way that ends the run.
    pub stop: AtomicBool,
}

impl<'a> Shared<'a> {
    /// For a run that begins when its threads have started. The counted part ends after the first of `ends`, and no
    /// operation begins after the second.
    pub(crate) fn new(
        plan: &'a Plan,
        pace: Pace,
        queue: Mutex<Queue>,
        ends: [Duration; 2],
        cancel: &'a AtomicBool,
    ) -> Result<Self> {
        let [end, deadline] = ends.map(|end| end.as_nanos() as u64);
        let (weights, began, stop) = (plan.weights()?, Instant::now() + START, AtomicBool::new(false));
        Ok(Self { plan, pace, queue, pulse: Pulse::default(), weights, began, end, deadline, cancel, stop })
    }

    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Relaxed) || self.stop.load(Relaxed)
    }

    /// The next operation of the queue, for a connection that has spent its time like this since the last.
    fn next(&self, before: &Before) -> Result<Option<Claim>> {
        let claimed = || {
            // Nothing begins after the deadline: to take what is left from the queue delays nothing.
            let now = self.now().min(self.deadline.saturating_add(1));
            (now, before.spent(now), self.pulse.paused(now))
        };
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).next(claimed)
    }

    /// Operations that are due and wait for a connection.
    pub(crate) fn backlog(&self) -> u64 {
        if matches!(self.pace, Pace::Closed { .. }) {
            return 0;
        }
        let now = self.now();
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(due) = queue.look(now) {
                return due;
            }
        }
    }

    /// Waits until then; the time at which the wait was over, or `None` if the run has ended before. A sleep is
    /// at least `least` long.
    pub(crate) fn wait_until(&self, at: u64, least: Duration) -> Option<u64> {
        loop {
            let now = self.now();
            let left = Duration::from_nanos(at.saturating_sub(now));
            if left.is_zero() {
                return Some(now);
            }
            if self.is_over() {
                return None;
            }
            if left > SPIN { std::thread::sleep(left.clamp(least, LOOK)) } else { std::hint::spin_loop() }
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

/// Lowers the priority of this thread, so that making rows ahead delays no operation.
pub(crate) fn stand_back() {
    #[cfg(target_os = "linux")]
    // SAFETY: setpriority(2) takes numbers; for 0 Linux changes this thread alone.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
}

/// The last operation of a connection.
#[derive(Clone, Copy, Default)]
struct Before {
    /// When it became free; at first the run's start.
    free: u64,
    /// Which operation it carried out, and for how long, without pauses.
    service: Option<(usize, u64)>,
    /// How much later than it could that operation was started, without pauses.
    late: u64,
    /// When the last operation was to begin.
    due: u64,
}

impl Before {
    fn spent(&self, now: u64) -> Spent {
        Spent { service: self.service, driver: self.late + now.saturating_sub(self.free) }
    }
}

/// An operation that was carried out.
struct Ended {
    claim: Claim,
    started: u64,
    ended: u64,
    /// How long the thread waited for a processor between start and end.
    waited: u64,
    attempts: u32,
    outcome: Outcome,
}

impl Ended {
    /// Updates the states of rows after the outcome, and leaves the sample.
    fn record(self, session: &mut dyn Session, shared: &Shared<'_>, samples: &Samples, before: &mut Before) {
        let Self { claim: Claim { arrival, claimed, mut delay }, started, ended, waited, attempts, outcome } =
            self;
        session.settle(&outcome);
        samples.in_flight.store(0, Relaxed);
        // A closed loop has no intended start: the time that the driver spends before it sends is not latency.
        let intended = arrival.at.unwrap_or(started);
        let free = claimed.max(intended);
        let late = started.saturating_sub(free);
        // A connection that has an operation in time, or takes its time to make one, is late by the driver.
        delay.driver += late;
        let paused = shared.pulse.between(started, ended);
        let operation = arrival.operation;
        let late_without_pauses = late.saturating_sub(shared.pulse.between(free, started));
        let away = waited.max(paused).min(ended - started);
        let took = ended - started - away;
        let (served, own) = if session.has_server() { (took, 0) } else { (0, took) };
        let late = late_without_pauses + own + away.saturating_sub(paused);
        *before = Before { free: ended, service: Some((operation, served)), late, due: intended };
        let was_free = claimed <= intended;
        samples.push(Sample {
            operation,
            intended,
            started,
            ended,
            attempts,
            outcome,
            was_free,
            delay,
            paused,
            waited,
        });
    }
}

/// The schedule of one client of a closed loop: clients do not wait for each other.
pub(crate) fn client_schedule(shared: &Shared<'_>, stream: u64) -> Schedule {
    let seed = shared.plan.seed ^ (stream + 1).wrapping_mul(STREAMS);
    Schedule::new(Spread::Closed, shared.weights.clone(), seed)
}

/// Carries out operations until the schedule or the run ends.
pub(crate) fn drive(
    session: &mut dyn Session,
    shared: &Shared<'_>,
    samples: &Samples,
    mut own: Option<Schedule>,
) -> Result<()> {
    wake_on_time();
    let mut before = Before::default();
    let mut age = Age::default();
    let mut processor = Processor::new(shared.plan.parallel());
    while !shared.is_over() {
        if let Pace::Closed { think, .. } = &shared.pace
            && (shared.now() >= shared.end
                || !think.is_zero()
                    && shared.wait_until(shared.now() + think.as_nanos() as u64, Duration::ZERO).is_none())
        {
            break;
        }
        let claim = match &mut own {
            Some(own) => own.next()?.map(|arrival| Claim::at_once(arrival, shared.now())),
            None => shared.next(&before)?,
        };
        let Some(claim) = claim else { break };
        if claim.claimed > shared.deadline {
            samples.push(unstarted(claim));
            // Waits after the end count for no cause.
            before = Before { free: u64::MAX, ..Before::default() };
            continue;
        }
        let Some(ended) = operation(session, shared, samples, claim, &before, &mut processor)? else { break };
        ended.record(session, shared, samples, &mut before);
        if age.renew(session, shared.plan.pooling) {
            before.free = shared.now();
        }
    }
    Ok(())
}

/// An operation for which no connection was free until the end.
fn unstarted(Claim { arrival, claimed, delay }: Claim) -> Sample {
    let failure = Failure::new(UNSTARTED, "the run ended before a connection was free", true);
    Sample {
        operation: arrival.operation,
        intended: arrival.at.unwrap_or(claimed),
        started: claimed,
        ended: claimed,
        attempts: 1,
        outcome: Outcome::Failed(failure),
        was_free: false,
        delay,
        paused: 0,
        waited: 0,
    }
}

/// Makes an operation, waits for its intended start and carries it out. `None` if the run ended before.
fn operation(
    session: &mut dyn Session,
    shared: &Shared<'_>,
    samples: &Samples,
    claim: Claim,
    before: &Before,
    processor: &mut Processor,
) -> Result<Option<Ended>> {
    let Claim { arrival, claimed, .. } = claim;
    let due = arrival.at.unwrap_or(claimed);
    let not_made = session.prepare(arrival.operation, arrival.draw)?;
    let dense = due.saturating_sub(before.due) < DENSE.as_nanos() as u64;
    let least = if dense { DENSE } else { Duration::ZERO };
    let Some(started) = shared.wait_until(due, least) else {
        session.settle(&Outcome::Failed(Failure::new(UNSTARTED, "", true)));
        return Ok(None);
    };
    samples.in_flight.store(1, Relaxed);
    processor.begin(started);
    let (outcome, attempts) = match not_made {
        Some(outcome) => (outcome, 1),
        None => carry_out(session, shared, arrival.draw),
    };
    let ended = shared.now();
    let waited = if ended - started > LATE { processor.waited(ended) } else { 0 };
    Ok(Some(Ended { claim, started, ended, waited, attempts, outcome }))
}

/// How long a connection has been open.
struct Age {
    since: Instant,
    operations: u64,
}

impl Default for Age {
    fn default() -> Self {
        Self { since: Instant::now(), operations: 0 }
    }
}

impl Age {
    /// Closes the connection after an operation if the plan says so, and opens another one. Returns whether it did.
    fn renew(&mut self, session: &mut dyn Session, pooling: Pooling) -> bool {
        self.operations += 1;
        let old = match pooling {
            Pooling::Kept => false,
            Pooling::None => true,
            Pooling::Operations(most) => self.operations >= most,
            Pooling::For(time) => self.since.elapsed() >= time,
        };
        if !old {
            return false;
        }
        session.close();
        if pooling != Pooling::None {
            // If that fails, the next operation tries again, and reports it.
            let _ = session.open();
            *self = Self::default();
        }
        true
    }
}

/// Whether the plan allows another attempt after this outcome.
fn tries_again(outcome: &Outcome, attempts: u32, shared: &Shared<'_>) -> bool {
    let may = matches!(outcome, Outcome::Failed(failure)
        if failure.without_effect && ["40001", "40P01"].contains(&failure.kind.as_str()));
    may && attempts <= shared.plan.retries && !shared.is_over()
}

/// Tries as often as the plan allows.
fn carry_out(session: &mut dyn Session, shared: &Shared<'_>, draw: u64) -> (Outcome, u32) {
    let mut attempts = 1;
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(draw);
    let mut away = Away::default();
    loop {
        if let Err(error) = session.open() {
            if error.kind() == Kind::Connection && away.wait(&shared.plan.reconnect, &|| shared.is_over()) {
                continue;
            }
            return (Outcome::Failed(Failure::new("connect", error.to_string(), true)), attempts);
        }
        let mut outcome = session.execute();
        if let Outcome::Failed(failure) = &mut outcome
            && failure.kind == "timeout"
            && shared.cancel.load(Relaxed)
        {
            *failure = Failure::new("interrupted", "the run was interrupted", failure.without_effect);
        }
        // The operation was not sent: the server may return in time.
        let not_sent = matches!(&outcome, Outcome::Failed(failure)
            if failure.kind == "connect" && failure.without_effect);
        if not_sent && away.wait(&shared.plan.reconnect, &|| shared.is_over()) {
            continue;
        }
        if !tries_again(&outcome, attempts, shared) {
            return (outcome, attempts);
        }
        // So that two that met do not meet again.
        std::thread::sleep(Duration::from_micros(draws.random_range(0..1000 << attempts.min(6))));
        attempts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::delay::{Cause, Causes};

    #[test]
    fn the_only_operation_of_a_run_whose_threads_start_late_is_late_by_the_driver() {
        let wait = 501_000_000;
        let delay = Causes::new(8).take(wait, Before::default().spent(wait), 0);
        assert_eq!((delay.cause(), delay.driver, delay.pool), (Cause::Driver, wait, 0));
    }
}
