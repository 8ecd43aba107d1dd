//! Counts a load's progress: the units whose commit the target confirmed, and their content sum.
//!
//! A confirmed commit may be lost. A server that does not flush its log (`synchronous_commit = off`), or a
//! lagging replica that was promoted, comes back without the last commits. The loader therefore keeps a list
//! of units, and asks the target after each lost connection which of them it still has.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sawmill_profile::turns;
use sawmill_source::{Control, Result, Source, Unit, UnitKey};

use crate::engine::target::{Arrived, Session};
use crate::engine::verification::Tally;

/// The units that the workers have committed so far.
pub(crate) struct Progress {
    pub bytes_sent: AtomicU64,
    pub retries: AtomicU64,
    counted: Mutex<Counted>,
    /// Held by the worker that asks the target for its units.
    asking: Mutex<()>,
}

#[derive(Default)]
struct Counted {
    total: Tally,
    units: HashMap<UnitKey, Arrived>,
    /// Units that earlier runs committed.
    before: HashSet<UnitKey>,
    rows_before: u64,
    /// Units that were counted in this run and are sent again: the target lost them, or asks for them once more.
    sent_again: HashSet<UnitKey>,
    units_lost: u64,
    rows_lost: u64,
}

impl Progress {
    /// Starts a run whose target already holds `known` units.
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

    /// The totals of the counted units.
    pub(crate) fn total(&self) -> Tally {
        self.counted().total.clone()
    }

    /// Rows of earlier runs that the target still holds.
    pub(crate) fn rows_before(&self) -> u64 {
        self.counted().rows_before
    }

    /// Units and rows that were counted and that the target then lost.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let counted = self.counted();
        (counted.units_lost, counted.rows_lost)
    }

    /// Whether the unit was counted before and is sent again.
    pub(crate) fn is_sent_again(&self, key: UnitKey) -> bool {
        self.counted().sent_again.contains(&key)
    }

    pub(crate) fn committed(&self, arrived: &Arrived) {
        self.counted().add(arrived.clone());
    }

    pub(crate) fn sent(&self, bytes: u64, control: &Control<'_>) {
        self.bytes_sent.fetch_add(bytes, Relaxed);
        control.phase().add_bytes(bytes);
    }

    /// Asks the target which of the counted units it still holds. Stops counting the others and returns them
    /// to be sent again, divided and ordered as in the plan.
    ///
    /// # Errors
    /// A lost connection; a different server at the same address.
    pub(crate) fn take_off_lost(
        &self,
        source: &dyn Source,
        session: &dyn Session,
        control: &Control<'_>,
    ) -> Result<Vec<Vec<Unit>>> {
        let _asking = turns::lock(&self.asking);
        // Units counted from here on may be missing from the answer.
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
        Ok(planned(&gone, source, session.unit_rows()))
    }

    /// Takes off units that are sent again although the target has not lost them. Returns them divided and
    /// ordered as in the plan.
    pub(crate) fn take_back(&self, units: &[UnitKey], source: &dyn Source, unit_rows: u64) -> Vec<Vec<Unit>> {
        if units.is_empty() {
            return Vec::new();
        }
        let mut counted = self.counted();
        units.iter().for_each(|key| drop(counted.remove(*key)));
        planned(&units.iter().copied().collect(), source, unit_rows)
    }
}

/// These units of the plan.
fn planned(units: &HashSet<UnitKey>, source: &dyn Source, unit_rows: u64) -> Vec<Vec<Unit>> {
    let mut runs = source.plan(unit_rows);
    runs.iter_mut().for_each(|run| run.retain(|unit| units.contains(&unit.key)));
    runs.retain(|run| !run.is_empty());
    runs
}

impl Counted {
    fn add(&mut self, arrived: Arrived) {
        self.total.add(&arrived.tally);
        self.units.insert(arrived.unit.key, arrived);
    }

    fn remove(&mut self, key: UnitKey) -> Option<Arrived> {
        let arrived = self.units.remove(&key)?;
        self.total = self.total.minus(&arrived.tally);
        match self.before.remove(&key) {
            true => self.rows_before -= arrived.tally.rows,
            false => drop(self.sent_again.insert(key)),
        }
        Some(arrived)
    }

    fn take_off(&mut self, key: UnitKey) -> Option<Arrived> {
        let arrived = self.remove(key)?;
        self.units_lost += 1;
        self.rows_lost += arrived.tally.rows;
        Some(arrived)
    }
}
