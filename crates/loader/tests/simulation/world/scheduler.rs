//! Runs the threads of a simulation, one at a time, in an order drawn from the seed, in simulated time.
//!
//! Time passes when all threads wait or sleep, and a little with each turn.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sawmill_profile::turns::{Pause, Turns};

use super::draw::Draw;
use super::fibers;

/// A run that takes more turns, or longer, waits for ever.
const MAX_TURNS: u64 = 100_000;
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// The threads and the clock of one run.
pub struct Scheduler {
    inner: Mutex<Inner>,
    /// The run has failed: all threads unwind.
    over: AtomicBool,
    base: Instant,
    nanos: AtomicU64,
}

struct Inner {
    threads: Vec<Slot>,
    /// The thread whose turn it is; `None` if the run is over.
    turn: Option<usize>,
    draw: Draw,
    /// How often of eight times a thread that can go on does so.
    stays: u64,
    turns: u64,
    /// Changes that a blocked thread may have waited for, and ends of threads.
    changes: u64,
    ends: u64,
    failure: Option<String>,
}

struct Slot {
    name: String,
    state: State,
    /// It unwinds, because the run is over.
    unwinds: bool,
}

impl Slot {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: State::Ready, unwinds: false }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Ready,
    /// Until there are more changes than these.
    Blocked(u64),
    /// Until there are more ends than these.
    Joins(u64),
    /// Until this time in nanoseconds.
    Asleep(u64),
    Ended,
}

impl Scheduler {
    pub fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed ^ 0x7475_726e);
        let stays = draw.of(&[0, 0, 2, 4, 6, 7]);
        fibers::clear();
        let inner = Inner {
            threads: vec![Slot::new("main")],
            turn: Some(0),
            draw,
            stays,
            turns: 0,
            changes: 0,
            ends: 0,
            failure: None,
        };
        Self {
            inner: Mutex::new(inner),
            over: AtomicBool::new(false),
            base: Instant::now(),
            nanos: AtomicU64::new(0),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(SeqCst))
    }

    /// Lets time pass at once: a clock that jumps, or a request that takes its time.
    pub fn advance(&self, time: Duration) {
        self.nanos.fetch_add(time.as_nanos() as u64, SeqCst);
    }

    /// Why the run was ended; `None` if it was not.
    pub fn failure(&self) -> Option<String> {
        self.inner().failure.clone()
    }

    /// The name of the calling thread.
    pub fn thread(&self) -> String {
        self.inner().threads[fibers::current()].name.clone()
    }

    pub fn turns(&self) -> u64 {
        self.inner().turns
    }

    /// Gives up the turn in this state, and returns with the next one, or when the run is over.
    fn give_up(&self, state: impl FnOnce(&mut Inner) -> State) {
        let me = fibers::current();
        let mut inner = self.inner();
        let state = state(&mut inner);
        inner.threads[me].state = state;
        let next = self.choose(&mut inner, me);
        inner.turn = next;
        if let Some(next) = next {
            inner.threads[next].state = State::Ready;
        }
        drop(inner);
        match me {
            _ if next == Some(me) || matches!(state, State::Ended) => {}
            0 => self.run_others(),
            _ => fibers::suspend(),
        }
    }

    /// Lets the other threads run until it is the first one's turn. If the run is over, they unwind, each before the one
    /// that started it and waits for it.
    fn run_others(&self) {
        loop {
            let turn = self.inner().turn;
            match turn {
                Some(0) => return,
                Some(next) => fibers::resume(next),
                None => break,
            }
        }
        let threads = self.inner().threads.len();
        for thread in (1..threads).rev() {
            while fibers::is_alive(thread) {
                fibers::resume(thread);
            }
        }
    }

    /// The next thread; `None` if the run is over.
    fn choose(&self, inner: &mut Inner, me: usize) -> Option<usize> {
        inner.turns += 1;
        let now = self.nanos.fetch_add(1_000, SeqCst);
        if inner.turns > MAX_TURNS || now > MAX_TIME.as_nanos() as u64 {
            return self.end_run(inner, "it does not end");
        }
        let (changes, ends) = (inner.changes, inner.ends);
        let can_run = |slot: &Slot, now: u64| match slot.state {
            State::Ready => true,
            State::Blocked(since) => changes > since,
            State::Joins(since) => ends > since,
            State::Asleep(until) => until <= now,
            State::Ended => false,
        };
        if matches!(inner.threads[me].state, State::Ready) && inner.draw.below(8) < inner.stays {
            return Some(me);
        }
        let mut able = inner.threads.iter().filter(|slot| can_run(slot, now)).count() as u64;
        let mut now = now;
        if able == 0 {
            let until = inner.threads.iter().filter_map(|slot| match slot.state {
                State::Asleep(until) => Some(until),
                _ => None,
            });
            let Some(until) = until.min() else { return self.end_run(inner, "all threads wait") };
            now = until;
            self.nanos.store(now, SeqCst);
            able = inner.threads.iter().filter(|slot| can_run(slot, now)).count() as u64;
        }
        let chosen = inner.draw.below(able) as usize;
        let mut able = inner.threads.iter().enumerate().filter(|(_, slot)| can_run(slot, now));
        able.nth(chosen).map(|(number, _)| number)
    }

    /// Ends the run: all threads unwind.
    fn end_run(&self, inner: &mut Inner, why: &str) -> Option<usize> {
        if inner.failure.is_none() {
            let threads = inner.threads.iter().filter(|slot| !matches!(slot.state, State::Ended));
            let threads: Vec<String> =
                threads.map(|slot| format!("{} {:?}", slot.name, slot.state)).collect();
            inner.failure = Some(format!("{why}: {}", threads.join(", ")));
        }
        self.over.store(true, SeqCst);
        None
    }

    /// Ends the calling thread's work if the run is over.
    fn unwind_if_over(&self) {
        if self.over.load(SeqCst)
            && !std::mem::replace(&mut self.inner().threads[fibers::current()].unwinds, true)
        {
            resume_unwind(Box::new("the run is over"));
        }
    }
}

impl Inner {
    /// The calling thread may have changed what others wait for.
    fn changed(&mut self, state: State) -> State {
        self.changes += 1;
        state
    }
}

impl Turns for Scheduler {
    fn announce(&self, name: &str) -> u64 {
        let mut inner = self.inner();
        inner.changes += 1;
        inner.threads.push(Slot::new(name));
        inner.threads.len() as u64 - 1
    }

    fn start(&self, thread: u64, work: Box<dyn FnOnce() + Send + '_>) {
        // SAFETY: the borrows of `work` live until it has called `end`, after which it returns without a
        // pause.
        unsafe { fibers::add(thread as usize, work) };
    }

    fn end(&self) {
        if self.over.load(SeqCst) {
            self.inner().threads[fibers::current()].state = State::Ended;
        } else {
            self.give_up(|inner| {
                inner.ends += 1;
                inner.changed(State::Ended)
            });
        }
    }

    fn pause(&self, pause: Pause) {
        if !self.over.load(SeqCst) {
            self.give_up(|inner| match pause {
                Pause::Step => inner.changed(State::Ready),
                Pause::Blocked => State::Blocked(inner.changes),
                Pause::Join => inner.changed(State::Joins(inner.ends)),
            });
        }
        // A scope whose threads unwind waits for them; then its own thread unwinds, if it does not already.
        if pause != Pause::Join {
            self.unwind_if_over();
        }
    }

    fn sleep(&self, time: Duration) {
        if !self.over.load(SeqCst) {
            let until = self.nanos.load(SeqCst) + time.as_nanos() as u64;
            self.give_up(|inner| inner.changed(State::Asleep(until)));
        }
        self.unwind_if_over();
    }

    fn now(&self) -> Instant {
        self.base + self.elapsed()
    }
}
