//! Decides which worker takes which unit. A worker reads its row group to the end, then takes the largest
//! untouched row group, then the second half of what another worker has left.
//!
//! Reading in sequence matters: a reader that starts in the middle of a row group has to skip the pages
//! before it, and decodes the page at the boundary a second time. Halving lets a file with a single row
//! group feed all connections with no more such jumps than there are workers.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use sawmill_source::Unit;

struct Run {
    units: VecDeque<Unit>,
}

impl Run {
    /// Rows left to take.
    fn rows(&self) -> u64 {
        self.units.iter().map(|unit| unit.rows).sum()
    }
}

/// The runs, and the order in which workers take untouched ones.
struct Runs {
    runs: Vec<Run>,
    untouched: VecDeque<usize>,
}

/// The units that no worker has taken yet.
pub struct Schedule {
    runs: Mutex<Runs>,
    /// A run stays with the worker that began it.
    whole: bool,
}

impl Schedule {
    /// Schedules these runs; the units of a run are read in their order.
    pub fn new(runs: Vec<Vec<Unit>>) -> Self {
        let runs = runs.into_iter().filter(|units| !units.is_empty());
        let runs: Vec<Run> = runs.map(|units| Run { units: units.into() }).collect();
        let mut untouched: Vec<(Reverse<u64>, usize)> =
            runs.iter().enumerate().map(|(i, run)| (Reverse(run.rows()), i)).collect();
        untouched.sort_unstable();
        let untouched = untouched.into_iter().map(|(_, i)| i).collect();
        Self { runs: Mutex::new(Runs { runs, untouched }), whole: false }
    }

    /// A list of units stays with the worker that takes its first unit.
    pub(crate) fn of_whole_runs(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    /// Adds units that have to be sent again, as runs.
    pub(crate) fn put_back(&self, back: Vec<Vec<Unit>>) {
        let Runs { runs, untouched } = &mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for units in back.into_iter().filter(|units| !units.is_empty()) {
            untouched.push_back(runs.len());
            runs.push(Run { units: units.into() });
        }
    }

    /// The unit that a worker takes when it is done with its row group; another worker may be quicker.
    pub(crate) fn upcoming(&self) -> Option<Unit> {
        let Runs { runs, untouched } = &*self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(*untouched.front()?)?.units.front().copied()
    }

    /// The next unit for a worker. `place` belongs to the worker and starts as `None`.
    pub fn next(&self, place: &mut Option<usize>) -> Option<Unit> {
        let Runs { runs, untouched } = &mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unit) = place.and_then(|own| runs.get_mut(own)?.units.pop_front()) {
            return Some(unit);
        }
        let own = match untouched.pop_front() {
            Some(largest) => largest,
            None if self.whole => return None,
            None => {
                let most_left = largest(runs)?;
                let other = &mut runs[most_left].units;
                let later_half = other.split_off(middle(other));
                runs.push(Run { units: later_half });
                runs.len() - 1
            }
        };
        *place = Some(own);
        runs[own].units.pop_front()
    }
}

/// The last unit before which at most half of the rows are.
fn middle(units: &VecDeque<Unit>) -> usize {
    let rows: u64 = units.iter().map(|unit| unit.rows).sum();
    let before = units.iter().scan(0, |before, unit| Some(std::mem::replace(before, *before + unit.rows)));
    before.take_while(|before| before * 2 <= rows).count().saturating_sub(1)
}

/// The run with the most rows left.
fn largest(runs: &[Run]) -> Option<usize> {
    let open = runs.iter().enumerate().filter(|(_, run)| !run.units.is_empty());
    open.max_by_key(|(i, run)| (run.rows(), Reverse(*i))).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawmill_source::UnitKey;

    fn run(file: u32, units: u64) -> Vec<Unit> {
        let unit = |i| Unit { key: UnitKey { file, row_group: 0, first_row: i * 10 }, rows: 10, bytes: 1 };
        (0..units).map(unit).collect()
    }

    #[test]
    fn a_worker_reads_on_in_its_row_group_and_starts_with_the_largest() {
        let schedule = Schedule::new(vec![run(0, 1), run(1, 3)]);
        let mut place = None;
        let order: Vec<_> = std::iter::from_fn(|| schedule.next(&mut place)).map(|unit| unit.key).collect();
        assert_eq!(order.iter().map(|key| key.file).collect::<Vec<_>>(), [1, 1, 1, 0]);
        assert_eq!(order.iter().map(|key| key.first_row).collect::<Vec<_>>(), [0, 10, 20, 0]);
    }

    #[test]
    fn runs_that_are_whole_are_not_shared() {
        let schedule = Schedule::new(vec![run(0, 4), run(1, 2)]).of_whole_runs(true);
        let (mut a, mut b) = (None, None);
        assert_eq!(schedule.next(&mut a).map(|unit| unit.key.file), Some(0));
        let others: Vec<_> = std::iter::from_fn(|| schedule.next(&mut b)).map(|unit| unit.key.file).collect();
        assert_eq!(others, [1, 1]);
        assert_eq!(std::iter::from_fn(|| schedule.next(&mut a)).count(), 3);
    }

    #[test]
    fn units_that_are_put_back_are_taken_once_more() {
        let schedule = Schedule::new(vec![run(0, 2)]);
        let mut place = None;
        assert_eq!(std::iter::from_fn(|| schedule.next(&mut place)).count(), 2);
        schedule.put_back(vec![run(1, 3), run(0, 1)]);
        let again: Vec<_> =
            std::iter::from_fn(|| schedule.next(&mut place)).map(|unit| unit.key.file).collect();
        assert_eq!(again, [1, 1, 1, 0]);
    }

    #[test]
    fn one_row_group_feeds_all_workers_and_every_unit_is_taken_once() {
        let schedule = Schedule::new(vec![run(0, 8)]);
        let (mut a, mut b) = (None, None);
        assert_eq!(schedule.next(&mut a).map(|unit| unit.key.first_row), Some(0));
        // Seven are left: the other worker starts in their middle.
        assert_eq!(schedule.next(&mut b).map(|unit| unit.key.first_row), Some(40));
        let mut rest = Vec::new();
        while let Some(unit) = schedule.next(&mut a).or_else(|| schedule.next(&mut b)) {
            rest.push(unit.key.first_row);
        }
        rest.sort_unstable();
        assert_eq!(rest, [10, 20, 30, 50, 60, 70]);
        assert_eq!(schedule.next(&mut b), None);
    }
}
