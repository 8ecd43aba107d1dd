//! A load that several processes share: which units each of them loads.
//!
//! The plan of a load follows from its source and from the size of units that the target has on record, so every
//! process computes the same plan and takes its share of it, without talking to the others.

use std::fmt;

use sawmill_source::Unit;
use serde::Serialize;

/// The share of a load that a run does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    #[default]
    Whole,
    /// One part; the load is not finished.
    Part(Part),
    /// The end of the load, if all units are loaded: verifies if requested, and puts the table in its place.
    Finish,
}

/// One of several parts of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    number: u32,
    of: u32,
}

impl Part {
    /// The most parts of a load.
    pub const MAX: u32 = 10_000;

    /// Part `number` of `of` parts, counted from 1. `None` if `number` is out of range, or `of` exceeds
    /// [`MAX`](Self::MAX).
    pub fn new(number: u32, of: u32) -> Option<Self> {
        ((1..=of).contains(&number) && of <= Self::MAX).then_some(Self { number, of })
    }

    /// Its number, from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The number of parts.
    pub fn parts(self) -> u32 {
        self.of
    }

    /// The part that has row number `row` of `rows`.
    fn holding(self, row: u64, rows: u64) -> u32 {
        let at = u128::from(row) * u128::from(self.of) / u128::from(rows.max(1));
        (at as u32).min(self.of - 1) + 1
    }

    /// The units of this part: neighbours, with about as many rows as each other part. With `whole` no run is
    /// divided between parts.
    pub(crate) fn of_runs(self, runs: Vec<Vec<Unit>>, whole: bool) -> Vec<Vec<Unit>> {
        // A source that does not know its rows has units of at least one.
        let weight = |unit: &Unit| unit.rows.max(1);
        let total: u64 = runs.iter().flatten().map(weight).sum();
        let mut before = 0;
        let mut own = Vec::new();
        for run in runs {
            let of_run = self.holding(before, total);
            let units = run.into_iter().filter(|unit| {
                let of_unit = if whole { of_run } else { self.holding(before, total) };
                before += weight(unit);
                of_unit == self.number
            });
            own.push(units.collect::<Vec<_>>());
        }
        own.retain(|units| !units.is_empty());
        own
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The records of all parts of a load.
#[derive(Clone, Debug, Serialize)]
pub struct PartReport {
    /// The part that this run loaded.
    pub part: Part,
    /// Units of all parts.
    pub units: u64,
    /// Units on record when this part had ended.
    pub units_recorded: u64,
    /// Their rows.
    pub rows_recorded: u64,
}

impl PartReport {
    /// Adds the same part of other files.
    pub(crate) fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.units_recorded += other.units_recorded;
        self.rows_recorded += other.rows_recorded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sawmill_source::UnitKey;

    fn plan(lengths: &[Vec<u64>]) -> Vec<Vec<Unit>> {
        let unit = |file: usize, at: usize, rows| {
            let key = UnitKey { file: file as u32, row_group: 0, first_row: at as u64 * 1_000 };
            Unit { key, rows, bytes: rows }
        };
        let of_file = |(file, rows): (usize, &Vec<u64>)| {
            rows.iter().enumerate().map(|(at, rows)| unit(file, at, *rows)).collect()
        };
        lengths.iter().enumerate().map(of_file).collect()
    }

    proptest! {
        #[test]
        fn each_unit_is_in_exactly_one_part(
            lengths in prop::collection::vec(prop::collection::vec(0..1_000u64, 0..9), 0..9),
            parts in 1..12u32,
            whole in any::<bool>(),
        ) {
            let runs = plan(&lengths);
            let of_parts = (1..=parts).flat_map(|number| {
                Part::new(number, parts).unwrap().of_runs(runs.clone(), whole).into_iter().flatten()
            });
            let mut keys: Vec<_> = of_parts.map(|unit| unit.key).collect();
            keys.sort_unstable();
            let mut planned: Vec<_> = runs.iter().flatten().map(|unit| unit.key).collect();
            planned.sort_unstable();
            prop_assert_eq!(keys, planned);
        }
    }

    #[test]
    fn parts_have_about_as_many_rows() {
        let runs = plan(&[vec![100; 40], vec![100; 60]]);
        for number in 1..=4 {
            let units = Part::new(number, 4).unwrap().of_runs(runs.clone(), false);
            assert_eq!(units.iter().flatten().map(|unit| unit.rows).sum::<u64>(), 2_500);
        }
    }

    #[test]
    fn a_run_that_is_whole_stays_in_one_part() {
        let runs = plan(&[vec![10; 5], vec![10; 5], vec![10; 5]]);
        for number in 1..=2 {
            let units = Part::new(number, 2).unwrap().of_runs(runs.clone(), true);
            assert!(units.iter().all(|run| run.len() == 5));
        }
    }

    #[test]
    fn there_is_no_part_zero_and_none_after_the_last() {
        assert_eq!(Part::new(0, 4), None);
        assert_eq!(Part::new(5, 4), None);
        assert_eq!(Part::new(1, 0), None);
        assert_eq!(Part::new(4, 4).map(|part| part.to_string()).as_deref(), Some("4/4"));
    }
}
