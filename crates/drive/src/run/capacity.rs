//! What the driver itself can do: the same operations, made and recorded as fast as possible, and sent nowhere.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sawmill_source::Result;

use crate::arrivals::schedule::Schedule;
use crate::plan::types::{Pace, Plan};
use crate::proof::states::RowState;
use crate::result::file::RunDescription;
use crate::run::connection::Shared;
use crate::run::course::Course;
use crate::run::engine::tables_of;
use crate::run::recorder::{Recorder, Samples};
use crate::run::watching::Watching;
use crate::work::null::NullTarget;
use crate::work::rows::Rows;
use crate::work::target::Target;

/// How long it is measured.
const LENGTH: Duration = Duration::from_millis(150);
/// Before that: threads start, the first rows are made.
const WARM_UP: Duration = Duration::from_millis(25);
/// Earlier rows that operations may choose from, if the plan's tables have them.
const EARLIER: u64 = 100_000;

/// Operations of the plan a second that this process makes and records, with a thread for each processor or for each
/// connection of the plan, if those are fewer.
pub(crate) fn capacity(plan: &Plan, cancel: &AtomicBool) -> Result<f64> {
    let tables = tables_of(plan)?;
    for (table, planned) in tables.iter().zip(&plan.tables) {
        let rows = planned.rows.min(EARLIER);
        (0..rows)
            .filter(|row| table.is_ours(*row))
            .for_each(|row| table.states.set(row, RowState::Acknowledged));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let clients = processors.min(plan.parallel());
    let names: Vec<String> = plan.operations.iter().map(|operation| operation.name.clone()).collect();
    let shared = Shared {
        plan,
        pace: Pace::Closed { clients, think: Duration::ZERO },
        schedule: Mutex::new(Schedule::closed(plan.weights(), plan.seed)),
        weights: plan.weights(),
        began: Instant::now(),
        end: (WARM_UP + LENGTH).as_nanos() as u64,
        deadline: u64::MAX,
        cancel,
        stop: AtomicBool::new(false),
    };
    let mut recorder = Recorder::new(&names, WARM_UP);
    let samples: Vec<Samples> = (0..clients).map(|_| Samples::default()).collect();
    let sessions = (0..clients as u64)
        .map(|stream| NullTarget.session(plan, Rows::new(&tables, plan.seed, stream), cancel));
    let sessions = sessions.collect::<Result<_>>()?;
    let course = Course {
        plan,
        target: &NullTarget,
        tables: &tables,
        shared: &shared,
        samples: &samples,
        warm_up: WARM_UP,
        chaos: None,
    };
    let watching = Watching {
        description: &RunDescription::default(),
        recorder: &mut recorder,
        clock: None,
        observer: &mut (),
        seconds: Vec::new(),
        room: Vec::new(),
        reached: 0.0,
    };
    course.run(sessions, None, watching)?;
    let done: u64 = recorder.operations.iter().map(|operation| operation.intended).sum();
    Ok(done as f64 / LENGTH.as_secs_f64())
}
