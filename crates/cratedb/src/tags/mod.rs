//! Exactly once without a key: each request has a tag, which all of its rows carry while they gather.
//!
//! ```text
//!  request ─▶ answer ──────────────────────────────▶ the tag and its rows are recorded with the unit
//!         └─▶ none ─▶ ended, refreshed, counted ─┬─▶ all rows are in: recorded
//!                                                └─▶ sent again under a new tag; the old one is removed
//!  in the end: rows are counted by tag and compared with the records ─▶ the column is dropped
//! ```
//!
//! No tag is used twice, not even by a later run. So a request that arrives late never mixes with the one that
//! was sent in its place: its rows carry a tag that no record has.

pub(crate) mod audit;
pub(crate) mod jobs;
pub(crate) mod version;

use arrow_schema::Schema;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sawmill_source::UnitKey;

/// The rows that one request inserted for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tagged {
    pub tag: i64,
    pub rows: u64,
}

/// The tags of a run, and the rows recorded under them.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    pub column: String,
    run: u64,
    next: AtomicU64,
    connections: AtomicU64,
    in_doubt: AtomicBool,
    recorded: Mutex<Recorded>,
    audited: AtomicU64,
    /// Units that the last audit found lacking, and how many audits in a row found no fewer.
    lacking: Mutex<(usize, u32)>,
}

/// The name of the column that holds tags, which no column of the source has.
pub(crate) fn column_for(schema: &Schema) -> String {
    let is_taken = |name: &str| schema.fields().iter().any(|field| field.name() == name);
    let names = std::iter::once(COLUMN.to_owned()).chain((2..).map(|number| format!("{COLUMN}_{number}")));
    names.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

const COLUMN: &str = "sawmill_batch";

impl Tags {
    /// The tags of a load's `run`th run. `recorded` holds the units of earlier runs.
    pub(crate) fn new(column: &str, run: u64, recorded: Recorded) -> Self {
        // Requests of an earlier run may still be on their way.
        let (in_doubt, recorded) = (AtomicBool::new(run > 1), Mutex::new(recorded));
        Self { column: column.to_owned(), run, in_doubt, recorded, ..Self::default() }
    }

    /// The tags of a load's first run, before which nothing was sent. `run` is 1, or a number that hardly any other statement has.
    pub(crate) fn of_first_run(column: &str, run: u64) -> Self {
        Self { in_doubt: AtomicBool::new(false), ..Self::new(column, run, Recorded::default()) }
    }

    /// A tag that no request has had.
    pub(crate) fn next(&self) -> i64 {
        let number = self.next.fetch_add(1, Relaxed);
        (self.run << 32).saturating_add(number) as i64
    }

    /// A comment by which the server's list of jobs shows the statements of one connection.
    pub(crate) fn next_comment(&self) -> String {
        format!("/* sawmill run {}, connection {} */", self.run, self.connections.fetch_add(1, Relaxed))
    }

    /// Rows may be in the table, or still arrive, that no record will account for.
    pub(crate) fn doubt(&self) {
        self.in_doubt.store(true, Relaxed);
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Relaxed)
    }

    pub(crate) fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an audit found `units` units lacking. Returns how many audits in a row have found no fewer than
    /// the one before.
    pub(crate) fn found_lacking(&self, units: usize) -> u32 {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_row = if lacking.0 > 0 && units >= lacking.0 { lacking.1 + 1 } else { 0 };
        *lacking = (units, in_a_row);
        in_a_row
    }

    /// Notes that an audit found `requests` requests in the table as recorded.
    pub(crate) fn audited(&self, requests: u64) {
        self.audited.store(requests, Relaxed);
    }

    /// How many requests the last audit found.
    pub(crate) fn last_audited(&self) -> u64 {
        self.audited.load(Relaxed)
    }
}

/// The tags under which the rows of units are recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    units: HashMap<UnitKey, Vec<Tagged>>,
}

impl Recorded {
    pub(crate) fn insert(&mut self, unit: UnitKey, tags: Vec<Tagged>) {
        self.units.insert(unit, tags);
    }

    /// The rows of each tag.
    fn rows(&self) -> HashMap<i64, u64> {
        let mut rows = HashMap::new();
        for tagged in self.units.values().flatten() {
            *rows.entry(tagged.tag).or_default() += tagged.rows;
        }
        rows
    }

    /// Removes and returns the units that the table does not have as recorded, judged by its rows of each tag. Also
    /// removes the units that share a request with one of these: a request keeps all of its rows or loses them all.
    pub(crate) fn take_lacking(&mut self, counted: &BTreeMap<Option<i64>, u64>) -> BTreeSet<UnitKey> {
        let mut lacking = BTreeSet::new();
        loop {
            let rows = self.rows();
            let differs = |tagged: &Tagged| {
                rows.get(&tagged.tag) != counted.get(&Some(tagged.tag)).filter(|rows| **rows > 0)
            };
            let found = self.units.iter().filter(|(_, tags)| tags.iter().any(differs));
            let found: Vec<UnitKey> = found.map(|(unit, _)| *unit).collect();
            if found.is_empty() {
                return lacking;
            }
            found.iter().for_each(|unit| drop(self.units.remove(unit)));
            lacking.extend(found);
        }
    }

    /// The tags in the table that no unit is recorded with.
    pub(crate) fn unrecorded(&self, counted: &BTreeMap<Option<i64>, u64>) -> Vec<Option<i64>> {
        let rows = self.rows();
        let unknown = |tag: &&Option<i64>| tag.is_none_or(|tag| !rows.contains_key(&tag));
        counted.keys().filter(unknown).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(first_row: u64) -> UnitKey {
        UnitKey { file: 0, row_group: 0, first_row }
    }

    fn counted(rows: &[(i64, u64)]) -> BTreeMap<Option<i64>, u64> {
        rows.iter().map(|(tag, rows)| (Some(*tag), *rows)).collect()
    }

    #[test]
    fn units_of_one_request_are_sent_again_together() {
        let mut recorded = Recorded::default();
        // The first two came together; the second has another request, which is not whole.
        recorded.insert(unit(0), vec![Tagged { tag: 1, rows: 5 }]);
        recorded.insert(unit(5), vec![Tagged { tag: 1, rows: 5 }, Tagged { tag: 2, rows: 7 }]);
        recorded.insert(unit(9), vec![Tagged { tag: 3, rows: 1 }]);
        let found = counted(&[(1, 10), (2, 6), (3, 1), (8, 4)]);
        assert_eq!(recorded.take_lacking(&found), BTreeSet::from([unit(0), unit(5)]));
        assert_eq!(recorded.unrecorded(&found), [Some(1), Some(2), Some(8)]);
    }

    #[test]
    fn a_later_run_repeats_no_tag() {
        let (first, second) =
            (Tags::new("c", 1, Recorded::default()), Tags::new("c", 2, Recorded::default()));
        let mut tags: Vec<i64> =
            (0..100).map(|_| first.next()).chain((0..100).map(|_| second.next())).collect();
        tags.dedup();
        assert_eq!(tags.len(), 200);
        assert!(tags.is_sorted());
        assert!(!first.is_in_doubt() && second.is_in_doubt());
    }

    proptest! {
        /// All recorded units are in the table exactly, and all other rows are named for removal.
        #[test]
        fn what_stays_recorded_is_what_the_table_has(
            units in prop::collection::vec(prop::collection::vec((0i64..12, 1u64..4), 0..4), 0..12),
            table in prop::collection::btree_map(0i64..15, 1u64..9, 0..15),
        ) {
            let mut recorded = Recorded::default();
            for (at, tags) in units.iter().enumerate() {
                let tags = tags.iter().map(|(tag, rows)| Tagged { tag: *tag, rows: *rows }).collect();
                recorded.insert(unit(at as u64), tags);
            }
            let found: BTreeMap<Option<i64>, u64> =
                table.into_iter().map(|(tag, rows)| (Some(tag), rows)).collect();
            let lacking = recorded.take_lacking(&found);
            prop_assert_eq!(lacking.len() + recorded.units.len(), units.len());
            let removed = recorded.unrecorded(&found);
            let left = found.iter().filter(|(tag, _)| !removed.contains(tag));
            let left: HashMap<i64, u64> = left.map(|(tag, rows)| (tag.unwrap(), *rows)).collect();
            prop_assert_eq!(left, recorded.rows());
        }
    }
}
