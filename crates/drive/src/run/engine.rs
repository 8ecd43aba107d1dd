//! The engine of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use sawmill_localpg::LocalPg;
use sawmill_profile::{Machine, Sampler, SamplerOptions, Timeline, cpu_time};
use sawmill_source::{Error, Kind, Result};

use crate::arrivals::process::Arrivals;
use crate::arrivals::schedule::Schedule;
use crate::arrivals::shape::{RateClock, Stretch};
use crate::arrivals::trace::Trace;
use crate::mix::block::RowMaker;
use crate::mix::weights::Weights;
use crate::observer::{Observer, Snapshot};
use crate::plan::types::{ChaosAction, Pace, Plan};
use crate::result::file::{DriveResult, DriverReport, FORMAT, RunDescription, VERSION};
use crate::result::second::{ChaosEvent, Second, ServerSample};
use crate::run::connection::{Shared, drive};
use crate::run::recorder::{Recorder, Sample, Samples, under_way};
use crate::run::{chaos, verdict};
use crate::work::rows::{Rows, SharedTable};
use crate::work::target::{Address, Target};

/// How often samples are collected.
const TICK: Duration = Duration::from_millis(50);
/// How long after its end a run goes on with operations that were due before.
const GRACE: Duration = Duration::from_secs(10);
/// A thread of a connection needs little.
const STACK: usize = 512 * 1024;
/// The tick before which no second is too short to be one.
const SECOND: Duration = Duration::from_secs(1);

/// What a run needs besides its plan.
pub struct Driving<'a> {
    /// Where operations go.
    pub address: &'a Address,
    /// The server, if this process started it: for chaos.
    pub server: Option<&'a mut LocalPg>,
    /// Raised, the run ends, and its result is marked as interrupted.
    pub cancel: &'a AtomicBool,
    /// Who watches.
    pub observer: &'a mut dyn Observer,
    /// The command line, for the result.
    pub command: String,
}

/// Runs a plan: sets the tables up, drives, and looks for the rows.
///
/// # Errors
/// The plan does not fit the server, the server cannot be reached or refuses the tables. Errors of operations
/// are counted in the result.
pub fn run(plan: &Plan, driving: Driving<'_>) -> Result<DriveResult> {
    let target = driving.address.target(plan)?;
    let tables = tables_of(plan)?;
    if let (Some(chaos), None) = (&plan.chaos, &driving.server)
        && !matches!(chaos.action, ChaosAction::Command(_))
    {
        return Err(Error::new(
            Kind::Config,
            format!("{}: this command did not start the server", chaos.action),
        )
        .at("--chaos")
        .advise("give --to local, or a command of your own: --chaos 'docker restart db every 1m'"));
    }
    target.set_up(plan, &tables, driving.cancel)?;
    run_on(plan, target.as_ref(), &tables, driving)
}

pub(crate) fn tables_of(plan: &Plan) -> Result<Arc<Vec<Arc<SharedTable>>>> {
    let table = |table: &crate::plan::types::PlanTable| {
        let maker = RowMaker::new(Arc::clone(&table.dataset), plan.seed)?;
        Ok(SharedTable::new(table.name.clone(), maker, plan.part))
    };
    Ok(Arc::new(plan.tables.iter().map(table).collect::<Result<_>>()?))
}

/// The schedule, how long the counted part of it is, and the rate over time.
fn schedule(plan: &Plan) -> Result<(Schedule, Duration, Option<RateClock>)> {
    let weights = Weights::new(&plan.operations.iter().map(|operation| operation.weight).collect::<Vec<_>>());
    let length = plan.counted_length();
    match &plan.pace {
        Pace::Closed { .. } => Ok((Schedule::closed(weights, plan.seed), length, None)),
        Pace::Open { arrivals: Arrivals::Trace(path), .. } => {
            let names: Vec<String> = plan.operations.iter().map(|operation| operation.name.clone()).collect();
            let (trace, end, _) = Trace::open(path, &names)?;
            let whole = plan.warm_up.as_secs_f64().max(end + 0.001);
            let length = Duration::from_secs_f64((whole - plan.warm_up.as_secs_f64()).max(0.001));
            Ok((Schedule::of_trace(trace, weights, plan.seed), length, None))
        }
        Pace::Open { shape, arrivals } => {
            let share = |stretch: Stretch| Stretch {
                from: stretch.from / plan.part.1 as f64,
                to: stretch.to / plan.part.1 as f64,
                ..stretch
            };
            let stretches = shape.stretches(plan.warm_up.as_secs_f64(), length.as_secs_f64());
            let clock = RateClock::new(stretches.into_iter().map(share).collect());
            let schedule = Schedule::open(|| clock.clone(), arrivals, weights, plan.seed, plan.part);
            Ok((schedule, length, Some(clock)))
        }
    }
}

/// Runs on tables that are set up.
pub(crate) fn run_on(
    plan: &Plan,
    target: &dyn Target,
    tables: &Arc<Vec<Arc<SharedTable>>>,
    driving: Driving<'_>,
) -> Result<DriveResult> {
    let Driving { server, cancel, observer, command, .. } = driving;
    let (schedule, length, clock) = schedule(plan)?;
    let connections = match plan.pace {
        Pace::Open { .. } => plan.connections,
        Pace::Closed { clients, .. } => clients,
    };
    let description = describe(plan, target, connections, length);
    // Opened before the start: connecting is not what is measured.
    let mut sessions = Vec::new();
    for stream in 0..connections {
        let mut session = target.session(plan, Rows::new(tables, plan.seed, stream as u64), cancel)?;
        session.open()?;
        sessions.push(session);
    }
    let samples: Vec<Samples> = (0..connections).map(|_| Samples::default()).collect();
    if let Some(at) = plan.start_at {
        wait_for(at, cancel)?;
    }
    observer.started(&description);
    let started = sawmill_profile::utc_text(SystemTime::now());
    let whole = plan.warm_up + length;
    let shared = Shared {
        plan,
        schedule: Mutex::new(schedule),
        began: Instant::now() + Duration::from_millis(20),
        end: whole.as_nanos() as u64,
        deadline: (whole + GRACE.min(length)).as_nanos() as u64,
        cancel,
        stop: AtomicBool::new(false),
    };
    let mut recorder = Recorder::new(&description.operations, plan.warm_up);
    let sampler = SamplerOptions::new().interval(Duration::from_millis(500)).started(shared.began);
    let sampler =
        target.listener().and_then(|listener| Sampler::start(sampler.watch("server", &listener)).ok());
    let over = AtomicBool::new(false);
    let (report, events) = mpsc::channel();
    let latest: Mutex<Option<ServerSample>> = Mutex::default();
    let (mut seconds, mut wreaked, mut cpu) = (Vec::new(), Vec::new(), Duration::ZERO);
    let is_over = || over.load(Relaxed) || shared.is_over();
    let failed = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (mut session, samples) in sessions.into_iter().zip(&samples) {
            let shared = &shared;
            let worker = std::thread::Builder::new().stack_size(STACK).name("connection".to_owned());
            let spawned = worker.spawn_scoped(scope, move || {
                let done = drive(session.as_mut(), shared, samples);
                if done.is_err() {
                    shared.stop.store(true, Relaxed);
                }
                done
            });
            match spawned {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    shared.stop.store(true, Relaxed);
                    return Some(
                        Error::new(
                            Kind::Config,
                            format!("cannot start a thread for each connection: {error}"),
                        )
                        .at(format!("{connections} connections"))
                        .advise("give fewer"),
                    );
                }
            }
        }
        if let Some(chaos) = &plan.chaos {
            let (is_over, began) = (&is_over, shared.began);
            scope.spawn(move || chaos::wreak(chaos, server, began, &report, is_over));
        }
        if let Some(mut ask) = target.watch(plan) {
            let (latest, is_over) = (&latest, &is_over);
            scope.spawn(move || {
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
            });
        }
        let mut watch = Watching {
            description: &description,
            recorder: &mut recorder,
            clock: clock.as_ref(),
            observer,
            seconds: &mut seconds,
            room: Vec::new(),
            reached: 0.0,
        };
        let (mut warm, mut cool) = (None, None);
        loop {
            let ended = workers.iter().all(std::thread::ScopedJoinHandle::is_finished);
            let now = Instant::now().saturating_duration_since(shared.began);
            if warm.is_none() && now >= plan.warm_up {
                warm = Some(cpu_time());
            }
            if cool.is_none() && (now >= whole || ended) {
                cool = Some(cpu_time());
            }
            while let Ok(event) = events.try_recv() {
                let event: ChaosEvent = event;
                watch.observer.chaos(&event);
                wreaked.push(event);
            }
            watch.tick(now, &samples, &latest, ended);
            if ended {
                break;
            }
            std::thread::sleep(TICK);
        }
        over.store(true, Relaxed);
        cpu = cool.unwrap_or_default().saturating_sub(warm.unwrap_or_default());
        workers.into_iter().find_map(|worker| match worker.join() {
            Ok(done) => done.err(),
            Err(_) => Some(
                Error::new(Kind::Source, "a connection's thread panicked")
                    .advise("report this with the plan"),
            ),
        })
    });
    wreaked.extend(events.try_iter());
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(sampler) = sampler {
        add_processes(&mut seconds, &sampler.stop());
    }
    let (total, operations) = recorder.results(counted(&seconds, plan.warm_up, length, cancel.load(Relaxed)));
    let mut result = DriveResult {
        format: FORMAT.to_owned(),
        version: VERSION,
        started,
        command,
        machine: Machine::this(),
        versions: versions(target),
        run: description,
        valid: true,
        interrupted: cancel.load(Relaxed),
        driver: DriverReport {
            cpu: cpu.as_secs_f64(),
            cpu_us_per_operation: cpu.as_secs_f64() * 1e6 / (total.intended as f64).max(1.0),
            lateness: recorder.lateness.clone().into(),
            late_by_server: recorder.late_by_server,
            late_by_driver: recorder.late_by_driver,
            capacity: None,
        },
        total,
        operations,
        seconds,
        chaos: wreaked,
        ..DriveResult::default()
    };
    result.invalid_because = verdict::objections(&result);
    result.valid = result.invalid_because.is_empty();
    result.limits = plan.limits.iter().map(|limit| limit.judge(&result)).collect();
    if plan.proof && target.keeps_rows() && !cancel.load(Relaxed) {
        for table in tables.iter() {
            result.proof.push(target.prove(table, cancel)?);
        }
    }
    if plan.drop_after {
        target.tear_down(tables)?;
    }
    observer.ended(&result);
    Ok(result)
}

fn wait_for(at: SystemTime, cancel: &AtomicBool) -> Result<()> {
    loop {
        let left = at.duration_since(SystemTime::now()).unwrap_or_default();
        if left.is_zero() {
            return Ok(());
        }
        if cancel.load(Relaxed) {
            return Err(Error::cancelled());
        }
        std::thread::sleep(left.min(TICK));
    }
}

fn describe(plan: &Plan, target: &dyn Target, connections: usize, length: Duration) -> RunDescription {
    let (loop_kind, arrivals, shape) = match &plan.pace {
        Pace::Open { arrivals: trace @ Arrivals::Trace(_), .. } => ("open", trace.to_string(), String::new()),
        Pace::Open { arrivals, shape } => ("open", arrivals.to_string(), shape.to_string()),
        Pace::Closed { .. } => ("closed", String::new(), String::new()),
    };
    RunDescription {
        name: plan.name.clone(),
        target: target.name(),
        loop_kind: loop_kind.to_owned(),
        arrivals,
        shape,
        connections: connections as u64,
        warm_up: plan.warm_up.as_secs_f64(),
        duration: length.as_secs_f64(),
        seed: plan.seed,
        part: (plan.part.1 > 1).then(|| format!("{}/{}", plan.part.0, plan.part.1)),
        operations: plan.operations.iter().map(|operation| operation.name.clone()).collect(),
    }
}

fn versions(target: &dyn Target) -> BTreeMap<String, String> {
    let mut versions = target.versions();
    versions.insert("sawmill".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    versions
}

/// Seconds that count: to the end of the last operation, or to an interruption.
fn counted(seconds: &[Second], warm_up: Duration, length: Duration, interrupted: bool) -> f64 {
    let whole = seconds.last().map_or(0.0, |second| second.at - warm_up.as_secs_f64()).max(0.0);
    if interrupted { whole } else { whole.max(length.as_secs_f64()) }
}

/// Collects samples and ends seconds.
struct Watching<'a> {
    description: &'a RunDescription,
    recorder: &'a mut Recorder,
    clock: Option<&'a RateClock>,
    observer: &'a mut dyn Observer,
    seconds: &'a mut Vec<Second>,
    room: Vec<Sample>,
    /// The end of the last second.
    reached: f64,
}

impl Watching<'_> {
    fn tick(
        &mut self,
        now: Duration,
        samples: &[Samples],
        latest: &Mutex<Option<ServerSample>>,
        ended: bool,
    ) {
        for source in samples {
            self.room.clear();
            source.take(&mut self.room);
            self.room.iter().for_each(|sample| self.recorder.count(sample));
        }
        let at = now.as_secs_f64();
        let length = at - self.reached;
        if length < 1.0 - TICK.as_secs_f64() / 2.0 && !(ended && length > 0.0) {
            return;
        }
        let intended = self.clock.map(|clock| clock.between(self.reached, at) / length);
        let mut second = self.recorder.end_second(at, length, 0.0, under_way(samples));
        second.intended = intended.unwrap_or(second.achieved);
        second.server = latest.lock().ok().and_then(|mut latest| latest.take());
        self.reached = at;
        let snapshot = Snapshot {
            run: self.description,
            second: &second,
            intervals: &self.recorder.intervals,
            operations: &self.recorder.operations,
            totals: &self.recorder.totals,
        };
        self.observer.second(&snapshot);
        self.recorder.begin_second();
        self.seconds.push(second);
    }
}

/// Adds what the server's processes used, second by second.
fn add_processes(seconds: &mut [Second], timeline: &Timeline) {
    let usage = |at: f64| {
        let before = timeline.samples.iter().rev().find(|sample| sample.at.as_secs_f64() <= at)?;
        before.watched.first().cloned().flatten().map(|usage| (before.at.as_secs_f64(), usage))
    };
    for second in seconds {
        let (Some((from, earlier)), Some((to, later))) = (usage(second.at - second.length), usage(second.at))
        else {
            continue;
        };
        let sample = second.server.get_or_insert_with(ServerSample::default);
        sample.memory = later.resident;
        if to > from && later.cpu >= earlier.cpu {
            sample.processors = Some((later.cpu - earlier.cpu) / (to - from));
        }
    }
}
