//! Zipf draws for more ranks than a table should have.
//!
//! The first ranks have a bucket each. Further ranks share buckets that are a 64th wider than the rank they begin
//! with, so that 2^53 ranks take some 2,900 buckets and 90 kB. A draw picks a bucket from an alias table by the
//! exact sum of its probabilities, then a rank of it by rejection: all but 1 in 64/s ranks are accepted without
//! computing a power.

use super::elementary::{ln, pow};
use crate::random::rng::{Sequence, scale64, unit_interval};
use crate::random::weights::Weights;

/// How many ranks have a bucket of their own.
const ALONE: u64 = 1024;

/// The ranks of a bucket are fewer than its first rank divided by this.
const PART: u64 = 64;

/// Ranks from 1 to `n`; rank `k` has a probability proportional to `k^-s`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    s: f64,
    table: Weights,
    buckets: Vec<Bucket>,
}

/// Consecutive ranks.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u64,
    ranks: u64,
    /// Draws up to this one accept every rank: the probability of the last rank divided by the first rank's,
    /// as a share of 2^64.
    sure: u64,
}

impl Zipf {
    /// `None` unless `n` is at least 1, and `s` is finite and at least 0.
    pub(crate) fn new(n: u64, s: f64) -> Option<Self> {
        if n == 0 || !s.is_finite() || s < 0.0 {
            return None;
        }
        let (mut buckets, mut weights) = (Vec::new(), Vec::new());
        let mut first = 1;
        while first <= n {
            let ranks = if first <= ALONE { 1 } else { first / PART }.min(n - first + 1);
            let least = pow(first as f64 / (first + ranks - 1) as f64, s);
            let sure = if ranks == 1 { u64::MAX } else { (least * 2f64.powi(64)) as u64 };
            buckets.push(Bucket { first, ranks, sure });
            weights.push(weight(first, ranks, s));
            first += ranks;
        }
        Weights::new(&weights).ok().map(|table| Self { s, table, buckets })
    }

    #[inline(always)]
    pub(crate) fn rank(&self, draw: u64) -> u64 {
        let bucket = self.buckets[self.table.pick_fine(draw) as usize];
        let mut random = Sequence::new(draw);
        loop {
            let rank = bucket.first + scale64(random.next(), bucket.ranks);
            let chance = random.next();
            if chance <= bucket.sure || self.accepts(bucket.first, rank, chance) {
                return rank;
            }
        }
    }

    /// Whether a draw accepts `rank` in the bucket that begins with `first`.
    #[cold]
    fn accepts(&self, first: u64, rank: u64, chance: u64) -> bool {
        unit_interval(chance) < pow(first as f64 / rank as f64, self.s)
    }
}

/// The sum of `k^-s` over `ranks` ranks from `first`, by the Euler-Maclaurin formula if they are many.
fn weight(first: u64, ranks: u64, s: f64) -> f64 {
    if ranks <= PART {
        return (first..first + ranks).map(|rank| pow(rank as f64, -s)).sum();
    }
    let (low, high) = (first as f64, (first + ranks - 1) as f64);
    // The integral of x^-s is low^(1-s) (e^t - 1) / (1 - s) with t = (1 - s) ln(high / low): a series of t, which
    // is small, holds for s = 1, too.
    let log = ln(high / low);
    let t = (1.0 - s) * log;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while f64::abs(term) > 1e-17 {
        k += 1.0;
        term *= t / k;
        sum += term;
    }
    let integral = pow(low, 1.0 - s) * log * sum;
    let slope = |x: f64| -s * pow(x, -s - 1.0);
    integral + (pow(low, -s) + pow(high, -s)) / 2.0 + (slope(high) - slope(low)) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_ranks_once() {
        for n in [1, 1024, 1025, 1_000_000, 1 << 53] {
            let zipf = Zipf::new(n, 1.1).unwrap();
            let mut next = 1;
            for bucket in &zipf.buckets {
                assert_eq!(bucket.first, next);
                next += bucket.ranks;
            }
            assert_eq!(next, n + 1);
            assert!(zipf.buckets.len() < 3_000);
        }
    }

    #[test]
    fn the_weight_of_a_bucket_is_the_sum_of_its_ranks() {
        for s in [0.0, 0.5, 1.0, 1.1, 2.0, 30.0] {
            for (first, ranks) in [(1025u64, 16u64), (8_000, 125), (100_000, 1562)] {
                let sum: f64 = (first..first + ranks).map(|rank| pow(rank as f64, -s)).sum();
                let weight = weight(first, ranks, s);
                assert!((weight - sum).abs() <= 1e-12 * sum, "{first} {ranks} {s}: {weight} {sum}");
            }
        }
    }

    #[test]
    fn ranks_within_a_bucket_follow_the_power() {
        // A bucket of a steep distribution: the last of its ranks is 16 % less likely than the first.
        let zipf = Zipf::new(70_000, 12.0).unwrap();
        let bucket = Zipf {
            buckets: zipf.buckets[1250..1251].to_vec(),
            table: Weights::new(&[1.0]).unwrap(),
            s: 12.0,
        };
        let Bucket { first, ranks, .. } = bucket.buckets[0];
        let draws = 1_000_000u64;
        let mut halves = [0u64; 2];
        let stream = crate::random::rng::Stream::new(1, 2, 3);
        for i in 0..draws {
            halves[usize::from(bucket.rank(stream.draw(i)) - first >= ranks / 2)] += 1;
        }
        let expected = weight(first, ranks / 2, 12.0) / weight(first, ranks, 12.0);
        let share = halves[0] as f64 / draws as f64;
        // Four standard deviations.
        assert!((share - expected).abs() < 0.002, "{share} instead of {expected}");
        assert!(expected > 0.51);
    }
}
