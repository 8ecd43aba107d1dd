//! The threads of a run: connections, chaos, the server's figures, rows made ahead, and the thread that counts.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use sawmill_localpg::LocalPg;
use sawmill_profile::{caught, cpu_time, joined};
use sawmill_source::{Error, Kind, Result};

use crate::plan::types::{Chaos, Operation, Pace, Plan};
use crate::result::second::{ChaosEvent, Second, ServerSample};
use crate::run::chaos;
use crate::run::connection::{STACK, Shared, client_schedule, drive, stand_back, wake_on_time};
use crate::run::pulse::{BEAT, Pause};
use crate::run::recorder::Samples;
use crate::run::watching::Watching;
use crate::work::rows::SharedTable;
use crate::work::target::{Session, Target};

/// How often samples are collected.
const TICK: Duration = Duration::from_millis(50);
/// How often after a tick with more samples than [`MANY`]: few at a time, so that counting them delays no connection
/// that shares a core.
const SHORT_TICK: Duration = Duration::from_millis(10);
const MANY: usize = 100;
/// How often the server is asked for its own figures.
const SECOND: Duration = Duration::from_secs(1);
/// The state that the threads of a run share.
pub(crate) struct Course<'a> {
    pub plan: &'a Plan,
    pub target: &'a dyn Target,
    pub tables: &'a [Arc<SharedTable>],
    pub shared: &'a Shared<'a>,
    pub samples: &'a [Samples],
    /// Until then nothing counts.
    pub warm_up: Duration,
    pub chaos: Option<&'a Chaos>,
}

/// The events of a run.
#[derive(Default)]
pub(crate) struct Happened {
    pub seconds: Vec<Second>,
    pub chaos: Vec<ChaosEvent>,
    /// CPU time of this process while the counted part ran.
    pub cpu: Duration,
    /// When this process did not run.
    pub pauses: Vec<Pause>,
    /// Why the run was ended before its time.
    pub aborted: Option<String>,
}

type Worker<'scope> = ScopedJoinHandle<'scope, Result<()>>;
type Sessions<'a> = Vec<Box<dyn Session + 'a>>;

impl Course<'_> {
    /// Runs to the end.
    ///
    /// # Errors
    /// A thread cannot be started, or a connection failed in a way that ends the run.
    pub(crate) fn run(
        &self,
        sessions: Sessions<'_>,
        server: Option<&mut LocalPg>,
        mut watching: Watching<'_>,
    ) -> Result<Happened> {
        let over = AtomicBool::new(false);
        let is_over = || over.load(Relaxed) || self.shared.is_over();
        let latest: Mutex<Option<ServerSample>> = Mutex::default();
        let (report, events) = unbounded();
        let mut happened = Happened::default();
        std::thread::scope(|scope| {
            let is_over = &is_over;
            let supplies = Supplies { tables: self.tables, over: &over };
            let mut others = self.supply(scope, is_over);
            others.push(self.accompany(scope, "pulse", move || self.beat(is_over))?);
            let workers = self.connect(scope, sessions)?;
            if let Some(chaos) = self.chaos {
                let began = self.shared.began;
                let wreak = move || chaos::wreak(chaos, server, began, &report, is_over);
                others.push(self.accompany(scope, "chaos", wreak)?);
            }
            if let Some(ask) = self.target.watch() {
                let latest = &latest;
                others.push(self.accompany(scope, "watcher", move || ask_each_second(ask, latest, is_over))?);
            }
            self.count(&workers, &mut watching, &events, &latest, &mut happened);
            drop(supplies);
            let mut failed =
                workers.into_iter().chain(others).filter_map(|thread| joined(thread.into()).err());
            failed.next().map_or(Ok(()), Err)
        })?;
        happened.chaos.extend(events.try_iter());
        (happened.seconds, happened.aborted) = (watching.seconds, watching.aborted);
        happened.pauses = self.shared.pulse.pauses();
        Ok(happened)
    }

    /// Notes when this process does not run.
    fn beat(&self, is_over: &dyn Fn() -> bool) {
        wake_on_time();
        loop {
            // Once more after the end: the last operations may have waited for a pause.
            self.shared.pulse.beat(self.shared.now());
            if is_over() {
                return;
            }
            std::thread::sleep(BEAT);
        }
    }

    /// Starts a thread for each table that gets new rows.
    fn supply<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        is_over: &'scope (dyn Fn() -> bool + Sync),
    ) -> Vec<Worker<'scope>> {
        let mut makers = Vec::new();
        for (place, table) in self.tables.iter().enumerate() {
            if self.plan.operations.iter().flat_map(Operation::new_rows).any(|table| table == place) {
                let supply = move || {
                    stand_back();
                    table.supply(is_over);
                    Ok(())
                };
                // Without it connections make rows themselves.
                makers.extend(self.start(scope, "rows", Builder::new(), supply));
            }
        }
        makers
    }

    /// Starts a thread for each connection.
    fn connect<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        sessions: Sessions<'env>,
    ) -> Result<Vec<Worker<'scope>>> {
        let mut workers = Vec::with_capacity(sessions.len());
        for ((mut session, samples), stream) in sessions.into_iter().zip(self.samples).zip(0..) {
            let shared = self.shared;
            let work = move || {
                let own = matches!(shared.pace, Pace::Closed { .. }).then(|| client_schedule(shared, stream));
                drive(session.as_mut(), shared, samples, own)
            };
            let thread = self.start(scope, "connection", Builder::new().stack_size(STACK), work);
            workers.push(thread.map_err(|error| {
                self.not_started(format!("cannot start a thread for each connection: {error}"))
                    .at(format!("{} connections", self.samples.len()))
                    .advise("give fewer")
            })?);
        }
        Ok(workers)
    }

    /// Starts a thread; if its work fails or panics, the run ends.
    fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        name: &'static str,
        thread: Builder,
        work: impl FnOnce() -> Result<()> + Send + 'scope,
    ) -> io::Result<Worker<'scope>> {
        let stop = &self.shared.stop;
        let work = move || caught(name, work).inspect_err(|_| stop.store(true, Relaxed));
        thread.name(name.to_owned()).spawn_scoped(scope, work)
    }

    /// Starts a thread next to the connections; if it panics, the run ends.
    fn accompany<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        name: &'static str,
        work: impl FnOnce() + Send + 'scope,
    ) -> Result<Worker<'scope>> {
        let work = move || {
            work();
            Ok(())
        };
        self.start(scope, name, Builder::new(), work).map_err(|error| {
            self.not_started(format!("cannot start a thread: {error}"))
                .advise("raise the limit on threads (ulimit -u)")
        })
    }

    /// Ends the run for want of a thread.
    fn not_started(&self, what: String) -> Error {
        self.shared.stop.store(true, Relaxed);
        Error::new(Kind::Config, what)
    }

    /// Counts what connections leave until all have ended.
    fn count(
        &self,
        workers: &[Worker<'_>],
        watching: &mut Watching<'_>,
        events: &Receiver<ChaosEvent>,
        latest: &Mutex<Option<ServerSample>>,
        happened: &mut Happened,
    ) {
        let whole = Duration::from_nanos(self.shared.end);
        let (mut warm, mut cool) = (None, None);
        loop {
            let ended = workers.iter().all(ScopedJoinHandle::is_finished);
            let now = Instant::now().saturating_duration_since(self.shared.began);
            if warm.is_none() && now >= self.warm_up {
                warm = Some(cpu_time());
            }
            if cool.is_none() && (now >= whole || ended) {
                cool = Some(cpu_time());
            }
            while let Ok(event) = events.try_recv() {
                watching.observer.chaos(&event);
                happened.chaos.push(event);
            }
            let counted = watching.tick(now, self.samples, latest, &|| self.shared.backlog(), ended);
            if watching.aborted.is_some() {
                self.shared.stop.store(true, Relaxed);
            }
            if ended {
                break;
            }
            std::thread::sleep(if counted > MANY { SHORT_TICK } else { TICK });
        }
        happened.cpu = cool.unwrap_or_default().saturating_sub(warm.unwrap_or_default());
    }
}

/// Ends the threads that make rows ahead when it goes out of scope.
struct Supplies<'a> {
    tables: &'a [Arc<SharedTable>],
    over: &'a AtomicBool,
}

impl Drop for Supplies<'_> {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        self.tables.iter().for_each(|table| table.supply.drain());
    }
}

/// Keeps the latest of the server's own figures.
fn ask_each_second(
    mut ask: Box<dyn FnMut() -> Option<ServerSample> + Send + '_>,
    latest: &Mutex<Option<ServerSample>>,
    is_over: &(dyn Fn() -> bool + Sync),
) {
    while !is_over() {
        let began = Instant::now();
        let sample = ask();
        if let Ok(mut latest) = latest.lock() {
            *latest = sample;
        }
        while began.elapsed() < SECOND && !is_over() {
            std::thread::sleep(TICK);
        }
    }
}
