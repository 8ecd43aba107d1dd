//! One-to-many: how many rows a table has for each row of its parent, and which ones.
//!
//! Row *j* of the child must be found without making those before it. So parents come in blocks of
//! [`BLOCK`], and every block has the same counts: the quantiles of the declared distribution, in an order that
//! is drawn for the block. A block of parents then has a fixed number of children, its counts follow the
//! distribution to one in a thousand, and the last, shorter block has the quantiles for its size.

use std::ops::Range;

use crate::draw::lengths::Lengths;
use crate::draw::value_spec::other_rows::changes::shuffle;
use crate::random::rng::Stream;

/// The parents of a block.
const BLOCK: u64 = 1024;

/// The children of a table of parents.
#[derive(Debug)]
pub(crate) struct FanOut {
    /// The parent table.
    pub parent: String,
    /// The rows of the parent table.
    pub parents: u64,
    /// The counts of a whole block, ascending, and their sum.
    counts: Vec<u32>,
    block_rows: u64,
    /// The counts of the last block, if it is shorter.
    last: Vec<u32>,
    /// All rows of the child table.
    pub rows: u64,
    /// The random stream of the order of counts.
    order: u64,
}

/// A row's parent, and its number among the children of that parent, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Child {
    pub parent: u64,
    pub number: u64,
}

impl FanOut {
    /// The children of `parents` rows of the table `parent`; `order` is a stream of the child table.
    pub(crate) fn new(parent: &str, parents: u64, counts: &Lengths, order: u64) -> Self {
        let outcomes = sorted_outcomes(counts);
        let whole = quantiles(&outcomes, BLOCK);
        let last = quantiles(&outcomes, parents % BLOCK);
        let sum = |counts: &[u32]| counts.iter().map(|n| u64::from(*n)).sum::<u64>();
        let block_rows = sum(&whole);
        let rows = (parents / BLOCK).saturating_mul(block_rows).saturating_add(sum(&last));
        FanOut { parent: parent.to_owned(), parents, counts: whole, block_rows, last, rows, order }
    }

    /// The most children of a parent.
    pub(crate) fn most_children(&self) -> u64 {
        self.counts.last().max(self.last.last()).map_or(0, |most| u64::from(*most))
    }

    /// The fewest children of a parent.
    pub(crate) fn least_children(&self) -> u32 {
        let least = |counts: &[u32]| counts.iter().copied().min().unwrap_or(u32::MAX);
        let whole = if self.parents < BLOCK { u32::MAX } else { least(&self.counts) };
        whole.min(least(&self.last))
    }

    /// The child rows of each of `parents`; none for parents beyond the last. Neighbours are cheapest.
    pub(crate) fn rows_of(&self, seed: u64, parents: &[u64]) -> Vec<Range<u64>> {
        let mut block = u64::MAX;
        let mut ends: Vec<u64> = Vec::new();
        let rows = |parent: &u64| {
            if parent / BLOCK != block {
                block = parent / BLOCK;
                self.ends(seed, block, &mut ends);
            }
            let (start, place) = (block.saturating_mul(self.block_rows), (parent % BLOCK) as usize);
            let end = |place: usize| ends.get(place).or(ends.last()).map_or(start, |end| start + end);
            place.checked_sub(1).map_or(start, end)..end(place)
        };
        parents.iter().map(rows).collect()
    }

    /// The parents of `rows`, in this order; `None` for rows beyond the last. Neighbouring rows are cheapest.
    pub(crate) fn children(&self, seed: u64, rows: &[u64]) -> Vec<Option<Child>> {
        let mut block = u64::MAX;
        let mut ends: Vec<u64> = Vec::new();
        let child = |row: &u64| {
            if *row >= self.rows {
                return None;
            }
            // The last block may have no whole one before it.
            let here = row.checked_div(self.block_rows).unwrap_or(0).min(self.parents / BLOCK);
            if here != block {
                block = here;
                self.ends(seed, block, &mut ends);
            }
            let within = row - here * self.block_rows;
            let place = ends.partition_point(|end| *end <= within);
            let start = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
            Some(Child { parent: here * BLOCK + place as u64, number: within - start })
        };
        rows.iter().map(child).collect()
    }

    /// For each parent of a block, the number of children up to and with its own.
    fn ends(&self, seed: u64, block: u64, ends: &mut Vec<u64>) {
        let counts = if block < self.parents / BLOCK { &self.counts } else { &self.last };
        ends.clear();
        ends.extend(counts.iter().map(|n| u64::from(*n)));
        shuffle(ends, Stream::new(seed, self.order, block));
        let mut sum = 0;
        for end in ends {
            sum += *end;
            *end = sum;
        }
    }
}

/// The counts and their probabilities, in ascending order.
pub(crate) fn sorted_outcomes(counts: &Lengths) -> Vec<(u32, f64)> {
    let probabilities = counts.table.probabilities().iter().copied();
    let mut outcomes: Vec<(u32, f64)> =
        counts.lengths.iter().map(|n| n.unwrap_or(0)).zip(probabilities).collect();
    outcomes.sort_by_key(|(n, _)| *n);
    outcomes
}

/// `n` quantiles of a distribution, at equal distances.
pub(crate) fn quantiles(outcomes: &[(u32, f64)], n: u64) -> Vec<u32> {
    let mut outcomes = outcomes.iter();
    let mut current = outcomes.next();
    let mut below = current.map_or(0.0, |(_, share)| *share);
    let mut quantiles = Vec::with_capacity(n as usize);
    for i in 0..n {
        let at = (i as f64 + 0.5) / n as f64;
        while at > below {
            let Some(next) = outcomes.next() else { break };
            below += next.1;
            current = Some(next);
        }
        quantiles.push(current.map_or(0, |(count, _)| *count));
    }
    quantiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::weights::Weights;

    fn fan_out(parents: u64, weights: &[(u32, f64)]) -> FanOut {
        let table = Weights::new(&weights.iter().map(|(_, w)| *w).collect::<Vec<_>>()).unwrap();
        let lengths = weights.iter().map(|(n, _)| Some(*n)).collect();
        FanOut::new("p", parents, &Lengths { table, lengths, longest: 9 }, 5)
    }

    #[test]
    fn every_row_has_one_parent_and_the_counts_follow_the_distribution() {
        for parents in [1, 7, 1023, 1024, 1025, 5000] {
            let fan_out = fan_out(parents, &[(4, 0.25), (0, 0.25), (1, 0.5)]);
            let rows: Vec<u64> = (0..fan_out.rows).collect();
            let children = fan_out.children(9, &rows);
            let mut counts = vec![0u64; parents as usize];
            let mut before = None;
            for child in children.iter().map(|child| child.unwrap()) {
                assert!(before.is_none_or(|before| before <= child.parent), "in the order of parents");
                assert_eq!(child.number, counts[child.parent as usize]);
                counts[child.parent as usize] += 1;
                before = Some(child.parent);
            }
            let share = |n| counts.iter().filter(|count| **count == n).count() as f64 / parents as f64;
            if parents > 1000 {
                for (count, expected) in [(0, 0.25), (1, 0.5), (4, 0.25)] {
                    assert!((share(count) - expected).abs() < 0.002, "{parents}: {count} {}", share(count));
                }
            }
            assert_eq!(fan_out.children(9, &[fan_out.rows]), [None]);
            let alone: Vec<_> = rows.iter().rev().map(|row| fan_out.children(9, &[*row])[0]).collect();
            assert!(alone.iter().rev().eq(&children), "in any order");
        }
    }

    #[test]
    fn constant_counts_are_constant() {
        let fan_out = fan_out(2_000, &[(3, 1.0)]);
        assert_eq!(fan_out.rows, 6_000);
        assert_eq!(fan_out.children(1, &[5_999]), [Some(Child { parent: 1_999, number: 2 })]);
    }
}
