//! Runs the threads of a simulation, one at a time, in an order drawn from the seed, in simulated time.
//!
//! Time passes when all threads wait or sleep, and a little with each turn.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use sawmill_profile::turns::{Pause, Process, Socket, Turns};

use super::draw::Draw;
use super::fibers;

/// A run that takes more turns, or longer, waits for ever.
const MAX_TURNS: u64 = 100_000;
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// The wall clock when a run begins, in seconds since 1970.
const BEGIN: u64 = 1_800_000_000;

/// The machines and the network around the threads.
pub trait Site: Send + Sync {
    /// The machine on which a process runs.
    fn machine(&self, process: u32) -> String;
    fn is_running(&self, machine: &str, process: u32) -> bool;
    /// Connects a process to the server.
    fn connect(&self, process: u32) -> io::Result<Box<dyn Socket>>;
}

/// The threads and the clocks of one run.
pub struct Scheduler {
    inner: Mutex<Inner>,
    /// The run has failed: all threads unwind.
    over: AtomicBool,
    base: Instant,
    nanos: AtomicU64,
    /// Seconds by which the wall clock has jumped.
    jumped: AtomicI64,
    site: OnceLock<Weak<dyn Site>>,
}

struct Inner {
    threads: Vec<Slot>,
    /// The thread whose turn it is; `None` if the run is over.
    turn: Option<usize>,
    draw: Draw,
    /// How many times in eight a thread that can continue does so.
    stays: u64,
    turns: u64,
    /// Changes that a blocked thread may have waited for, and ends of threads.
    changes: u64,
    ends: u64,
    failure: Option<String>,
}

struct Slot {
    name: String,
    /// The number of its process.
    process: u32,
    state: State,
    /// It unwinds, because the run is over.
    unwinds: bool,
}

impl Slot {
    fn new(name: &str, process: u32) -> Self {
        Self { name: name.to_owned(), process, state: State::Ready, unwinds: false }
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
            threads: vec![Slot::new("main", 0)],
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
            jumped: AtomicI64::new(0),
            site: OnceLock::new(),
        }
    }

    /// Places the threads on the machines and the network of `site`.
    pub fn settle(&self, site: Weak<dyn Site>) {
        drop(self.site.set(site));
    }

    /// From now on the calling thread, and the threads that it starts, belong to this process.
    pub fn enter(&self, process: u32) {
        self.inner().threads[fibers::current()].process = process;
    }

    /// Lets the wall clock jump by `seconds`.
    pub fn jump(&self, seconds: i64) {
        self.jumped.fetch_add(seconds, SeqCst);
    }

    /// The wall clock of the machines: time since 1970.
    pub fn since_1970(&self) -> Duration {
        let began = BEGIN.saturating_add_signed(self.jumped.load(SeqCst));
        Duration::from_secs(began) + self.elapsed()
    }

    fn own_process(&self) -> u32 {
        self.inner().threads[fibers::current()].process
    }

    fn ask<T>(&self, site: impl FnOnce(&dyn Site) -> T) -> Option<T> {
        self.site.get().and_then(Weak::upgrade).map(|known| site(known.as_ref()))
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
        let process = inner.threads[fibers::current()].process;
        inner.threads.push(Slot::new(name, process));
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
        match self.over.load(SeqCst) {
            // Loops that wait for a time end as well.
            true => self.advance(time),
            false => {
                let until = self.nanos.load(SeqCst) + time.as_nanos() as u64;
                self.give_up(|inner| inner.changed(State::Asleep(until)));
            }
        }
        self.unwind_if_over();
    }

    fn wake(&self, thread: u64) {
        let mut inner = self.inner();
        if let Some(slot) = inner.threads.get_mut(thread as usize)
            && matches!(slot.state, State::Asleep(_))
        {
            slot.state = State::Ready;
        }
    }

    fn now(&self) -> Instant {
        self.base + self.elapsed()
    }

    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.since_1970()
    }

    fn process(&self) -> Process {
        let number = self.own_process();
        Process { machine: self.ask(|site| site.machine(number)).unwrap_or_default(), number }
    }

    fn is_running(&self, process: u32) -> bool {
        let machine = Turns::process(self).machine;
        self.ask(|site| site.is_running(&machine, process)).unwrap_or(false)
    }

    fn connect(&self, _host: &str, _port: u16) -> io::Result<Box<dyn Socket>> {
        let number = self.own_process();
        let unreachable = || Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        self.ask(|site| site.connect(number)).unwrap_or_else(unreachable)
    }
}
