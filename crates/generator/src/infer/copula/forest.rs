//! Which columns depend on one another, and which of them by tables of counts.

use crate::infer::by_column::by_column;
use crate::infer::copula::axis::{Axis, Of, lags};
use crate::infer::copula::scores::{correlation, correlation_before, mean_square};
use crate::random::elementary::ln;
use crate::random::normal::{normal_quantile, normal_share};

/// The least rank correlation to keep, beyond chance.
const MIN: f64 = 0.04;

/// The greatest correlation of scores.
const MAX: f64 = 0.999;

/// An axis that is less like the row before is independent of it.
const MIN_BEFORE: f64 = 0.1;

/// The least information, in nats, that a table must have beyond correlated scores.
const MIN_INFORMATION: f64 = 0.01;

/// A difference of more standard deviations is not taken for chance.
const DEVIATIONS: f64 = 4.0;

/// The most counts of a table.
const MAX_COUNTS: usize = 8192;

/// The fewest rows with both values.
const MIN_ROWS: usize = 30;

/// The relation of each pair of axes.
pub(super) struct Relations {
    /// For each axis and each one before it.
    pairs: Vec<Vec<Pair>>,
    /// Whether each axis is like a row before.
    follow: Vec<bool>,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    /// The information, in nats, of correlated scores; 0 if it may be chance.
    scores: f64,
    /// The same of a table of counts; also 0 if the table would be too large.
    table: f64,
    /// Whether the table says more than correlated scores do.
    is_other: bool,
}

impl Pair {
    fn most(&self) -> f64 {
        if self.table > 0.0 { self.table } else { self.scores }
    }
}

/// An axis as relations need it.
struct Prepared {
    scores: Vec<f64>,
    /// The mean square of the scores: less than 1 for few values.
    known: f64,
    /// The bin of each row; the greatest number for null.
    codes: Vec<u16>,
}

impl Prepared {
    fn new(axis: &Axis) -> Self {
        let scores = axis.scores();
        let known = mean_square(&scores).clamp(0.05, 1.0);
        Prepared { scores, known, codes: axis.codes() }
    }
}

impl Relations {
    /// Of axes whose generated ranks are spread evenly (`is_even`), or not.
    pub(super) fn new(axes: &[Axis], is_even: bool) -> Self {
        let prepared = by_column(axes.len(), |i| Prepared::new(&axes[i]));
        let pairs = by_column(axes.len(), |i| {
            let of = |j: usize| {
                let (a, b) = (&prepared[i], &prepared[j]);
                let (found, n) = correlation(&a.scores, &b.scores);
                if n < MIN_ROWS || same_field(axes[i].of, axes[j].of) {
                    return Pair::default();
                }
                let chance = DEVIATIONS / (n as f64).sqrt();
                let latent = (found / (a.known * b.known).sqrt()).clamp(-MAX, MAX);
                let scores =
                    if found.abs() > MIN.max(chance) { -0.5 * ln(1.0 - latent * latent) } else { 0.0 };
                // The rows with both values must not tell others than all rows do.
                let tells = !is_even && (nulls_tell(&axes[i], &axes[j]) || nulls_tell(&axes[j], &axes[i]));
                let size = [axes[i].bins.len() - 1, axes[j].bins.len() - 1];
                if tells || size[0] * size[1] > MAX_COUNTS {
                    return Pair { scores, ..Pair::default() };
                }
                let counts = counts((&a.codes, &b.codes), size);
                let expected = expected((&axes[i].bins, &axes[j].bins), latent);
                let independent =
                    |sums: &[Vec<f64>; 3], i: usize, j: usize| sums[0][i] * sums[1][j] / sums[2][0];
                let of_scores = |sums: &[Vec<f64>; 3], i: usize, j: usize| sums[2][0] * expected[i][j];
                Pair {
                    scores,
                    table: information(&counts, &independent, 0.0),
                    is_other: information(&counts, &of_scores, MIN_INFORMATION) > 0.0,
                }
            };
            (0..i).map(of).collect()
        });
        let lags = lags(axes);
        let follow = by_column(axes.len(), |i| {
            lags.iter().any(|(_, pairs)| {
                let (found, n) = correlation_before(&prepared[i].scores, pairs);
                n >= MIN_ROWS && found > MIN_BEFORE.max(DEVIATIONS / (n as f64).sqrt())
            })
        });
        Relations { pairs, follow }
    }

    fn pair(&self, i: usize, j: usize) -> Pair {
        self.pairs.get(i.max(j)).and_then(|line| line.get(i.min(j))).copied().unwrap_or_default()
    }

    /// How strongly each axis depends on the one that it depends on most, or a little on the row before; 0 if on none.
    pub(super) fn strengths(&self) -> Vec<f64> {
        let n = self.pairs.len();
        let of = |i: usize| (0..n).filter(move |j| *j != i).map(move |j| self.pair(i, j).most());
        let follows = |i: usize| if self.follow[i] { f64::MIN_POSITIVE } else { 0.0 };
        (0..n).map(|i| of(i).fold(follows(i), f64::max)).collect()
    }

    /// The axes `kept`, each after the one by whose table it is drawn, if there is one: a tree in which each depends on
    /// the one that says most about it.
    ///
    /// The scores of an axis with a table are what the table leaves. So a table replaces correlated scores where they say
    /// less, and where the other axis has a table itself.
    pub(super) fn forest(&self, axes: &[Axis], kept: &[usize]) -> Vec<(usize, Option<usize>)> {
        let mut left: Vec<usize> = kept.to_vec();
        let mut order: Vec<(usize, Option<usize>)> = Vec::new();
        // Sorted values follow the rows.
        let has_rows = left.iter().any(|axis| matches!(axes[*axis].of, Of::Rows(_)));
        let is_first = |axis: &&usize| axes[**axis].period > 0 || has_rows && axes[**axis].sorted.is_some();
        let (first, others): (Vec<usize>, Vec<usize>) = left.iter().partition(is_first);
        left = others;
        order.extend(first.into_iter().map(|axis| (axis, None)));
        while !left.is_empty() {
            let edges = left.iter().enumerate().flat_map(|(at, axis)| {
                let with = |(place, (other, _)): (usize, &(usize, _))| (at, place, self.pair(*axis, *other));
                order.iter().enumerate().map(with).collect::<Vec<_>>()
            });
            let best = edges
                .filter(|edge| edge.2.most() > 0.0)
                .max_by(|a, b| a.2.most().total_cmp(&b.2.most()).then(b.0.cmp(&a.0)));
            match best {
                Some((at, place, pair)) => {
                    let needs = pair.is_other || order[place].1.is_some();
                    order.push((left.remove(at), (needs && pair.table > 0.0).then_some(place)));
                }
                // The next tree begins with the axis that says most about others.
                None => {
                    let sum =
                        |axis: usize| left.iter().map(|other| self.pair(axis, *other).most()).sum::<f64>();
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

/// The shares of the bins of two axes whose scores correlate.
fn expected((a, b): (&[f64], &[f64]), correlation: f64) -> Vec<Vec<f64>> {
    /// The scores of a bin are taken at as many shares.
    const PARTS: usize = 8;
    let ends: Vec<f64> = b.iter().map(|end| normal_quantile(end.clamp(1e-9, 1.0 - 1e-9))).collect();
    let rest = (1.0 - correlation * correlation).sqrt();
    let line = |bin: &[f64]| {
        let width = (bin[1] - bin[0]) / PARTS as f64;
        let mut line = vec![0.0; ends.len().saturating_sub(1)];
        for part in 0..PARTS {
            let score = normal_quantile((bin[0] + (part as f64 + 0.5) * width).clamp(1e-9, 1.0 - 1e-9));
            let mut below = 0.0;
            for (place, share) in line.iter_mut().enumerate() {
                let next = normal_share((ends[place + 1] - correlation * score) / rest);
                *share += width * (next - below).max(0.0);
                below = next;
            }
        }
        line
    };
    a.windows(2).map(line).collect()
}

/// Whether the mean rank of `b` is another one where `a` is null.
fn nulls_tell(a: &Axis, b: &Axis) -> bool {
    let mut sums = [(0.0f64, 0.0f64); 2];
    for row in (0..a.low.len()).filter(|row| !b.low[*row].is_nan()) {
        let of = &mut sums[usize::from(a.low[row].is_nan())];
        *of = (of.0 + 1.0, of.1 + b.middle(row));
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

/// The sums of a table of counts: of its lines, of its columns, and of all.
type Sums = [Vec<f64>; 3];

/// What a table of counts says beyond `expected` ones, in nats; 0 if it is hardly more than `least`, or chance.
/// `expected` gets the sums, and a place.
fn information(counts: &[Vec<u32>], expected: &dyn Fn(&Sums, usize, usize) -> f64, least: f64) -> f64 {
    let lines: Vec<f64> = counts.iter().map(|line| line.iter().map(|n| f64::from(*n)).sum()).collect();
    let mut columns = vec![0.0; counts.first().map_or(0, Vec::len)];
    counts.iter().for_each(|line| columns.iter_mut().zip(line).for_each(|(sum, n)| *sum += f64::from(*n)));
    let n: f64 = lines.iter().sum();
    let sums = [lines, columns, vec![n]];
    let mut found = 0.0;
    for (i, line) in counts.iter().enumerate() {
        for (j, count) in line.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            found += count / n * ln(count / expected(&sums, i, j).max(1e-9));
        }
    }
    let used = |sums: &[f64]| sums.iter().filter(|sum| **sum > 0.0).count().saturating_sub(1) as f64;
    let freedom = used(&sums[0]) * used(&sums[1]);
    let found = found - freedom / (2.0 * n);
    let chance = DEVIATIONS * (freedom / 2.0).sqrt() / n;
    if found > least + chance { found } else { 0.0 }
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
