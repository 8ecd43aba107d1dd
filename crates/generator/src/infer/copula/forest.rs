//! Which columns depend on one another, and which of them by tables of counts.

use crate::draw::copula::bin;
use crate::infer::by_column::by_column;
use crate::infer::copula::axis::{Axis, Of};
use crate::infer::copula::scores::correlation;
use crate::random::elementary::ln;

/// The least rank correlation to keep, beyond chance.
const MIN: f64 = 0.04;

/// The least information, in nats, that a table must have beyond correlated scores.
const MIN_INFORMATION: f64 = 0.01;

/// A difference of more standard deviations is not taken for chance.
const DEVIATIONS: f64 = 4.0;

/// The most counts of a table.
const MAX_COUNTS: usize = 8192;

/// The fewest rows with both values.
const MIN_ROWS: usize = 30;

/// What is known of each pair of axes.
pub(super) struct Relations {
    /// For each axis and each one before it.
    pairs: Vec<Vec<Pair>>,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    /// The information of correlated scores, in nats; 0 if it may be chance.
    scores: f64,
    /// The information of a table; 0 if it is hardly more than the one of scores.
    table: f64,
}

impl Relations {
    /// Of axes whose generated ranks are spread evenly (`is_even`), or not.
    pub(super) fn new(axes: &[Axis], is_even: bool) -> Self {
        let rows = axes.first().map_or(0, |axis| axis.low.len());
        let prepared = by_column(axes.len(), |i| {
            let axis = &axes[i];
            let middles: Vec<f64> = (0..rows).map(|row| axis.middle(row)).collect();
            let code = |rank: &f64| if rank.is_nan() { u16::MAX } else { bin(&axis.bins, *rank) as u16 };
            (middles, axis.ranks.iter().map(code).collect::<Vec<u16>>())
        });
        let pairs = by_column(axes.len(), |i| {
            let of = |j: usize| {
                let ((a, codes), (b, others)) = (&prepared[i], &prepared[j]);
                let (found, n) = correlation(a, b);
                if n < MIN_ROWS || same_field(axes[i].of, axes[j].of) {
                    return Pair::default();
                }
                let chance = DEVIATIONS / (n as f64).sqrt();
                let of_scores = -0.5 * ln((1.0 - found * found).max(1e-9));
                let scores = if found.abs() > MIN.max(chance) { of_scores } else { 0.0 };
                let size = [axes[i].bins.len() - 1, axes[j].bins.len() - 1];
                // The rows with both values must not tell others than all rows do.
                let tells = !is_even && (nulls_tell(a, b) || nulls_tell(b, a));
                let table = if tells { 0.0 } else { information((codes, others), size, of_scores) };
                Pair { scores, table }
            };
            (0..i).map(of).collect()
        });
        Relations { pairs }
    }

    fn pair(&self, i: usize, j: usize) -> Pair {
        self.pairs.get(i.max(j)).and_then(|line| line.get(i.min(j))).copied().unwrap_or_default()
    }

    /// How strongly each axis depends on the one that it depends on most; 0 if on none.
    pub(super) fn strengths(&self) -> Vec<f64> {
        let n = self.pairs.len();
        let of = |i: usize| {
            (0..n)
                .filter(move |j| *j != i)
                .map(move |j| self.pair(i, j))
                .map(|pair| pair.scores.max(pair.table))
        };
        (0..n).map(|i| of(i).fold(0.0, f64::max)).collect()
    }

    /// The axes `kept`, each after the one by whose table it is drawn, if there is one.
    pub(super) fn forest(&self, axes: &[Axis], kept: &[usize]) -> Vec<(usize, Option<usize>)> {
        let mut left: Vec<usize> = kept.to_vec();
        let mut order: Vec<(usize, Option<usize>)> = Vec::new();
        // Sorted values follow the rows.
        if left.iter().any(|axis| matches!(axes[*axis].of, Of::Rows(_))) {
            let (sorted, others) = left.iter().partition(|axis| axes[**axis].is_sorted);
            left = others;
            order = Vec::<usize>::into_iter(sorted).map(|axis| (axis, None)).collect();
        }
        while !left.is_empty() {
            let edges = left.iter().enumerate().flat_map(|(at, axis)| {
                order
                    .iter()
                    .enumerate()
                    .map(move |(place, (other, _))| (at, place, self.pair(*axis, *other).table))
            });
            let best =
                edges.filter(|edge| edge.2 > 0.0).max_by(|a, b| a.2.total_cmp(&b.2).then(b.0.cmp(&a.0)));
            match best {
                Some((at, place, table)) => {
                    let axis = left.remove(at);
                    // What correlated scores say better, a table would spoil.
                    let by = order[place].0;
                    let others = kept.iter().filter(|other| ![axis, by].contains(other));
                    let scores = others.map(|other| self.pair(axis, *other).scores).fold(0.0, f64::max);
                    order.push((axis, (table > scores).then_some(place)));
                }
                // The next tree begins with the axis that says most about others.
                None => {
                    let sum =
                        |axis: usize| left.iter().map(|other| self.pair(axis, *other).table).sum::<f64>();
                    let sums = left.iter().enumerate().map(|(at, axis)| (sum(*axis), at));
                    let root =
                        sums.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map_or(0, |(_, at)| at);
                    order.push((left.remove(root), None));
                }
            }
        }
        order
    }
}

/// Whether the mean rank of `b` is another one where `a` is null.
fn nulls_tell(a: &[f64], b: &[f64]) -> bool {
    let mut sums = [(0.0f64, 0.0f64); 2];
    for (a, b) in a.iter().zip(b).filter(|(_, b)| !b.is_nan()) {
        let of = &mut sums[usize::from(a.is_nan())];
        *of = (of.0 + 1.0, of.1 + b);
    }
    let [with, without] = sums;
    let apart = (with.1 / with.0.max(1.0) - without.1 / without.0.max(1.0)).abs();
    // Ranks have a standard deviation of less than a third.
    let chance = DEVIATIONS * 0.3 * (1.0 / with.0.max(1.0) + 1.0 / without.0.max(1.0)).sqrt();
    with.0 * without.0 > 0.0 && apart > chance + 0.01
}

fn same_field(a: Of, b: Of) -> bool {
    matches!((a, b), (Of::Field(a), Of::Nulls(b)) | (Of::Nulls(a), Of::Field(b)) if a == b)
}

/// The information of a table of two columns' bins; 0 if it is hardly more than the one of correlated scores.
fn information((a, b): (&[u16], &[u16]), [of_a, of_b]: [usize; 2], of_scores: f64) -> f64 {
    if of_a * of_b > MAX_COUNTS {
        return 0.0;
    }
    let counts = counts((a, b), [of_a, of_b]);
    let n: f64 = counts.iter().flatten().map(|n| f64::from(*n)).sum();
    let lines: Vec<f64> = counts.iter().map(|line| line.iter().map(|n| f64::from(*n)).sum()).collect();
    let mut columns = vec![0.0; of_b];
    counts.iter().for_each(|line| columns.iter_mut().zip(line).for_each(|(sum, n)| *sum += f64::from(*n)));
    let mut found = 0.0;
    for (line, of_line) in counts.iter().zip(&lines) {
        for (count, of_column) in line.iter().zip(&columns).filter(|(count, _)| **count > 0) {
            let count = f64::from(*count);
            found += count / n * ln(count * n / (of_line * of_column));
        }
    }
    let used = |sums: &[f64]| sums.iter().filter(|sum| **sum > 0.0).count().saturating_sub(1) as f64;
    let freedom = used(&lines) * used(&columns);
    let found = found - freedom / (2.0 * n);
    let chance = DEVIATIONS * (freedom / 2.0).sqrt() / n;
    if found - of_scores > MIN_INFORMATION + chance { found } else { 0.0 }
}

/// How often the bins of two columns occur together.
pub(super) fn counts((a, b): (&[u16], &[u16]), [of_a, of_b]: [usize; 2]) -> Vec<Vec<u32>> {
    let mut counts = vec![vec![0u32; of_b]; of_a];
    for (a, b) in a.iter().zip(b) {
        if let Some(n) = counts.get_mut(usize::from(*a)).and_then(|line| line.get_mut(usize::from(*b))) {
            *n += 1;
        }
    }
    counts
}
