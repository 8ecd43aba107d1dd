//! The services of the operating system that threads of a job use: start, waits, sleep and the clock. A simulation
//! replaces them through [`Turns`].
//!
//! A simulation runs the real code, one thread at a time; it may run all of them as coroutines on one thread of the
//! system. At each point where a thread would wait or sleep it gives up its turn, and the simulation chooses the next
//! thread. Outside a simulation each function calls the standard library after one look at a thread-local variable.
//! It is called once a block, a lock or a pause, so it is always compiled in.
//!
//! `shuttle`, `loom` and `madsim` replace `std::thread`, channels or the runtime. The loads use scoped threads and
//! blocking calls, and all of them pass through this crate: these hooks are smaller than a port. The scheduler is part
//! of the tests of `sawmill-loader`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Why a thread gives up its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It could go on: another thread may run first.
    Step,
    /// It cannot go on before another thread has changed something.
    Blocked,
    /// It cannot go on before another thread has ended.
    Join,
}

/// Decides which thread runs, and what time it is.
pub trait Turns: Send + Sync {
    /// Registers a thread that is about to start, and returns its number.
    fn announce(&self, name: &str) -> u64;

    /// Runs `work` when the thread has its first turn. What `work` borrows lives until it has called [`Turns::end`].
    fn start(&self, thread: u64, work: Box<dyn FnOnce() + Send + '_>);

    /// The calling thread runs no more.
    fn end(&self);

    /// Gives up the turn, and returns with the next one.
    fn pause(&self, pause: Pause);

    /// Returns when that much time has passed.
    fn sleep(&self, time: Duration);

    /// The time.
    fn now(&self) -> Instant;
}

/// What a thread of a simulation knows.
struct Seat {
    turns: Arc<dyn Turns>,
    /// The threads that run in each open scope of this thread.
    scopes: Vec<Arc<AtomicUsize>>,
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

fn turns() -> Option<Arc<dyn Turns>> {
    SEAT.with_borrow(|seat| seat.as_ref().map(|seat| Arc::clone(&seat.turns)))
}

/// Whether the calling thread is part of a simulation.
pub fn is_simulated() -> bool {
    SEAT.try_with(|seat| seat.try_borrow().is_ok_and(|seat| seat.is_some())).unwrap_or(false)
}

/// Puts the previous seat back, even after a panic.
struct Before(Option<Seat>);

impl Drop for Before {
    fn drop(&mut self) {
        SEAT.replace(self.0.take());
    }
}

/// Runs `work` as the first thread of a simulation.
pub fn simulated<T>(turns: Arc<dyn Turns>, work: impl FnOnce() -> T) -> T {
    let _before = Before(SEAT.replace(Some(Seat { turns, scopes: Vec::new() })));
    work()
}

/// Leaves the seat of the calling thread, which another simulated thread may take, until `away` returns.
fn leave(turns: &dyn Turns, away: impl FnOnce(&dyn Turns)) {
    let _before = Before(SEAT.take());
    away(turns);
}

/// Lets another thread of the simulation run first.
pub fn step() {
    if let Some(turns) = turns() {
        leave(turns.as_ref(), |turns| turns.pause(Pause::Step));
    }
}

/// Waits in `blocking`; in a simulation, until `attempt` returns something.
pub fn wait_for<T>(mut attempt: impl FnMut() -> Option<T>, blocking: impl FnOnce() -> T) -> T {
    let Some(turns) = turns() else { return blocking() };
    let pause = |why| leave(turns.as_ref(), |turns| turns.pause(why));
    pause(Pause::Step);
    loop {
        match attempt() {
            Some(done) => return done,
            None => pause(Pause::Blocked),
        }
    }
}

/// Locks a mutex that may be held while its holder waits. A poisoned one is as good.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let attempt = || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    wait_for(attempt, || mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sleeps.
pub fn sleep(time: Duration) {
    match turns() {
        Some(turns) => leave(turns.as_ref(), |turns| turns.sleep(time)),
        None => std::thread::sleep(time),
    }
}

/// The time of the monotonic clock.
pub fn now() -> Instant {
    turns().map_or_else(Instant::now, |turns| turns.now())
}

/// A scope of threads, as [`std::thread::scope`].
pub fn scope<'env, T>(work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    std::thread::scope(|scope| {
        let _joining = Joining::open();
        work(scope)
    })
}

/// Waits, in a simulation, for all threads of the innermost scope of the calling thread.
pub(crate) fn wait_for_scope() {
    let waited_for = |seat: &Option<Seat>| {
        seat.as_ref().map(|seat| (Arc::clone(&seat.turns), seat.scopes.last().cloned()))
    };
    let Some((turns, Some(running))) = SEAT.with_borrow(waited_for) else { return };
    while running.load(SeqCst) > 0 {
        leave(turns.as_ref(), |turns| turns.pause(Pause::Join));
    }
}

/// Waits for the threads of a scope when it is dropped, before the scope does so without giving up its turn.
struct Joining;

impl Joining {
    fn open() -> Self {
        SEAT.with_borrow_mut(|seat| seat.iter_mut().for_each(|seat| seat.scopes.push(Arc::default())));
        Self
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        wait_for_scope();
        SEAT.with_borrow_mut(|seat| seat.iter_mut().for_each(|seat| drop(seat.scopes.pop())));
    }
}

/// A thread of a simulation, from the moment before it starts to its end.
pub(crate) struct Simulated {
    turns: Arc<dyn Turns>,
    thread: u64,
    running: Option<Arc<AtomicUsize>>,
}

impl Simulated {
    /// Announces a thread of this name if the calling thread is part of a simulation.
    pub(crate) fn announce(name: &str) -> Option<Self> {
        SEAT.with_borrow(|seat| {
            let Seat { turns, scopes } = seat.as_ref()?;
            let running = scopes.last().cloned();
            if let Some(running) = &running {
                running.fetch_add(1, SeqCst);
            }
            Some(Self { thread: turns.announce(name), turns: Arc::clone(turns), running })
        })
    }

    /// Starts the thread. The scope waits until `work` has dropped all that it borrows.
    pub(crate) fn start(self, work: impl FnOnce() + Send) {
        let turns = Arc::clone(&self.turns);
        let thread = self.thread;
        let seated = move || {
            let simulated = self;
            let seat = Seat { turns: Arc::clone(&simulated.turns), scopes: Vec::new() };
            let _before = Before(SEAT.replace(Some(seat)));
            work();
            drop(simulated);
        };
        turns.start(thread, Box::new(seated));
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.fetch_sub(1, SeqCst);
        }
        self.turns.end();
    }
}
