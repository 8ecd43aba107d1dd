//! Measures the driver's own capacity: the same operations, made and recorded as fast as possible, and sent
//! nowhere.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sawmill_source::Result;

use crate::arrivals::schedule::{Schedule, Spread};
use crate::mix::block::BLOCK_ROWS;
use crate::mix::pick::Pick;
use crate::plan::types::{Operation, Pace, Plan};
use crate::proof::states::RowState;
use crate::result::file::RunDescription;
use crate::run::connection::Shared;
use crate::run::course::Course;
use crate::run::engine::tables_of;
use crate::run::queue::Queue;
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
const EARLIER: u64 = 16 * BLOCK_ROWS;

/// Operations of the plan a second that this process makes and records, with a thread for each processor or for each
/// connection of the plan, if those are fewer. `None` where that depends on the rows that are chosen: their blocks
/// are more than are kept, so that some have to be made again and again.
pub(crate) fn capacity(plan: &Plan, cancel: &AtomicBool) -> Result<Option<f64>> {
    let tables = tables_of(plan)?;
    for (place, (table, planned)) in tables.iter().zip(&plan.tables).enumerate() {
        let rows = planned.rows.min(EARLIER);
        if picks_evenly(plan, place) {
            // In a run these are made once: their making is not what an operation costs.
            if rows < planned.rows && !table.keeps(planned.rows)? {
                return Ok(None);
            }
            (0..rows).step_by(BLOCK_ROWS as usize).try_for_each(|row| table.make_kept(row))?;
        }
        (0..rows)
            .filter(|row| table.is_ours(*row))
            .for_each(|row| table.states.set(row, RowState::Acknowledged));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let clients = processors.min(plan.parallel());
    let names: Vec<String> = plan.operations.iter().map(|operation| operation.name.clone()).collect();
    let pace = Pace::Closed { clients, think: Duration::ZERO };
    let queue = Queue::new(Schedule::new(Spread::Closed, plan.weights()?, plan.seed), clients);
    let shared = Shared::new(plan, pace, queue, [WARM_UP + LENGTH, Duration::from_nanos(u64::MAX)], cancel)?;
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
    let description = RunDescription::default();
    course.run(sessions, None, Watching::new(&description, &mut recorder, None, &mut (), &[]))?;
    let done: u64 = recorder.operations.iter().map(|operation| operation.intended).sum();
    Ok(Some(done as f64 / LENGTH.as_secs_f64()))
}

/// Whether an operation chooses each earlier row of a table as often as any other.
fn picks_evenly(plan: &Plan, place: usize) -> bool {
    plan.operations.iter().flat_map(Operation::earlier_rows).any(|row| row == (place, Pick::Uniform))
}
