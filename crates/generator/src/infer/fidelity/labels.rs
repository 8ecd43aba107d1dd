//! The values that both samples have: a relation is lost if others go together, however strongly.

use std::collections::HashSet;

use crate::infer::fidelity::measures::{DEVIATIONS, DISTANCE, MIN_ROWS, Measure, PLACES_A_ROW, correlation};
use crate::infer::fidelity::pairs::Side;
use crate::infer::fidelity::rows::{Leaf, MAX_BINS, NULL, ROWS_A_BIN};

/// The rows of both samples by their values: equal labels are equal values, or numbers between the same two.
pub(super) struct Labels {
    of_rows: [Vec<u32>; 2],
    n: usize,
}

impl Labels {
    /// `None` if most generated values are made up.
    pub(super) fn new(pair: &[&Leaf<'_>; 2]) -> Option<Self> {
        if pair[0].is_number() { Some(Self::of_numbers(pair)) } else { Self::of_categories(pair) }
    }

    pub(super) fn of_nulls(pair: &[&Leaf<'_>; 2]) -> Self {
        let is_there = |leaf: &Leaf<'_>| leaf.cells.there.iter().map(|there| u32::from(*there)).collect();
        Labels { of_rows: pair.map(is_there), n: 2 }
    }

    /// Numbers by the bins of the source.
    fn of_numbers(pair: &[&Leaf<'_>; 2]) -> Self {
        let numbers = pair.map(|leaf| present(&leaf.cells.numbers, leaf));
        let mut sorted: Vec<f64> = numbers[0].iter().copied().flatten().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let bins = (sorted.len() / ROWS_A_BIN).clamp(1, MAX_BINS);
        let mut ends: Vec<f64> =
            (1..bins).filter_map(|i| sorted.get(i * sorted.len() / bins)).copied().collect();
        ends.dedup();
        let label = |v: f64| ends.partition_point(|end| end.total_cmp(&v).is_le()) as u32;
        let labels = |numbers: Vec<Option<f64>>| numbers.into_iter().map(|v| v.map_or(NULL, label)).collect();
        Labels { of_rows: numbers.map(labels), n: ends.len() + 1 }
    }

    /// Values that only one sample has share a label.
    fn of_categories(pair: &[&Leaf<'_>; 2]) -> Option<Self> {
        let numbers = pair[0].by_frequency();
        let words = pair.map(|leaf| present(&leaf.cells.words, leaf));
        let theirs: HashSet<u64> = words[1].iter().copied().flatten().collect();
        let label = |word: u64| match numbers.get(&word) {
            Some(number) if theirs.contains(&word) => *number,
            _ => numbers.len() as u32,
        };
        let labels =
            |words: Vec<Option<u64>>| words.into_iter().map(|word| word.map_or(NULL, label)).collect();
        let of_rows: [Vec<u32>; 2] = words.map(labels);
        let present = of_rows[1].iter().filter(|label| **label != NULL).count();
        let known = of_rows[1].iter().filter(|label| (**label as usize) < numbers.len()).count();
        (known > 0 && 2 * known >= present).then_some(Labels { of_rows, n: numbers.len() + 1 })
    }
}

/// The value of each row that has one.
fn present<T: Copy>(values: &[T], leaf: &Leaf<'_>) -> Vec<Option<T>> {
    values.iter().zip(&leaf.cells.there).map(|(value, there)| there.then_some(*value)).collect()
}

/// How the ranks of a number correlate with the mean ranks that its label has in half of the source's rows: in the other
/// half, and in the generated rows. Nothing if the source has no such relation.
pub(super) fn means(of: &[Side<'_>; 2], by: &Labels) -> [Option<Measure>; 2] {
    let mut sums = vec![(0.0f64, 0.0f64); by.n];
    let is_learned = |row: usize| (row / 2).is_multiple_of(2);
    let rows = |side: usize| {
        let there = of[side].leaf.cells.there.iter().zip(&by.of_rows[side]);
        let ranks = of[side].measured.ranks.iter().flatten().zip(there).enumerate();
        ranks.map(|(row, (rank, (there, label)))| (row, *rank, there.then_some(*label as usize)))
    };
    for (row, rank, label) in rows(0) {
        if let Some(sum) = label.and_then(|label| sums.get_mut(label)).filter(|_| is_learned(row)) {
            *sum = (sum.0 + 1.0, sum.1 + rank);
        }
    }
    let means: Vec<f64> = sums.iter().map(|(n, sum)| sum / n.max(1.0)).collect();
    let found = [0, 1].map(|side| {
        let mut there = Vec::new();
        let (ranks, means): (Vec<f64>, Vec<f64>) = rows(side)
            .map(|(row, rank, label)| {
                let mean = label.and_then(|label| means.get(label)).filter(|_| side == 1 || !is_learned(row));
                there.push(mean.is_some());
                (rank, mean.copied().unwrap_or(0.0))
            })
            .unzip();
        correlation(&ranks, &means, [&there, &there])
    });
    if found[0].is_some_and(|source| source.value > DISTANCE) { found } else { [None; 2] }
}

/// How far the combinations of two columns' values are as in the source, beyond how often each value occurs: 1 in the
/// source, less the total variation in generated rows.
pub(super) fn together(a: &Labels, b: &Labels) -> [Option<Measure>; 2] {
    let places = a.n * b.n;
    let pairs = |side: usize| {
        let labels = a.of_rows[side].iter().zip(&b.of_rows[side]);
        labels.filter(|(a, b)| **a != NULL && **b != NULL).map(|(a, b)| (*a as usize, *b as usize))
    };
    let rows = [0, 1].map(|side| pairs(side).count());
    if rows.iter().any(|rows| *rows < MIN_ROWS || places > PLACES_A_ROW * rows) {
        return [None; 2];
    }
    let tables = [0, 1].map(|side| {
        let one = 1.0 / rows[side] as f64;
        let (mut table, mut of_a, mut of_b) = (vec![0.0; places], vec![0.0; a.n], vec![0.0; b.n]);
        for (x, y) in pairs(side) {
            table[x * b.n + y] += one;
            of_a[x] += one;
            of_b[y] += one;
        }
        (table, of_a, of_b)
    });
    let (mut apart, mut chance, mut variance) = (0.0, 0.0, 0.0);
    let each: f64 = rows.iter().map(|rows| 1.0 / *rows as f64).sum();
    for place in 0..places {
        let more = |(table, of_a, of_b): &(Vec<f64>, Vec<f64>, Vec<f64>)| {
            table[place] - of_a[place / b.n] * of_b[place % b.n]
        };
        apart += (more(&tables[0]) - more(&tables[1])).abs() / 2.0;
        let share = f64::midpoint(tables[0].0[place], tables[1].0[place]);
        let square = share * (1.0 - share) * each;
        // A combination that occurs once is in one of the two samples.
        let once = if share > 0.0 { each / 4.0 } else { 0.0 };
        chance += (square / std::f64::consts::TAU).sqrt().max(once);
        variance += square / 4.0;
    }
    let chance = chance + DEVIATIONS * variance.sqrt();
    let measure = |value: f64, chance: f64| Some(Measure { value, chance, square: 0.0 });
    [measure(1.0, chance), measure(1.0 - apart, 0.0)]
}
