//! The services of the operating system that threads of a job use: start, waits, sleep, clocks, connections and the
//! identity of their process. A simulation replaces them through [`Turns`].
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
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Scope;
use std::time::{Duration, Instant, SystemTime};

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

    /// Returns when that much time has passed, or when the thread is woken.
    fn sleep(&self, time: Duration);

    /// Ends the sleep of a thread.
    fn wake(&self, thread: u64);

    /// The time.
    fn now(&self) -> Instant;

    /// The time of the wall clock, which may jump.
    fn wall_clock(&self) -> SystemTime;

    /// The process of the calling thread.
    fn process(&self) -> Process;

    /// Whether a process of the calling thread's machine runs.
    fn is_running(&self, process: u32) -> bool;

    /// Connects to a server.
    ///
    /// # Errors
    /// No server answers there.
    fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Socket>>;
}

/// A process of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The name of its machine.
    pub machine: String,
    /// Its number, unique in the simulation.
    pub number: u32,
}

/// A connection of a simulation. A read that has to wait ends with [`io::ErrorKind::WouldBlock`] after a while.
pub trait Socket: Read + Write + Send {
    /// Whether the server still keeps the connection open.
    fn is_open(&self) -> bool;
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

/// The time of the wall clock.
pub fn wall_clock() -> SystemTime {
    turns().map_or_else(SystemTime::now, |turns| turns.wall_clock())
}

/// Sleeps until the time has passed, or until [`Spawned::wake`](crate::Spawned::wake).
pub fn park(time: Duration) {
    match turns() {
        Some(turns) => leave(turns.as_ref(), |turns| turns.sleep(time)),
        None => std::thread::park_timeout(time),
    }
}

/// The process of the calling thread in a simulation.
pub fn process() -> Option<Process> {
    turns().map(|turns| turns.process())
}

/// Whether a process of this machine runs in the simulation.
pub fn is_running(process: u32) -> bool {
    turns().is_some_and(|turns| turns.is_running(process))
}

/// A connection to a server of the simulation; `None` outside one.
pub fn connect(host: &str, port: u16) -> Option<io::Result<Box<dyn Socket>>> {
    turns().map(|turns| turns.connect(host, port))
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
    /// Announces a thread of this name if the calling thread is part of a simulation. The innermost scope waits for
    /// it if it `is_scoped`.
    pub(crate) fn announce(name: &str, is_scoped: bool) -> Option<Self> {
        SEAT.with_borrow(|seat| {
            let Seat { turns, scopes } = seat.as_ref()?;
            let running = scopes.last().filter(|_| is_scoped).cloned();
            if let Some(running) = &running {
                running.fetch_add(1, SeqCst);
            }
            Some(Self { thread: turns.announce(name), turns: Arc::clone(turns), running })
        })
    }

    /// What ends a sleep of the thread.
    pub(crate) fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let (turns, thread) = (Arc::clone(&self.turns), self.thread);
        Box::new(move || turns.wake(thread))
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
