//! Runs the threads of a simulation, one at a time, in an order drawn from the seed, in simulated time.
//!
//! Time passes when all threads wait or sleep, and a little with each turn.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use sawmill_profile::turns::{Pause, Turns};

use super::draw::Draw;

/// A run that takes more turns, or longer, waits for ever.
const MAX_TURNS: u64 = 100_000;
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

thread_local! {
    static ME: Cell<u64> = const { Cell::new(0) };
}

/// The threads and the clock of one run.
pub struct Scheduler {
    inner: Mutex<Inner>,
    /// The thread whose turn it is.
    turn: AtomicU64,
    /// The run has failed: all threads unwind.
    over: AtomicBool,
    base: Instant,
    nanos: AtomicU64,
}

struct Inner {
    threads: Vec<Slot>,
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
    handle: Option<Thread>,
    state: State,
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
        let main =
            Slot { name: "main".to_owned(), handle: Some(std::thread::current()), state: State::Ready };
        ME.set(0);
        let (turns, changes, ends) = (0, 0, 0);
        Self {
            inner: Mutex::new(Inner {
                threads: vec![main],
                draw,
                stays,
                turns,
                changes,
                ends,
                failure: None,
            }),
            turn: AtomicU64::new(0),
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
        self.inner().threads[ME.get() as usize].name.clone()
    }

    pub fn turns(&self) -> u64 {
        self.inner().turns
    }

    /// Gives up the turn in this state, and returns with the next one.
    fn give_up(&self, state: impl FnOnce(&mut Inner) -> State) {
        let me = ME.get();
        let mut inner = self.inner();
        let state = state(&mut inner);
        inner.threads[me as usize].state = state;
        let Some(next) = self.choose(&mut inner, me) else { return };
        inner.threads[next as usize].state = State::Ready;
        if next == me {
            return;
        }
        self.hand_over(&inner, next);
        drop(inner);
        if !matches!(state, State::Ended) {
            self.await_turn(me);
        }
    }

    fn hand_over(&self, inner: &Inner, next: u64) {
        self.turn.store(next, SeqCst);
        inner.threads[next as usize].handle.iter().for_each(Thread::unpark);
    }

    fn await_turn(&self, me: u64) {
        while self.turn.load(SeqCst) != me && !self.over.load(SeqCst) {
            std::thread::park();
        }
    }

    /// The next thread; `None` if the run is over.
    fn choose(&self, inner: &mut Inner, me: u64) -> Option<u64> {
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
        if matches!(inner.threads[me as usize].state, State::Ready) && inner.draw.below(8) < inner.stays {
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
        able.nth(chosen).map(|(number, _)| number as u64)
    }

    /// Ends the run: all threads unwind, in no order.
    fn end_run(&self, inner: &mut Inner, why: &str) -> Option<u64> {
        if inner.failure.is_none() {
            let threads = inner.threads.iter().filter(|slot| !matches!(slot.state, State::Ended));
            let threads: Vec<String> =
                threads.map(|slot| format!("{} {:?}", slot.name, slot.state)).collect();
            inner.failure = Some(format!("{why}: {}", threads.join(", ")));
        }
        self.over.store(true, SeqCst);
        inner.threads.iter().filter_map(|slot| slot.handle.as_ref()).for_each(Thread::unpark);
        None
    }

    /// Ends the calling thread's work if the run is over.
    fn unwind_if_over(&self) {
        if self.over.load(SeqCst) && !std::thread::panicking() {
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
        inner.threads.push(Slot { name: name.to_owned(), handle: None, state: State::Ready });
        inner.threads.len() as u64 - 1
    }

    fn begin(&self, thread: u64) {
        ME.set(thread);
        self.inner().threads[thread as usize].handle = Some(std::thread::current());
        self.await_turn(thread);
    }

    fn end(&self, thread: u64) {
        if ME.get() == thread && !self.over.load(SeqCst) {
            self.give_up(|inner| {
                inner.ends += 1;
                inner.changed(State::Ended)
            });
        } else {
            self.inner().threads[thread as usize].state = State::Ended;
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
        match pause {
            // The others unwind; the scope waits for them.
            Pause::Join if self.over.load(SeqCst) => std::thread::yield_now(),
            Pause::Join => {}
            _ => self.unwind_if_over(),
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
