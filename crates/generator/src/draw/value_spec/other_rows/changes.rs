//! Change streams: the rows of a table as they are inserted, updated and deleted.
//!
//! Row *j* of the stream must be found without making the rows before it. So the rows of the table come in blocks
//! of [`BLOCK`]. Each block has the same numbers of changes: one insert a row, the quantiles of the declared
//! updates, the declared share of deletes. The changes of a block are in an order that is drawn for the block;
//! changes of one row keep theirs: insert, updates, delete.

use std::sync::Arc;

use crate::draw::lengths::Lengths;
use crate::draw::value_spec::other_rows::fan_out::{quantiles, sorted_outcomes};
use crate::random::rng::{Stream, scale64};

/// The rows of the table in a block of changes.
pub(crate) const BLOCK: u64 = 1024;

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Update,
    Delete,
}

impl Operation {
    /// All of them, in the order in which a row has them.
    pub(crate) const ALL: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// Whether a change has the row as it was before, and as it is after it.
    pub(crate) fn images(self) -> (bool, bool) {
        (self != Self::Insert, self != Self::Delete)
    }
}

/// A row of the table, as it is after its `version`-th update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowVersion {
    pub row: u64,
    pub version: u32,
}

/// The draws that a table's columns follow: the draws of its rows after `number` updates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    pub number: u32,
    /// Whether updates change each leaf of the table; empty if nothing does.
    pub changing: Arc<[bool]>,
}

/// Sets the draws of one version of a row apart from the other versions' draws.
const VERSION: u64 = 0xD6E8_FEB8_6659_FD93;

impl Version {
    /// Whether a leaf has other values than in version 0.
    pub(crate) fn changes(&self, leaf: usize) -> bool {
        self.number > 0 && self.changing.get(leaf) == Some(&true)
    }

    /// The seed of a leaf's draws in a table with this `seed`.
    pub(crate) fn seed(&self, seed: u64, leaf: usize) -> u64 {
        if self.changes(leaf) { seed ^ u64::from(self.number).wrapping_mul(VERSION) } else { seed }
    }
}

/// A row of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub operation: Operation,
    pub row: u64,
    /// How many changes the row had before this one.
    pub number: u32,
}

impl Change {
    /// The row as it was before the change.
    pub(crate) fn before(self) -> RowVersion {
        RowVersion { row: self.row, version: self.number.saturating_sub(1) }
    }

    /// The row as it is after the change.
    pub(crate) fn after(self) -> RowVersion {
        RowVersion { row: self.row, version: self.number }
    }
}

#[derive(Debug)]
pub(crate) struct Changes {
    /// The table.
    pub of: String,
    /// Its rows.
    pub rows: u64,
    /// Whole blocks, and the last one if it is shorter.
    whole: Counts,
    last: Counts,
    /// The share of rows that are deleted.
    deleted: f64,
    /// The random stream of what happens to which row, and in which order.
    order: u64,
}

/// What happens to the rows of a block.
#[derive(Debug)]
struct Counts {
    /// The updates of each row, ascending.
    updates: Vec<u32>,
    /// All of them.
    sum: u64,
}

impl Counts {
    fn new(outcomes: &[(u32, f64)], rows: u64) -> Self {
        let updates = quantiles(outcomes, rows);
        let sum = updates.iter().map(|n| u64::from(*n)).sum();
        Counts { updates, sum }
    }
}

/// What happens to each row of a block: its updates, and whether it is deleted.
type Fates = Vec<(u32, bool)>;

impl Changes {
    /// The changes of `rows` rows of the table `of`; `order` is a stream of the table of changes.
    pub(crate) fn new(of: &str, rows: u64, updates: &Lengths, deleted: f64, order: u64) -> Self {
        let outcomes = sorted_outcomes(updates);
        let (whole, last) = (Counts::new(&outcomes, BLOCK), Counts::new(&outcomes, rows % BLOCK));
        Changes { of: of.to_owned(), rows, whole, last, deleted, order }
    }

    pub(crate) fn len(&self) -> u64 {
        self.start(self.rows / BLOCK).saturating_add(self.rows % BLOCK).saturating_add(self.last.sum)
            + (self.deletes(self.rows) - self.deletes(self.rows - self.rows % BLOCK))
    }

    /// The number of rows that are left after all changes.
    pub(crate) fn left(&self) -> u64 {
        self.rows - self.deletes(self.rows)
    }

    /// The deletes of the first `rows` rows.
    fn deletes(&self, rows: u64) -> u64 {
        part_of(self.deleted, rows)
    }

    /// The number of the first change of a block, before which are whole blocks.
    fn start(&self, block: u64) -> u64 {
        let rows = block.saturating_mul(BLOCK);
        rows.saturating_add(block.saturating_mul(self.whole.sum)).saturating_add(self.deletes(rows))
    }

    /// The shares of inserts, updates and deletes among the changes.
    pub(crate) fn shares(&self) -> [f64; 3] {
        let all = self.len().max(1) as f64;
        let deletes = (self.rows - self.left()) as f64;
        [self.rows as f64 / all, (all - self.rows as f64 - deletes) / all, deletes / all]
    }

    /// The changes that are `numbers` of the stream; `None` beyond the last one. Neighbouring numbers are cheapest.
    pub(crate) fn changes(&self, seed: u64, numbers: &[u64]) -> Vec<Option<Change>> {
        let start = |block: u64| self.start(block);
        of_blocks(numbers, self.rows.div_ceil(BLOCK), &start, |block| self.block(seed, block))
    }

    /// The rows that are left after all changes, by their number among them, as they are then.
    pub(crate) fn left_rows(&self, seed: u64, numbers: &[u64]) -> Vec<Option<RowVersion>> {
        let start = |block: u64| block * BLOCK - self.deletes(block * BLOCK);
        of_blocks(numbers, self.rows.div_ceil(BLOCK), &start, |block| {
            let fates = self.fates(seed, block).into_iter().enumerate();
            let kept = fates.filter(|(_, (_, deleted))| !deleted);
            let version =
                |(i, (version, _)): (usize, _)| RowVersion { row: block * BLOCK + i as u64, version };
            kept.map(version).collect()
        })
    }

    fn counts(&self, block: u64) -> &Counts {
        if block < self.rows / BLOCK { &self.whole } else { &self.last }
    }

    fn fates(&self, seed: u64, block: u64) -> Fates {
        let counts = self.counts(block);
        let mut updates = counts.updates.clone();
        shuffle(&mut updates, Stream::new(seed, self.order, block));
        let first = block * BLOCK;
        let deletes = self.deletes((first + BLOCK).min(self.rows)) - self.deletes(first);
        let mut deleted: Vec<bool> = (0..updates.len() as u64).map(|i| i < deletes).collect();
        shuffle(&mut deleted, Stream::new(seed, self.order.wrapping_add(1), block));
        updates.into_iter().zip(deleted).collect()
    }

    /// All changes of a block, in their order.
    fn block(&self, seed: u64, block: u64) -> Vec<Change> {
        let fates = self.fates(seed, block);
        let times = |(i, (updates, deleted)): (usize, &(u32, bool))| {
            std::iter::repeat_n(i, 1 + *updates as usize + usize::from(*deleted))
        };
        let mut rows: Vec<usize> = fates.iter().enumerate().flat_map(times).collect();
        shuffle(&mut rows, Stream::new(seed, self.order.wrapping_add(2), block));
        let mut numbers = vec![0u32; fates.len()];
        let change = |i: usize| {
            let (number, (updates, _)) = (numbers.get_mut(i)?, fates.get(i)?);
            let operation = match *number {
                0 => Operation::Insert,
                n if n <= *updates => Operation::Update,
                _ => Operation::Delete,
            };
            let change = Change { operation, row: block * BLOCK + i as u64, number: *number };
            *number += 1;
            Some(change)
        };
        rows.into_iter().filter_map(change).collect()
    }
}

/// How many of the first `rows` rows are a share of them. Every block of rows has its part of a small share, too.
pub(crate) fn part_of(share: f64, rows: u64) -> u64 {
    ((share * rows as f64).floor() as u64).min(rows)
}

/// The items that have these numbers, out of `blocks` blocks. `start` returns the first number of a block and
/// `block` its items; `None` beyond the last one. Makes a block once for neighbours.
pub(crate) fn of_blocks<T: Copy>(
    numbers: &[u64],
    blocks: u64,
    start: &dyn Fn(u64) -> u64,
    block: impl Fn(u64) -> Vec<T>,
) -> Vec<Option<T>> {
    let mut made: Option<(u64, Vec<T>)> = None;
    let item = |number: &u64| {
        let of_number = block_of(*number, blocks, start);
        let (_, items) = match made.take().filter(|(made, _)| *made == of_number) {
            Some(same) => made.insert(same),
            None => made.insert((of_number, block(of_number))),
        };
        items.get(usize::try_from(number.checked_sub(start(of_number))?).ok()?).copied()
    };
    numbers.iter().map(item).collect()
}

/// The last of `blocks` blocks that starts at `number` or before it; each starts where `start` says, the first one
/// at 0.
fn block_of(number: u64, blocks: u64, start: &dyn Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, blocks.max(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if start(middle) <= number { low = middle } else { high = middle }
    }
    low
}

/// Puts items into a random order.
pub(crate) fn shuffle<T>(items: &mut [T], stream: Stream) {
    for i in (1..items.len()).rev() {
        items.swap(i, scale64(stream.draw(i as u64), i as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::weights::Weights;

    #[test]
    fn each_row_is_inserted_updated_and_deleted_in_this_order() {
        let lengths = Lengths {
            table: Weights::new(&[1.0, 1.0, 2.0]).unwrap(),
            lengths: vec![Some(0), Some(1), Some(5)],
            longest: 5,
        };
        for rows in [1, 900, 1024, 5000] {
            let changes = Changes::new("t", rows, &lengths, 0.25, 3);
            let numbers: Vec<u64> = (0..changes.len()).collect();
            let stream = changes.changes(7, &numbers);
            assert_eq!(changes.changes(7, &[changes.len()]), [None]);
            let mut state: HashMap<u64, u32> = HashMap::new();
            let mut seen = 0;
            for change in stream.iter().map(|change| change.unwrap()) {
                match change.operation {
                    Operation::Insert => assert!(state.insert(change.row, 0).is_none() && change.number == 0),
                    Operation::Update => {
                        let version = state.get_mut(&change.row).unwrap();
                        assert_eq!(*version, change.before().version);
                        *version = change.after().version;
                    }
                    Operation::Delete => assert_eq!(state.remove(&change.row), Some(change.before().version)),
                }
                seen += u64::from(change.operation == Operation::Insert);
            }
            assert_eq!((seen, state.len() as u64), (rows, changes.left()));
            let left = changes.left_rows(7, &(0..changes.left()).collect::<Vec<_>>());
            let left: HashMap<u64, u32> =
                left.into_iter().flatten().map(|left| (left.row, left.version)).collect();
            assert_eq!(left, state);
            let alone: Vec<_> = numbers.iter().map(|number| changes.changes(7, &[*number])[0]).collect();
            assert_eq!(alone, stream);
        }
    }
}
