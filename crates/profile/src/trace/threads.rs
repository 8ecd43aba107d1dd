//! Threads of one job: the first error stops the others, and a panic is an error of the job.
//!
//! A thread that panicked without that would leave others waiting: a scope waits for a thread that watches until the
//! work is done, and the work was to say so.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle, Thread};
use std::{fmt, io};

use crate::trace::turns::{self, Simulated, scope};

/// Why a thread did not do its part of a job: it panicked, or it could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFailure {
    what: String,
    panicked: bool,
}

impl ThreadFailure {
    fn panicked(name: &str, panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<&str>().copied();
        let said =
            said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        Self { what: format!("the thread {name} panicked: {said}"), panicked: true }
    }

    fn not_started(error: &io::Error) -> Self {
        Self { what: format!("cannot start a thread: {error}"), panicked: false }
    }

    /// What happened.
    pub fn what(&self) -> String {
        self.what.clone()
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self.panicked {
            true => "this is a defect of sawmill: report it, with the lines about the panic above",
            false => "raise the limit on threads (ulimit -u)",
        }
    }

    /// Whether the thread panicked.
    pub fn is_panic(&self) -> bool {
        self.panicked
    }
}

impl fmt::Display for ThreadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} - {}", self.what, self.advice())
    }
}

impl std::error::Error for ThreadFailure {}

impl From<ThreadFailure> for io::Error {
    fn from(failure: ThreadFailure) -> Self {
        Self::other(failure)
    }
}

/// Returns the result of `work`. If it panics, the error names the thread and repeats the panic's message. Do not use
/// data that the panic left half-changed.
///
/// # Errors
/// The error of `work`, or its panic.
pub fn caught<T, E: From<ThreadFailure>>(thread: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        panic_for_a_test(thread);
        work()
    }));
    done.unwrap_or_else(|panic| Err(ThreadFailure::panicked(thread, panic.as_ref()).into()))
}

/// Panics in the thread or pool that the variable names, so that tests see how the other threads end.
fn panic_for_a_test(thread: &str) {
    #[cfg(debug_assertions)]
    {
        let pool = thread.rsplit_once('-').map_or(thread, |(pool, _)| pool);
        let asked = std::env::var_os("SAWMILL_TEST_PANIC").is_some_and(|name| name == thread || name == pool);
        assert!(!asked, "asked for by a test");
    }
    #[cfg(not(debug_assertions))]
    let _ = thread;
}

/// Starts a thread that returns its panic as an error.
///
/// # Errors
/// The system cannot start another thread.
pub fn spawn<T: Send + 'static, E: From<ThreadFailure> + Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<Spawned<T, E>, ThreadFailure> {
    let of_panics = name.to_owned();
    let work = move || caught(&of_panics, work);
    let Some(simulated) = Simulated::announce(name, false) else {
        let thread = Builder::new().name(name.to_owned()).spawn(work);
        return thread.map(Spawned::OfSystem).map_err(|error| ThreadFailure::not_started(&error));
    };
    let returned = Arc::new(Mutex::new(None));
    let place = Arc::clone(&returned);
    let wake = simulated.waker();
    simulated.start(move || keep(&place, work));
    Ok(Spawned::Simulated { returned, wake })
}

/// A thread that [`spawn`] started.
pub enum Spawned<T, E> {
    /// A thread of the system.
    OfSystem(JoinHandle<Result<T, E>>),
    /// A thread of a simulation.
    Simulated {
        /// Its result once it has ended.
        returned: Returned<Result<T, E>>,
        /// Ends its sleep.
        wake: Box<dyn Fn() + Send + Sync>,
    },
}

/// The result or panic of a simulated thread once it has ended.
type Returned<T> = Arc<Mutex<Option<std::thread::Result<T>>>>;

/// Runs the work of a simulated thread, and keeps its result.
fn keep<T>(place: &Mutex<Option<std::thread::Result<T>>>, work: impl FnOnce() -> T) {
    let done = catch_unwind(AssertUnwindSafe(work));
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
}

impl<T, E: From<ThreadFailure>> Spawned<T, E> {
    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        match self {
            Self::OfSystem(thread) => thread.is_finished(),
            Self::Simulated { returned, .. } => {
                returned.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            }
        }
    }

    /// Ends its [`park`](turns::park).
    pub fn wake(&self) {
        match self {
            Self::OfSystem(thread) => thread.thread().unpark(),
            Self::Simulated { wake, .. } => wake(),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The error of its work, or its panic.
    pub fn join(self) -> Result<T, E> {
        let returned = match self {
            Self::OfSystem(thread) => thread.join(),
            Self::Simulated { returned, .. } => {
                let ended = || returned.lock().unwrap_or_else(PoisonError::into_inner).take();
                turns::wait_for(ended, || -> std::thread::Result<_> { Err(Box::new("it did not end")) })
            }
        };
        returned.unwrap_or_else(|panic| Err(ThreadFailure::panicked("at its end", panic.as_ref()).into()))
    }
}

/// A thread of a scope, which [`joined`] waits for.
#[derive(Debug)]
pub struct ScopedThread<'scope, T>(Kind<'scope, T>);

#[derive(Debug)]
enum Kind<'scope, T> {
    OfSystem(ScopedJoinHandle<'scope, T>),
    /// A thread of a simulation, with its result or panic once it has ended.
    Simulated {
        name: String,
        returned: Returned<T>,
    },
}

impl<T> ScopedThread<'_, T> {
    /// The system's handle, to wake it; `None` in a simulation.
    fn handle(&self) -> Option<&Thread> {
        match &self.0 {
            Kind::OfSystem(thread) => Some(thread.thread()),
            Kind::Simulated { .. } => None,
        }
    }
}

/// For threads that the caller started, for example with another stack size.
impl<'scope, T> From<ScopedJoinHandle<'scope, T>> for ScopedThread<'scope, T> {
    fn from(thread: ScopedJoinHandle<'scope, T>) -> Self {
        Self(Kind::OfSystem(thread))
    }
}

/// Starts a thread of a scope that returns its panic as an error.
///
/// # Errors
/// The system cannot start another thread.
pub fn spawn_scoped<'scope, T: Send + 'scope, E: From<ThreadFailure> + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'scope,
) -> Result<ScopedThread<'scope, Result<T, E>>, ThreadFailure> {
    let of_panics = name.to_owned();
    start(scope, name, move || caught(&of_panics, work))
}

/// Starts a thread of a scope, or of a simulation.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedThread<'scope, T>, ThreadFailure> {
    let Some(simulated) = Simulated::announce(name, true) else {
        let thread = Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| ThreadFailure::not_started(&error))?;
        return Ok(ScopedThread(Kind::OfSystem(thread)));
    };
    let returned = Arc::new(Mutex::new(None));
    let place = Arc::clone(&returned);
    simulated.start(move || keep(&place, work));
    Ok(ScopedThread(Kind::Simulated { name: name.to_owned(), returned }))
}

/// Waits for a thread that [`spawn_scoped`] started, and returns its result.
///
/// # Errors
/// The error of its work, or its panic.
pub fn joined<T, E: From<ThreadFailure>>(thread: ScopedThread<'_, Result<T, E>>) -> Result<T, E> {
    let (name, returned) = match thread.0 {
        Kind::OfSystem(thread) => (thread.thread().name().unwrap_or_default().to_owned(), thread.join()),
        Kind::Simulated { name, returned } => {
            turns::wait_for_scope();
            let returned = returned.lock().unwrap_or_else(PoisonError::into_inner).take();
            (name, returned.unwrap_or_else(|| Err(Box::new("it did not end"))))
        }
    };
    returned.unwrap_or_else(|panic| Err(ThreadFailure::panicked(&name, panic.as_ref()).into()))
}

/// What the threads of a job have done.
struct Job<'a, T, E> {
    stop: &'a AtomicBool,
    done: Mutex<Vec<T>>,
    failure: Mutex<Option<E>>,
}

impl<'a, T, E: From<ThreadFailure>> Job<'a, T, E> {
    fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, done: Mutex::default(), failure: Mutex::new(None) }
    }

    fn run(&self, thread: &str, work: impl FnOnce() -> Result<T, E>) {
        match caught(thread, work) {
            Ok(done) => self.done.lock().unwrap_or_else(PoisonError::into_inner).push(done),
            Err(error) => self.fail(error),
        }
    }

    /// Keeps the first error. Those that follow may be of threads that were stopped.
    fn fail(&self, error: E) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Relaxed);
    }

    fn result(self) -> Result<Vec<T>, E> {
        let done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(done), Err)
    }
}

/// Calls `work` with each of the numbers on a separate thread, named `NAME-NUMBER`. Returns the results, in no
/// order. The first error raises `stop`, on which the work of the other threads has to end. Where the system does not
/// start all threads, those that it starts do the work.
///
/// # Errors
/// The first error of `work`, or its panic; not one thread can be started.
pub fn on_threads<T: Send, E: From<ThreadFailure> + Send>(
    name: &str,
    numbers: Range<usize>,
    stop: &AtomicBool,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let job = Job::new(stop);
    scope(|scope| {
        for number in numbers.clone() {
            if let Err(error) = job.start(scope, format!("{name}-{number}"), number, &work) {
                if number == numbers.start {
                    job.fail(error.into());
                }
                break;
            }
        }
    });
    job.result()
}

impl<T: Send, E: From<ThreadFailure> + Send> Job<'_, T, E> {
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        name: String,
        number: usize,
        work: &'scope (impl Fn(usize) -> Result<T, E> + Sync),
    ) -> Result<(), ThreadFailure> {
        let thread = name.clone();
        start(scope, &name, move || self.run(&thread, || work(number))).map(drop)
    }
}

/// Runs `work` while a thread runs `companion`. The companion's flag is raised when `work` ends or panics, and the
/// companion then has to end soon. Its result is missing if its thread panicked or could not be started: the work
/// does not need it.
pub fn beside<C: Send, T>(
    name: &str,
    companion: impl FnOnce(&AtomicBool) -> C + Send,
    work: impl FnOnce() -> T,
) -> (T, Option<C>) {
    let over = AtomicBool::new(false);
    scope(|scope| {
        let accompany = || Ok::<_, ThreadFailure>(companion(&over));
        let thread = spawn_scoped(scope, name, accompany).ok();
        let ended = Over { flag: &over, companion: thread.as_ref().and_then(ScopedThread::handle).cloned() };
        let done = work();
        drop(ended);
        (done, thread.and_then(|thread| joined(thread).ok()))
    })
}

/// Raises a flag when it is dropped, and wakes the thread that looks at it.
struct Over<'a> {
    flag: &'a AtomicBool,
    companion: Option<Thread>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Relaxed);
        if let Some(thread) = &self.companion {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works until the flag is raised.
    fn until(stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_panic_stops_the_other_threads_and_is_the_error() {
        let stop = AtomicBool::new(false);
        let work = |number| match number {
            2 => panic!("at {number}"),
            _ => {
                until(&stop);
                Ok::<(), ThreadFailure>(())
            }
        };
        let failed = on_threads("worker", 1..4, &stop, work).unwrap_err();
        assert_eq!(failed.what(), "the thread worker-2 panicked: at 2");
        assert!(failed.is_panic() && failed.advice().contains("report it"));
    }

    #[test]
    fn the_first_error_is_returned_and_not_what_follows_from_it() {
        let stop = AtomicBool::new(false);
        let work = |number| match number {
            3 => Err(io::Error::other("the reason")),
            _ => {
                until(&stop);
                Err::<(), _>(io::Error::other("stopped"))
            }
        };
        assert_eq!(on_threads("worker", 1..5, &stop, work).unwrap_err().to_string(), "the reason");
    }

    #[test]
    fn all_results_are_returned() {
        let stop = AtomicBool::new(false);
        let mut numbers = on_threads("worker", 1..5, &stop, Ok::<_, ThreadFailure>).unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(!stop.load(Relaxed));
    }

    #[test]
    fn a_companion_ends_with_the_work_even_if_that_panics() {
        let worked = beside("companion", until, || 7);
        assert_eq!(worked, (7, Some(())));
        let panicked =
            caught::<_, ThreadFailure>("worker", || Ok(beside("companion", until, || panic!("in the work"))));
        assert_eq!(panicked.unwrap_err().what(), "the thread worker panicked: in the work");
        let (done, lost) = beside("companion", |_| -> u8 { panic!("in the companion") }, || 8);
        assert_eq!((done, lost), (8, None));
    }

    #[test]
    fn a_thread_that_panicked_can_be_joined() {
        let failed = std::thread::scope(|scope| {
            let thread = spawn_scoped(scope, "alone", || -> Result<(), ThreadFailure> { panic!("early") });
            thread.and_then(joined)
        });
        assert_eq!(failed.unwrap_err().what(), "the thread alone panicked: early");
        let failed = spawn("free", || -> io::Result<()> { panic!("late") }).unwrap().join();
        assert!(failed.unwrap_err().to_string().starts_with("the thread free panicked: late"));
    }
}
