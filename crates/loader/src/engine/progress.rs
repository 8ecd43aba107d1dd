//! What a load counts as done: units whose commit the target has confirmed, and the sum of what they hold.
//!
//! A confirmed commit need not last. A server that does not wait for its log (`synchronous_commit = off`), or a replica
//! that lagged behind and took the place of its primary, comes back without the last of them. So the units are kept one by
//! one, and after each lost connection the target is asked which of them it still has.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sawmill_source::{Control, Result, Source, Unit, UnitKey};

use crate::engine::content_sum::Tally;
use crate::engine::target::{Arrived, Session};

/// What the workers have done so far.
pub(crate) struct Progress {
    pub bytes_sent: AtomicU64,
    pub retries: AtomicU64,
    counted: Mutex<Counted>,
    /// Held by the one that asks the target for its units.
    asking: Mutex<()>,
}

#[derive(Default)]
struct Counted {
    total: Tally,
    units: HashMap<UnitKey, Arrived>,
    /// Units of earlier runs.
    before: HashSet<UnitKey>,
    rows_before: u64,
    /// Units that were counted and are gone, in this run.
    lost: HashSet<UnitKey>,
    units_lost: u64,
    rows_lost: u64,
}

impl Progress {
    /// The beginning of a run that finds these units of a load with so many columns.
    pub(crate) fn new(columns: usize, found: impl IntoIterator<Item = Arrived>) -> Self {
        let mut counted = Counted { total: Tally::empty(columns), ..Counted::default() };
        for arrived in found {
            counted.before.insert(arrived.unit.key);
            counted.rows_before += arrived.tally.rows;
            counted.add(arrived);
        }
        Self {
            bytes_sent: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            counted: Mutex::new(counted),
            asking: Mutex::new(()),
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the counted units hold together.
    pub(crate) fn total(&self) -> Tally {
        self.counted().total.clone()
    }

    /// Rows of earlier runs that are still there.
    pub(crate) fn rows_before(&self) -> u64 {
        self.counted().rows_before
    }

    /// Units and rows that were counted and then lost by the target.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let counted = self.counted();
        (counted.units_lost, counted.rows_lost)
    }

    /// Whether the unit is sent once more, as the target has lost it.
    pub(crate) fn was_lost(&self, key: UnitKey) -> bool {
        self.counted().lost.contains(&key)
    }

    pub(crate) fn committed(&self, arrived: &Arrived) {
        self.counted().add(arrived.clone());
    }

    pub(crate) fn sent(&self, bytes: u64, control: &Control<'_>) {
        self.bytes_sent.fetch_add(bytes, Relaxed);
        control.phase().add_bytes(bytes);
    }

    /// Asks the target which of the counted units it has, and no longer counts the others. These have to be sent again,
    /// cut and ordered as in the plan.
    ///
    /// # Errors
    /// A lost connection; a server that is another one.
    pub(crate) fn take_off_lost(
        &self,
        source: &dyn Source,
        session: &dyn Session,
        control: &Control<'_>,
    ) -> Result<Vec<Vec<Unit>>> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        // What is counted from here on may be missing in the answer.
        let known: Vec<UnitKey> = self.counted().units.keys().copied().collect();
        let Some(recorded) = session.recorded(control)? else { return Ok(Vec::new()) };
        let mut gone: Vec<Arrived> = Vec::new();
        {
            let mut counted = self.counted();
            let missing = known.into_iter().filter(|key| !recorded.contains_key(key));
            gone.extend(missing.filter_map(|key| counted.take_off(key)));
        }
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        session.lost(&gone);
        let gone: HashSet<UnitKey> = gone.iter().map(|arrived| arrived.unit.key).collect();
        let mut runs = source.plan(session.unit_rows());
        runs.iter_mut().for_each(|run| run.retain(|unit| gone.contains(&unit.key)));
        runs.retain(|run| !run.is_empty());
        Ok(runs)
    }
}

impl Counted {
    fn add(&mut self, arrived: Arrived) {
        self.total.add(&arrived.tally);
        self.units.insert(arrived.unit.key, arrived);
    }

    fn take_off(&mut self, key: UnitKey) -> Option<Arrived> {
        let arrived = self.units.remove(&key)?;
        self.total = self.total.minus(&arrived.tally);
        if self.before.remove(&key) {
            self.rows_before -= arrived.tally.rows;
        }
        self.lost.insert(key);
        self.units_lost += 1;
        self.rows_lost += arrived.tally.rows;
        Some(arrived)
    }
}
