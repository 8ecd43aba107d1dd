//! Ranks of several fields that depend on one another: a Gaussian copula, with tables of counts where ranks depend in
//! another way.
//!
//! A member is the rank of a field's value, from 0 to 1, or whether it is null, or the place of the row. Each has a
//! normal score for each row; the scores are correlated. The share of normal values below a score is the rank, unless
//! the member depends `by` another one: then the bin of that one's rank chooses how often each bin of this rank occurs.
//! A row's ranks depend on the seed and its number alone. Each field turns its rank into a value by its own
//! distribution, which stays the same.

pub(crate) mod reader;

use std::sync::{Arc, Mutex, PoisonError};

use crate::random::elementary::ln;
use crate::random::normal::{normal_quantile, normal_share};
use crate::random::rng::{BLOCK_ROWS, Sequence, Stream};
use crate::random::ziggurat::normal;

/// A score with a smaller rest depends on others alone, apart from rounding.
const NOTHING: f64 = 0.01;

/// The most rows between a row and the one that it follows.
pub(crate) const MAX_LAG: u64 = 1000;

/// A share of a score this small does not matter to later rows.
const NEGLIGIBLE: f64 = 1e-4;

/// The greatest correlation with the row before: some 200 rows matter.
pub(crate) const MAX_BEFORE: f64 = 0.999;

/// The most rows whose ranks are spread evenly, and the most of them times the members: each takes 8 bytes.
const MAX_EVEN_ROWS: u64 = 1 << 16;
const MAX_EVEN: u64 = 1 << 22;

/// For each member the ranks of all rows.
type Ranks = Vec<Vec<f64>>;

/// The members, each after those that it depends on.
#[derive(Debug, Default)]
pub(crate) struct Copula {
    pub members: Vec<Member>,
    /// The rows of the dataset, if they are so few that ranks are spread evenly over them.
    pub even_rows: Option<u64>,
    /// The evenly spread ranks for a seed.
    pub even: Mutex<Option<(u64, Arc<Ranks>)>>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub scores: Scores,
    /// The correlation of its independent scores with the ones `lag` rows before.
    pub before: f64,
    pub lag: u64,
    /// The weights of the independent scores of all members up to this one.
    pub factors: Vec<f64>,
    pub by: Option<By>,
    /// The rows that have a value, if another member says which.
    pub there: Option<There>,
}

/// The member that says which rows have a value, and the ranks at which they do.
#[derive(Debug)]
pub(crate) struct There {
    pub member: usize,
    pub ranks: Vec<(f64, f64)>,
}

/// Where the independent scores of a member come from.
#[derive(Clone, Debug)]
pub(crate) enum Scores {
    /// Normal draws, with the seed of the field's leaf.
    Drawn { leaf: usize, purpose: u64 },
    /// The row's place among this number of rows; after the last one it starts again.
    Rows(u64),
    /// The ranks of a cycle's values in their order, each of as many rows.
    Cycle { ranks: Vec<f64>, each: u64 },
}

/// How the ranks of a member depend on the ranks of one before it.
#[derive(Debug)]
pub(crate) struct By {
    pub member: usize,
    /// The edges of the bins of the other member's ranks, and of this member's: from 0 to 1.
    pub of: Vec<f64>,
    pub own: Vec<f64>,
    /// For each bin of the other member, the shares below the edges of this member's bins.
    pub below: Vec<Vec<f64>>,
}

/// The Cholesky factors of scores with these correlations, each with the ones before it, row by row. Shortens a row
/// that the others determine by more than 100 %; also returns the greatest excess.
pub(crate) fn factors(correlations: &[Vec<f64>]) -> (Vec<Vec<f64>>, f64) {
    let mut all: Vec<Vec<f64>> = Vec::new();
    let mut most: f64 = 0.0;
    for with in correlations {
        let mut row: Vec<f64> = Vec::with_capacity(with.len() + 1);
        for (correlation, other) in with.iter().zip(&all) {
            let before: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
            let size = other.last().copied().unwrap_or(1.0);
            row.push(if size > NOTHING { (correlation - before) / size } else { 0.0 });
        }
        let sum: f64 = row.iter().map(|factor| factor * factor).sum();
        most = most.max(sum - 1.0);
        if sum > 1.0 {
            let shorter = (1.0 / sum).sqrt();
            row.iter_mut().for_each(|factor| *factor *= shorter);
        }
        row.push((1.0 - sum.min(1.0)).sqrt());
        all.push(row);
    }
    (all, most)
}

impl Copula {
    /// The ranks of all members in `rows` of the dataset with this seed, from 0 to below 1.
    pub(crate) fn ranks(&self, rows: &[u64], seed: u64) -> Vec<Vec<f64>> {
        let Some(n) = self.even_rows else { return self.drawn(rows, &|_| seed) };
        let even = self.spread_evenly(n, seed);
        let is_even = |row: &u64| *row < n;
        let mut ranks = match rows.iter().all(is_even) {
            true => vec![vec![0.0; rows.len()]; self.members.len()],
            false => self.drawn(rows, &|_| seed),
        };
        for (ranks, even) in ranks.iter_mut().zip(even.iter()) {
            for (rank, row) in ranks.iter_mut().zip(rows) {
                *rank = even.get(*row as usize).copied().unwrap_or(*rank);
            }
        }
        ranks
    }

    /// The ranks of all rows, each member's at equal distances.
    fn spread_evenly(&self, n: u64, seed: u64) -> Arc<Ranks> {
        let mut even = self.even.lock().unwrap_or_else(PoisonError::into_inner);
        match &*even {
            Some((known, ranks)) if *known == seed => ranks.clone(),
            _ => {
                let rows: Vec<u64> = (0..n).collect();
                let mut scores = self.independent(&rows, &|_| seed);
                if self.members.iter().any(|member| member.before > 0.0) {
                    uncorrelated(&mut scores);
                }
                let ranks = Arc::new(self.of_scores(&scores, true));
                *even = Some((seed, ranks.clone()));
                ranks
            }
        }
    }

    /// The ranks of all members in `rows`, drawn row by row. `seed` is the seed of a leaf's draws.
    pub(crate) fn drawn(&self, rows: &[u64], seed: &dyn Fn(usize) -> u64) -> Vec<Vec<f64>> {
        self.of_scores(&self.independent(rows, seed), false)
    }

    /// The independent scores of each member.
    fn independent(&self, rows: &[u64], seed: &dyn Fn(usize) -> u64) -> Vec<Vec<f64>> {
        let independent = |member: &Member| match &member.scores {
            Scores::Rows(n) => {
                let n = (*n).max(1);
                let share = |row: &u64| ((row % n) as f64 + 0.5) / n as f64;
                rows.iter().map(|row| normal_quantile(share(row))).collect()
            }
            Scores::Cycle { ranks, each } => {
                let place = |row: &u64| (row / each % ranks.len().max(1) as u64) as usize;
                let rank = |row: &u64| ranks.get(place(row)).copied().unwrap_or(0.5);
                rows.iter().map(|row| normal_quantile(rank(row))).collect()
            }
            Scores::Drawn { leaf, purpose } => {
                let (seed, purpose) = (seed(*leaf), *purpose);
                let mut block = rows.first().map_or(0, |row| row / BLOCK_ROWS);
                let mut stream = Stream::new(seed, purpose, block);
                let mut score = |row: u64| {
                    if row / BLOCK_ROWS != block {
                        block = row / BLOCK_ROWS;
                        stream = Stream::new(seed, purpose, block);
                    }
                    normal(&mut Sequence::new(stream.draw(row % BLOCK_ROWS)))
                };
                match member.before {
                    0.0 => rows.iter().map(|row| score(*row)).collect(),
                    before => following(rows, (before, member.lag.max(1)), &mut score),
                }
            }
        };
        self.members.iter().map(independent).collect()
    }

    /// The ranks for independent normal scores of each member; `even` spreads each member's ranks evenly.
    pub(crate) fn of_scores(&self, independent: &[Vec<f64>], even: bool) -> Vec<Vec<f64>> {
        let n = independent.first().map_or(0, Vec::len);
        let mut ranks: Vec<Vec<f64>> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let mut own = vec![0.0; n];
            for (factor, scores) in
                member.factors.iter().zip(independent).filter(|(factor, _)| **factor != 0.0)
            {
                own.iter_mut().zip(scores).for_each(|(own, score)| *own += factor * score);
            }
            own.iter_mut().for_each(|own| *own = normal_share(*own));
            if let Some(by) = &member.by
                && let Some(others) = ranks.get(by.member)
            {
                own.iter_mut().zip(others).for_each(|(own, other)| *own = by.rank(*other, *own));
            }
            if even {
                spread(&mut own, |_| true);
            }
            // Shares count to below 1.
            own.iter_mut().for_each(|own| *own = own.clamp(0.0, 1.0 - f64::EPSILON));
            ranks.push(own);
        }
        // A field's values are spread over the rows that have one.
        for (i, member) in self.members.iter().enumerate().filter(|_| even) {
            let Some(there) = &member.there else { continue };
            let Some(others) = ranks.get(there.member).cloned() else { continue };
            let has = |rank: f64| there.ranks.iter().any(|(low, high)| (*low..*high).contains(&rank));
            if let Some(own) = ranks.get_mut(i) {
                spread(own, |row| others.get(row).is_none_or(|rank| has(*rank)));
            }
        }
        ranks
    }
}

/// The scores of `rows`, each correlated with the row `lag` rows before: second-order autoregressive processes, whose
/// equal roots make their memory as short as possible. Each block starts as many rows earlier as matter, so that a row's
/// score depends on its number alone.
fn following(rows: &[u64], (before, lag): (f64, u64), drawn: &mut dyn FnMut(u64) -> f64) -> Vec<f64> {
    // No correlation that matters has a smaller root.
    let root = ((1.0 - (1.0 - before * before).sqrt()) / before).max(1e-3);
    let square = root * root;
    let own = ((1.0 - square).powi(3) / (1.0 + square)).sqrt();
    let matter = (ln(NEGLIGIBLE) / ln(root)).ceil() as u64;
    let mut out = Vec::with_capacity(rows.len());
    for rows in rows.chunk_by(|a, b| a / BLOCK_ROWS == b / BLOCK_ROWS) {
        let Some((first, last)) =
            rows.first().map(|row| row / BLOCK_ROWS * BLOCK_ROWS).zip(rows.iter().max())
        else {
            continue;
        };
        let mut scores = vec![0.0; (last - first + 1) as usize];
        for head in first..=(*last).min(first + lag - 1) {
            let start = head - (head / lag).min(matter) * lag;
            let (mut last_but_one, mut score) = (0.0, 0.0);
            for (n, row) in (start..=*last).step_by(lag as usize).enumerate() {
                let next = match n {
                    0 => drawn(row),
                    1 => before * score + (1.0 - before * before).sqrt() * drawn(row),
                    _ => 2.0 * root * score - square * last_but_one + own * drawn(row),
                };
                (last_but_one, score) = (score, next);
                row.checked_sub(first).iter().for_each(|place| scores[*place as usize] = score);
            }
        }
        out.extend(rows.iter().filter_map(|row| scores.get((row - first) as usize)));
    }
    out
}

/// Makes the members' scores as independent as they are on average: successive rows are so alike that chance correlates
/// the members. Keeps the first member's scores.
fn uncorrelated(scores: &mut [Vec<f64>]) {
    for i in 0..scores.len() {
        let (before, after) = scores.split_at_mut(i);
        let Some(own) = after.first_mut() else { continue };
        let n = own.len().max(1) as f64;
        let mean = own.iter().sum::<f64>() / n;
        own.iter_mut().for_each(|score| *score -= mean);
        for other in before {
            let product = own.iter().zip(&*other).map(|(a, b)| a * b).sum::<f64>() / n;
            own.iter_mut().zip(other).for_each(|(own, other)| *own -= product * *other);
        }
        let size = (own.iter().map(|score| score * score).sum::<f64>() / n).sqrt().max(f64::MIN_POSITIVE);
        own.iter_mut().for_each(|score| *score /= size);
    }
}

/// Replaces the ranks of some rows by places at equal distances in the same order.
fn spread(ranks: &mut [f64], wanted: impl Fn(usize) -> bool) {
    let mut order: Vec<usize> = (0..ranks.len()).filter(|row| wanted(*row)).collect();
    order.sort_by(|a, b| ranks[*a].total_cmp(&ranks[*b]));
    let n = order.len().max(1) as f64;
    order.into_iter().enumerate().for_each(|(place, row)| ranks[row] = (place as f64 + 0.5) / n);
}

/// Whether the ranks of this many rows and members are spread evenly.
pub(crate) fn is_even(rows: u64, members: usize) -> bool {
    rows <= MAX_EVEN_ROWS && rows.saturating_mul(members as u64) <= MAX_EVEN
}

/// The bin of a rank.
#[inline]
pub(crate) fn bin(edges: &[f64], rank: f64) -> usize {
    edges.partition_point(|edge| *edge <= rank).saturating_sub(1).min(edges.len().saturating_sub(2))
}

/// The place of `value` on the line through the points of two lists in rising order.
fn along(from: &[f64], to: &[f64], value: f64) -> f64 {
    let at = bin(from, value);
    match (from.get(at..at + 2), to.get(at..at + 2)) {
        (Some([low, high]), Some([first, last])) if high > low => {
            first + (last - first) * ((value - low) / (high - low)).clamp(0.0, 1.0)
        }
        (_, Some([first, _])) => *first,
        _ => value,
    }
}

impl By {
    /// The rank whose share among rows with the `other` rank is `share`.
    #[inline]
    pub(crate) fn rank(&self, other: f64, share: f64) -> f64 {
        self.below.get(bin(&self.of, other)).map_or(share, |below| along(below, &self.own, share))
    }

    /// The share of lower ranks among rows with the `other` rank.
    #[cfg(any(test, feature = "infer"))]
    pub(crate) fn share(&self, other: f64, rank: f64) -> f64 {
        self.below.get(bin(&self.of, other)).map_or(rank, |below| along(&self.own, below, rank))
    }
}

/// The shares below the edges of bins that occur as often as counted; without counts, the edges themselves.
pub(crate) fn shares_below(counts: &[f64], own: &[f64]) -> Vec<f64> {
    let all: f64 = counts.iter().sum();
    if all <= 0.0 {
        return own.to_vec();
    }
    let mut sum = 0.0;
    let mut below = vec![0.0];
    below.extend(counts.iter().map(|n| {
        sum += n;
        (sum / all).min(1.0)
    }));
    below
}

/// The edges of `n` bins of equal width.
pub(crate) fn even(n: usize) -> Vec<f64> {
    (0..=n).map(|i| i as f64 / n.max(1) as f64).collect()
}

/// How a leaf turns a member's ranks into values.
#[derive(Debug)]
pub(crate) struct Ranked {
    pub member: usize,
    /// For values from a list, in the order of their ranks: where each value's ranks begin and end, and its number in
    /// the dictionary.
    pub ends: Vec<f64>,
    pub numbers: Vec<u32>,
}

impl Ranked {
    /// The dictionary number of the value at a rank.
    #[inline]
    pub(crate) fn number(&self, rank: f64) -> u32 {
        self.numbers.get(bin(&self.ends, rank)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_the_correlations_and_impossible_ones_are_shortened() {
        let wanted = [vec![], vec![0.8], vec![-0.5, 0.1]];
        let (found, excess) = factors(&wanted);
        assert!(excess <= 0.0);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for (i, with) in wanted.iter().enumerate() {
            assert!((product(&found[i], &found[i]) - 1.0).abs() < 1e-12);
            for (j, correlation) in with.iter().enumerate() {
                assert!((product(&found[i], &found[j]) - correlation).abs() < 1e-12);
            }
        }
        let (found, excess) = factors(&[vec![], vec![0.9], vec![-0.9, 0.9]]);
        assert!(excess > 1.0 && (product(&found[2], &found[2]) - 1.0).abs() < 1e-12);
        // A copy of the first one says nothing more.
        assert_eq!(factors(&[vec![], vec![1.0], vec![0.5, 0.5]]).0[1], [1.0, 0.0]);
    }

    #[test]
    fn a_table_chooses_the_bins_and_its_inverse_finds_the_share() {
        let own = even(3);
        let below = vec![shares_below(&[0.0, 1.0, 3.0], &own), shares_below(&[0.0; 3], &own)];
        let by = By { member: 0, of: even(2), own, below };
        for (other, share, rank) in
            [(0.2, 0.0, 1.0 / 3.0), (0.2, 0.25, 2.0 / 3.0), (0.2, 0.625, 5.0 / 6.0), (0.9, 0.3, 0.3)]
        {
            assert!((by.rank(other, share) - rank).abs() < 1e-12, "{other} {share}");
            assert!((by.share(other, rank) - share).abs() < 1e-12, "{other} {share}");
        }
    }
}
