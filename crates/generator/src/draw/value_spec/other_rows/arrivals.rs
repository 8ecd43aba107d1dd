//! Arrivals: the rows of a table in the order in which they arrive, some of them late, some of them twice.
//!
//! The rows of the table come in blocks of [`BLOCK`]. Each has the same number of copies, and its rows arrive
//! before the rows of the next block. So the row that arrives as number *j* is found without those before it.

use crate::draw::lengths::Lengths;
use crate::draw::value_spec::other_rows::changes::{BLOCK, of_blocks, part_of, shuffle};
use crate::random::rng::{Stream, unit_interval};

/// The rows of a table as they arrive.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The table.
    pub of: String,
    /// Its rows.
    pub rows: u64,
    late: Option<Delayed>,
    twice: Option<Delayed>,
    /// The random stream for late and repeated rows, and their delays.
    order: u64,
}

/// A share of rows, and the number of rows that arrive in between.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub share: f64,
    pub by: Lengths,
}

impl Arrivals {
    pub(crate) fn new(
        of: &str,
        rows: u64,
        late: Option<Delayed>,
        twice: Option<Delayed>,
        order: u64,
    ) -> Self {
        Arrivals { of: of.to_owned(), rows, late, twice, order }
    }

    /// The copies of the first `rows` rows.
    fn copies(&self, rows: u64) -> u64 {
        self.twice.as_ref().map_or(0, |twice| part_of(twice.share, rows))
    }

    /// The number of the first arrival of a block.
    fn start(&self, block: u64) -> u64 {
        let rows = block.saturating_mul(BLOCK).min(self.rows);
        rows.saturating_add(self.copies(rows))
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.saturating_add(self.copies(self.rows))
    }

    /// The rows of the table that arrive as `numbers`; `None` beyond the last. Neighbouring numbers are cheapest.
    pub(crate) fn rows(&self, seed: u64, numbers: &[u64]) -> Vec<Option<u64>> {
        let start = |block: u64| self.start(block);
        of_blocks(numbers, self.rows.div_ceil(BLOCK), &start, |block| self.block(seed, block))
    }

    /// The rows of a block as they arrive.
    fn block(&self, seed: u64, block: u64) -> Vec<u64> {
        let first = block * BLOCK;
        let rows = BLOCK.min(self.rows - first);
        let stream = |i: u64| Stream::new(seed, self.order.wrapping_add(i), block);
        let delay = |delayed: &Delayed, draw: u64| {
            let lengths = &delayed.by.lengths;
            u64::from(lengths.get(delayed.by.table.pick_fine(draw) as usize).copied().flatten().unwrap_or(0))
        };
        // Where each arrival would be without the others; a copy comes after the row itself.
        let copies = self.copies(first + rows) - self.copies(first);
        let mut places: Vec<(u64, u64)> = Vec::with_capacity((rows + copies) as usize);
        for row in 0..rows {
            let late = self.late.as_ref().filter(|late| unit_interval(stream(0).draw(row)) < late.share);
            places.push((row + late.map_or(0, |late| delay(late, stream(1).draw(row))), row));
        }
        if let Some(twice) = &self.twice {
            let mut copied: Vec<u64> = (0..rows).collect();
            shuffle(&mut copied, stream(2));
            for row in copied.into_iter().take(copies as usize) {
                let at = places.get(row as usize).map_or(row, |(at, _)| *at);
                places.push((at + 1 + delay(twice, stream(3).draw(row)), row));
            }
        }
        places.sort_by_key(|(at, _)| *at);
        places.into_iter().map(|(_, row)| first + row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::weights::Weights;

    #[test]
    fn every_row_arrives_once_or_twice_and_some_arrive_late() {
        let by = || Lengths {
            table: Weights::new(&[1.0, 1.0]).unwrap(),
            lengths: vec![Some(5), Some(40)],
            longest: 40,
        };
        for rows in [1, 1000, 1024, 10_000] {
            let (late, twice) = (Delayed { share: 0.1, by: by() }, Delayed { share: 0.02, by: by() });
            let arrivals = Arrivals::new("t", rows, Some(late), Some(twice), 3);
            let numbers: Vec<u64> = (0..arrivals.len()).collect();
            let arriving: Vec<u64> = arrivals.rows(7, &numbers).into_iter().flatten().collect();
            assert_eq!(
                (arriving.len() as u64, arrivals.rows(7, &[arrivals.len()])),
                (arrivals.len(), vec![None])
            );
            let mut times: HashMap<u64, u32> = HashMap::new();
            let (mut most, mut late) = (0, 0);
            for row in &arriving {
                *times.entry(*row).or_default() += 1;
                late += u64::from(*row < most);
                most = most.max(*row);
            }
            assert_eq!(times.len() as u64, rows);
            assert!(times.values().all(|n| *n <= 2));
            if rows == 10_000 {
                let copies = times.values().filter(|n| **n == 2).count();
                assert!((190..210).contains(&copies) && (900..1_400).contains(&late), "{copies} {late}");
            }
        }
    }
}
