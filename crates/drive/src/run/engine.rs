//! The engine of a run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sawmill_localpg::LocalPg;
use sawmill_profile::{Machine, Sampler, SamplerOptions, Timeline, format_duration};
use sawmill_source::{Error, Kind, Result};

use crate::arrivals::process::Arrivals;
use crate::arrivals::schedule::{Schedule, Spread};
use crate::arrivals::shape::{RateClock, Stretch};
use crate::arrivals::trace::Trace;
use crate::mix::block::RowMaker;
use crate::observer::Observer;
use crate::plan::pooling::Pooling;
use crate::plan::types::{ChaosAction, Pace, Plan, PlanTable, Work};
use crate::result::file::{DriveResult, DriverReport, FORMAT, RunDescription, VERSION};
use crate::result::proof::Proof;
use crate::result::second::{Second, ServerSample};
use crate::run::capacity::capacity;
use crate::run::connection::Shared;
use crate::run::course::{Course, Happened};
use crate::run::queue::Queue;
use crate::run::recorder::{Recorder, Samples};
use crate::run::verdict;
use crate::run::watching::Watching;
use crate::work::rows::{Rows, SharedTable};
use crate::work::target::{Address, Session, Target};

/// How often to check whether it is time to start.
const LOOK_AT_CLOCK: Duration = Duration::from_millis(50);
/// How long a run continues after its end, for operations that were due before: as long as the run was, within
/// these limits.
const GRACE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Everything that a run needs besides its plan.
pub struct Driving<'a> {
    /// The target of operations.
    pub address: &'a Address,
    /// The server, if this process started it: for chaos.
    pub server: Option<&'a mut LocalPg>,
    /// If set, the run ends, and its result is marked as interrupted.
    pub cancel: &'a AtomicBool,
    /// The observer of the run.
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
    check_chaos(plan, driving.server.is_some())?;
    let target = driving.address.target(plan, driving.cancel)?;
    let tables = tables_of(plan)?;
    if plan.proof && plan.part.1 > 1 && !plan.checks.is_empty() {
        return Err(Error::new(Kind::Config, "checks in a part of a run: other parts may still write")
            .at("--part")
            .advise("drive in one process, or give --no-proof and carry `checks` out by hand"));
    }
    let capacity = capacity(plan, driving.cancel)?;
    target.set_up(plan, &tables, driving.cancel)?;
    run_on(plan, target.as_ref(), &tables, capacity, driving)
}

/// Whether the plan's chaos can happen: a server that was never disturbed has survived nothing.
pub(super) fn check_chaos(plan: &Plan, starts_server: bool) -> Result<()> {
    let Some(chaos) = &plan.chaos else { return Ok(()) };
    let refused = |what: &str, advice: &str| {
        let what = format!("{} every {}: {what}", chaos.action, format_duration(chaos.every));
        Err(Error::new(Kind::Config, what).at("--chaos").advise(advice))
    };
    if !starts_server && !matches!(chaos.action, ChaosAction::Command(_)) {
        let advice = "give --to local, or a command of your own: --chaos 'docker restart db every 1m'";
        return refused("this command did not start the server", advice);
    }
    let (_, length, _) = schedule(plan)?;
    if chaos.every >= plan.warm_up + length {
        return refused(
            "the run ends before the first time",
            "drive for longer (--for), or do it more often",
        );
    }
    Ok(())
}

pub(crate) fn tables_of(plan: &Plan) -> Result<Arc<Vec<Arc<SharedTable>>>> {
    let works = || plan.operations.iter().flat_map(|operation| &operation.steps);
    let table = |(place, table): (usize, &PlanTable)| {
        let maker = RowMaker::new(Arc::clone(&table.dataset), plan.seed)?;
        let undeclared = plan.operations.iter().find(|operation| operation.may_write(place, &table.name));
        let undeclared = undeclared.map(|operation| operation.name.clone());
        let upserts =
            works().any(|work| matches!(work, Work::Insert { table, upsert: true, .. } if *table == place));
        Ok(SharedTable::new(table.name.clone(), maker, plan.part, undeclared, upserts))
    };
    Ok(Arc::new(plan.tables.iter().enumerate().map(table).collect::<Result<_>>()?))
}

/// The schedule, how long the counted part of it is, and the rate over time.
fn schedule(plan: &Plan) -> Result<(Schedule, Duration, Option<RateClock>)> {
    let weights = plan.weights()?;
    let length = plan.counted_length();
    match &plan.pace {
        Pace::Closed { .. } => Ok((Schedule::new(Spread::Closed, weights, plan.seed), length, None)),
        Pace::Open { arrivals: Arrivals::Trace(path), .. } => {
            let names: Vec<String> = plan.operations.iter().map(|operation| operation.name.clone()).collect();
            let (trace, end) = Trace::open(path, &names, plan.part)?;
            let whole = plan.warm_up.as_secs_f64().max(end + 0.001);
            let length = Duration::from_secs_f64((whole - plan.warm_up.as_secs_f64()).max(0.001));
            Ok((Schedule::new(Spread::Trace(Box::new(trace)), weights, plan.seed), length, None))
        }
        Pace::Open { shape, arrivals } => {
            let share = |stretch: Stretch| Stretch {
                from: stretch.from / plan.part.1 as f64,
                to: stretch.to / plan.part.1 as f64,
                ..stretch
            };
            let stretches = shape.stretches(plan.warm_up.as_secs_f64(), length.as_secs_f64());
            let clock = RateClock::new(stretches.into_iter().map(share).collect());
            let schedule = Schedule::open(clock.clone(), arrivals, weights, plan.seed, plan.part);
            Ok((schedule, length, Some(clock)))
        }
    }
}

/// Runs on tables that are set up.
pub(crate) fn run_on(
    plan: &Plan,
    target: &dyn Target,
    tables: &Arc<Vec<Arc<SharedTable>>>,
    capacity: Option<f64>,
    driving: Driving<'_>,
) -> Result<DriveResult> {
    let Driving { server, cancel, observer, command, .. } = driving;
    let (schedule, length, clock) = schedule(plan)?;
    let connections = plan.parallel();
    let description = describe(plan, target, connections, length);
    let sessions = open_sessions(plan, target, tables, cancel)?;
    let samples: Vec<Samples> = (0..connections).map(|_| Samples::default()).collect();
    if let Some(at) = plan.start_at {
        wait_for(at, cancel)?;
    }
    observer.started(&description);
    let now = SystemTime::now();
    let started = sawmill_profile::utc_text(now);
    let whole = plan.warm_up + length;
    let ends = [whole, whole + length.clamp(GRACE[0], GRACE[1])];
    let shared = Shared::new(plan, plan.pace.clone(), Queue::new(schedule, connections), ends, cancel)?;
    let mut recorder = Recorder::new(&description.operations, plan.warm_up);
    let sampler = SamplerOptions::new().interval(Duration::from_secs(1)).started(shared.began);
    let sampler =
        target.listener().and_then(|listener| Sampler::start(sampler.watch("server", &listener)).ok());
    let course = Course {
        plan,
        target,
        tables,
        shared: &shared,
        samples: &samples,
        warm_up: plan.warm_up,
        chaos: plan.chaos.as_ref(),
    };
    let watching =
        Watching::new(&description, &mut recorder, clock.as_ref(), &mut *observer, &plan.abort_when);
    let mut happened = course.run(sessions, server, watching)?;
    if let Some(sampler) = sampler {
        add_processes(&mut happened.seconds, &sampler.stop());
    }
    let mut result = result_of(plan, &mut recorder, happened, description, cancel.load(Relaxed));
    result.began = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    (result.started, result.command, result.versions) = (started, command, target.versions());
    result.versions.insert("sawmill".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    result.driver.capacity = capacity;
    result.invalid_because = verdict::objections(&result);
    result.valid = result.invalid_because.is_empty();
    result.limits = plan.limits.iter().map(|limit| limit.judge(&result)).collect();
    if plan.proof && target.keeps_rows() && !result.interrupted {
        prove(&mut result, plan, target, tables, cancel);
    }
    if plan.drop_after {
        tear_down(target, tables, &result, cancel)?;
    }
    observer.ended(&result);
    Ok(result)
}

/// Drops the tables. Rows that were not looked for may be looked for by hand.
pub(super) fn tear_down(
    target: &dyn Target,
    tables: &[Arc<SharedTable>],
    result: &DriveResult,
    cancel: &AtomicBool,
) -> Result<()> {
    let looked_for = !result.interrupted && result.proof.iter().all(|proof| proof.unchecked.is_none());
    if looked_for { target.tear_down(tables, cancel) } else { Ok(()) }
}

/// Looks for the rows of each table, and carries out the plan's checks. The figures of a run stay when that fails.
pub(super) fn prove(
    result: &mut DriveResult,
    plan: &Plan,
    target: &dyn Target,
    tables: &[Arc<SharedTable>],
    cancel: &AtomicBool,
) {
    let one = |table: &Arc<SharedTable>| match target.prove(table, cancel) {
        Ok(proof) => proof,
        Err(error) => {
            Proof { table: table.name.clone(), unchecked: Some(error.to_string()), ..Proof::default() }
        }
    };
    let checks = plan.checks.iter();
    let checks = checks.map(|check| Proof::of_check(&check.name, target.query(&check.sql, cancel)));
    result.proof = tables.iter().map(one).chain(checks).collect();
    result.run.proves = result.proof.iter().map(Proof::place).collect();
}

/// The figures of a run; nothing is judged yet.
fn result_of(
    plan: &Plan,
    recorder: &mut Recorder,
    happened: Happened,
    run: RunDescription,
    interrupted: bool,
) -> DriveResult {
    let length = Duration::from_secs_f64(run.duration);
    let ended_early = interrupted || happened.aborted.is_some();
    let seconds = counted(&happened, recorder.last_end, plan.warm_up, length, ended_early);
    let (total, operations) = recorder.results(seconds);
    let cpu = happened.cpu.as_secs_f64();
    let counted = [plan.warm_up, plan.warm_up + length].map(|at| at.as_nanos() as u64);
    let pauses = happened.pauses.iter().map(|pause| pause.between(counted[0], counted[1]));
    let pauses: Vec<u64> = pauses.filter(|length| *length > 0).collect();
    let driver = recorder.driver(run.connections);
    DriveResult {
        format: FORMAT.to_owned(),
        version: VERSION,
        machine: Machine::this(),
        run,
        interrupted,
        aborted: happened.aborted,
        driver: DriverReport {
            cpu,
            cpu_us_per_operation: cpu * 1e6 / (total.intended as f64).max(1.0),
            pauses: pauses.len() as u64,
            paused: pauses.iter().sum::<u64>() as f64 / 1e9,
            ..driver
        },
        total,
        operations,
        seconds: happened.seconds,
        chaos: happened.chaos,
        ..DriveResult::default()
    }
}

/// Opens all connections before the start, because connecting is not measured.
fn open_sessions<'a>(
    plan: &'a Plan,
    target: &'a dyn Target,
    tables: &Arc<Vec<Arc<SharedTable>>>,
    cancel: &'a AtomicBool,
) -> Result<Vec<Box<dyn Session + 'a>>> {
    let open = |stream| {
        let mut session = target.session(plan, Rows::new(tables, plan.seed, stream), cancel)?;
        // Without a pool, each operation opens a connection.
        if plan.pooling != Pooling::None {
            session.open()?;
        }
        Ok(session)
    };
    (0..plan.parallel() as u64).map(open).collect()
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
        std::thread::sleep(left.min(LOOK_AT_CLOCK));
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
        isolation: plan.isolation.clone(),
        plan: hash(plan),
        part: (plan.part.1 > 1).then(|| format!("{}/{}", plan.part.0, plan.part.1)),
        operations: plan.operations.iter().map(|operation| operation.name.clone()).collect(),
        proves: Vec::new(),
    }
}

/// A hash of what the plan does: parts of one run have the same one.
fn hash(plan: &Plan) -> String {
    let Plan { tables, operations, timeout, retries, pooling, reconnect, .. } = plan;
    let tables = tables.iter().map(|table| (&table.name, table.dataset.spec_hash(), table.rows, &table.with));
    let tables: Vec<_> = tables.collect();
    let text = format!("{tables:?} {operations:?} {timeout:?} {retries} {pooling:?} {reconnect:?}");
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Seconds that count after the warm-up: as planned, or longer, to the end of the last operation, without pauses of this
/// process; or to where the run was ended.
fn counted(
    happened: &Happened,
    last_end: u64,
    warm_up: Duration,
    length: Duration,
    ended_early: bool,
) -> f64 {
    let reached = happened.seconds.last().map_or(0.0, |second| second.at - warm_up.as_secs_f64()).max(0.0);
    let end = (warm_up + length).as_nanos() as u64;
    let paused: u64 = happened.pauses.iter().map(|pause| pause.between(end, last_end)).sum();
    let last_end = Duration::from_nanos(last_end.saturating_sub(paused));
    let planned = last_end.saturating_sub(warm_up).max(length).as_secs_f64();
    if ended_early { reached } else { planned }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pulse::Pause;

    #[test]
    fn a_pause_of_the_driver_after_the_last_start_makes_no_rate_lower() {
        let second = 1_000_000_000;
        let happened = Happened {
            pauses: vec![
                Pause { at: second, length: second / 2 },
                Pause { at: 3 * second, length: 3 * second },
            ],
            ..Happened::default()
        };
        let [warm_up, length] = [1, 2].map(Duration::from_secs);
        let seconds = |last_end| counted(&happened, last_end, warm_up, length, false);
        assert_eq!((seconds(3 * second), seconds(6 * second + second / 4)), (2.0, 2.25));
        assert_eq!(seconds(6 * second - second / 4), 2.0, "the pause outlasted the last operation");
    }
}
