//! How unevenly keys are referred to: the Zipf exponent and the number of keys that occur at all.
//!
//! Counts of a sample are more uneven than what they are drawn from, so the exponent is taken from the share of pairs
//! of values that are equal, which has no such bias. If, with that exponent, more keys would have occurred in the
//! sample than did, only some of the keys are in use.

use crate::infer::notation::{digits, list, quoted};
use crate::random::elementary::{exp, pow};

/// Fewer pairs of equal values say nothing of an exponent.
const MIN_PAIRS: f64 = 30.0;

/// The largest exponent.
const MAX: f64 = 4.0;

/// The number of keys that occur may differ by this share from the expected one.
const NEARLY: f64 = 0.01;

/// Ranks up to this one are summed one by one, later ones in buckets.
const SINGLE: u64 = 256;

/// A skew below this, of all keys, is none.
pub(crate) const NEARLY_ALL: f64 = 0.98;

/// Zipfian skew over some of the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Skew {
    /// The exponent; 0 for equal probabilities.
    pub s: f64,
    /// The number of keys that are in use.
    pub used: u64,
}

impl Skew {
    /// The skew of `counts` of different keys, of `keys` in all.
    pub(crate) fn new(counts: &[u64], keys: u64) -> Self {
        let n = counts.iter().sum::<u64>() as f64;
        let pairs: f64 = counts.iter().map(|c| *c as f64 * (*c as f64 - 1.0)).sum();
        if pairs < MIN_PAIRS || keys == 0 {
            return Skew { s: 0.0, used: keys };
        }
        let equal = pairs / (n * (n - 1.0));
        let seen = counts.len() as f64;
        let all = exponent(keys, equal);
        if expected(keys, all, n) <= seen * (1.0 + NEARLY) + 3.0 * seen.sqrt() {
            return Skew { s: all, used: keys };
        }
        let (mut low, mut high) = (counts.len() as u64, keys);
        while high - low > 1 + low / 1000 {
            let middle = low + (high - low) / 2;
            if expected(middle, exponent(middle, equal), n) < seen { low = middle } else { high = middle }
        }
        Skew { s: exponent(high, equal), used: high }
    }
}

/// How often the rows of a table are referred to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frequencies {
    Zipf(Skew),
    /// Where no exponent fits: runs of keys, the most frequent first, each with its number of keys and its share of
    /// the references.
    Runs(Vec<(f64, f64)>),
}

/// Counts from which on a key's share is taken from the sample as it is, if all keys are as frequent on average that
/// their counts differ little by chance.
const SURE: u64 = 30;
const OFTEN: f64 = 200.0;

/// Counts from which on keys are surely more frequent than others, where the average is `mean`.
fn sure_count(mean: f64) -> u64 {
    if mean < OFTEN { SURE.max((2.0 * mean + 8.0 * mean.sqrt()) as u64) } else { SURE }
}

/// The share of the most frequent key may differ by this part.
const NEARLY_TOP: f64 = 0.15;

/// The number of different keys may differ by this part.
const NEARLY_ALL_KEYS: f64 = 0.03;

/// The share of the most frequent keys together may differ by this much.
const NEARLY_SHARES: f64 = 0.03;

impl Frequencies {
    /// The frequencies of `counts` of different keys, of `keys` in all.
    pub(crate) fn new(counts: &[u64], keys: u64) -> Self {
        let skew = Skew::new(counts, keys);
        let n = counts.iter().sum::<u64>() as f64;
        let most = counts.iter().max().copied().unwrap_or(0);
        let top = n * top_share(skew);
        let sure_from = sure_count(n / counts.len().max(1) as f64);
        let top_fits =
            most < sure_from || (most as f64 / top - 1.0).abs() < NEARLY_TOP + 3.0 / (most as f64).sqrt();
        let seen = counts.len() as f64;
        let keys_fit = (expected(skew.used, skew.s, n) / seen.max(1.0) - 1.0).abs()
            < NEARLY_ALL_KEYS + 3.0 / seen.max(1.0).sqrt();
        let mut sorted = counts.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let sure = sorted.partition_point(|count| *count >= sure_from);
        let shares_fit = farthest(skew, &sorted[..sure], n) < NEARLY_SHARES;
        if skew.s == 0.0 || sure == 0 || (top_fits && keys_fit && shares_fit) {
            return Frequencies::Zipf(skew);
        }
        let mut runs = Vec::new();
        let mut at = 0;
        while at < sure {
            let width = (at / 8).clamp(1, sure - at);
            runs.push((width as f64, sorted[at..at + width].iter().sum::<u64>() as f64 / n));
            at += width;
        }
        // Of rarer keys the counts of a sample are more uneven than their shares.
        let rest = &sorted[sure..];
        let tail = Skew::new(rest, keys.saturating_sub(sure as u64));
        let buckets = buckets(tail.used);
        let all = weight(&buckets, tail.s);
        let share = rest.iter().sum::<u64>() as f64 / n;
        if share > 0.0 && tail.s == 0.0 {
            runs.push((tail.used as f64, share));
        } else if share > 0.0 {
            for bucket in buckets.chunks(16) {
                let width = bucket.iter().map(|(_, width)| width).sum();
                runs.push((width, share * weight(bucket, tail.s) / all));
            }
        }
        Frequencies::Runs(runs)
    }

    /// A reference to `to` with these frequencies of `keys`, as the `values` of a field.
    pub(crate) fn reference(&self, to: &str, keys: u64, orphans: f64, shuffled: bool) -> String {
        let keys = keys as f64;
        let mut values = format!("{{ ref = {{ to = {}", quoted(to));
        match self {
            Frequencies::Zipf(skew) => {
                values += &format!(", s = {}", digits(skew.s, 4));
                let used = skew.used as f64 / keys;
                if used < NEARLY_ALL {
                    values += &format!(", used = {}", digits(used, 10));
                }
            }
            Frequencies::Runs(runs) => {
                let run = |(n, share): &(f64, f64)| list([digits(n / keys, 10), digits(*share, 10)]);
                values += &format!(", frequencies = {}", list(runs.iter().map(run)));
            }
        }
        if orphans > 0.0 {
            values += &format!(", orphans = {}", digits(orphans, 6));
        }
        values + if shuffled { ", shuffled = true } }" } else { " } }" }
    }

    /// The number of keys in use.
    pub(crate) fn used(&self) -> f64 {
        match self {
            Frequencies::Zipf(skew) => skew.used as f64,
            Frequencies::Runs(runs) => runs.iter().map(|(keys, _)| keys).sum(),
        }
    }

    /// Whether all keys in use are as frequent.
    pub(crate) fn is_even(&self) -> bool {
        matches!(self, Frequencies::Zipf(skew) if skew.s == 0.0)
    }

    /// The share of references that the first tenth of the ranks has.
    pub(crate) fn first_tenth(&self, keys: u64) -> f64 {
        let most = keys as f64 / 10.0;
        match self {
            Frequencies::Zipf(skew) => {
                let buckets = buckets(skew.used);
                let tenth = buckets.partition_point(|(rank, _)| *rank <= most);
                weight(&buckets[..tenth], skew.s) / weight(&buckets, skew.s)
            }
            Frequencies::Runs(runs) => {
                let mut at = 0.0;
                let share = runs.iter().map(|(keys, share)| {
                    let inside = (most - at).clamp(0.0, *keys) / keys;
                    at += keys;
                    share * inside
                });
                share.sum()
            }
        }
    }
}

/// The greatest distance of the shares of the most frequent keys together from a skew's shares; `counts` are sorted.
fn farthest(skew: Skew, counts: &[u64], n: f64) -> f64 {
    let buckets = buckets(skew.used);
    let all = weight(&buckets, skew.s);
    let (mut at, mut expected, mut found, mut most) = (0, 0.0, 0, 0.0f64);
    for (rank, width) in buckets {
        let Some(counts) = counts.get(at..at + width as usize) else { break };
        at += counts.len();
        expected += width * pow(rank, -skew.s) / all;
        found += counts.iter().sum::<u64>();
        most = most.max((expected - found as f64 / n).abs());
    }
    most
}

/// The share of the most frequent key.
fn top_share(skew: Skew) -> f64 {
    1.0 / weight(&buckets(skew.used), skew.s)
}

/// The weights of these buckets together.
fn weight(buckets: &[(f64, f64)], s: f64) -> f64 {
    buckets.iter().map(|(rank, width)| width * pow(*rank, -s)).sum()
}

/// Ranks in buckets: the middle of each, and how many ranks it has.
fn buckets(keys: u64) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = (1..=keys.min(SINGLE)).map(|rank| (rank as f64, 1.0)).collect();
    let mut next = SINGLE + 1;
    while next <= keys {
        let width = (next / 64).min(keys + 1 - next);
        out.push((next as f64 + (width as f64 - 1.0) / 2.0, width as f64));
        next += width;
    }
    out
}

/// The exponent with which two draws are equal with probability `equal`.
fn exponent(keys: u64, equal: f64) -> f64 {
    let buckets = buckets(keys);
    let chance = |s: f64| weight(&buckets, 2.0 * s) / weight(&buckets, s).powi(2);
    if chance(0.0) >= equal {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, MAX);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if chance(middle) < equal { low = middle } else { high = middle }
    }
    // Equal probabilities never look quite equal.
    if low < 0.05 { 0.0 } else { low }
}

/// How many different keys `n` draws have.
fn expected(keys: u64, s: f64, n: f64) -> f64 {
    let buckets = buckets(keys);
    let sum = weight(&buckets, s);
    buckets.iter().map(|(rank, width)| width * (1.0 - exp(-n * pow(*rank, -s) / sum))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::distribution::Ranks;
    use crate::random::rng::Stream;

    fn counts(keys: u64, s: f64, draws: u64) -> Vec<u64> {
        let ranks = Ranks::new(keys, s).unwrap();
        let mut counts = vec![0; keys as usize];
        (0..draws).for_each(|i| counts[ranks.rank(Stream::from_draw(7).draw(i)) as usize - 1] += 1);
        counts.retain(|n| *n > 0);
        counts
    }

    #[test]
    fn the_exponent_and_the_keys_in_use_are_found_again() {
        for (keys, s, draws) in
            [(1000, 0.0, 50_000), (1000, 1.0, 50_000), (50_000, 0.7, 200_000), (100_000, 1.3, 200_000)]
        {
            let found = Skew::new(&counts(keys, s, draws), keys);
            assert!((found.s - s).abs() < 0.03, "{keys} {s}: {found:?}");
            assert!(found.used as f64 > 0.97 * keys as f64, "{keys} {s}: {found:?}");
        }
    }

    #[test]
    fn keys_that_nothing_refers_to_are_not_taken_for_skew() {
        let found = Skew::new(&counts(20_000, 0.0, 200_000), 30_000);
        assert!(found.s < 0.05 && (found.used as f64 / 20_000.0 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn frequencies_that_no_exponent_fits_are_kept_as_runs() {
        // One key has a third of the references, 400 others the rest, and 1,600 none.
        let mut counts = vec![10_000];
        counts.extend([50; 400]);
        let Frequencies::Runs(runs) = Frequencies::new(&counts, 2001) else { panic!("not an exponent") };
        assert!((runs[0].1 - 1.0 / 3.0).abs() < 1e-9, "{runs:?}");
        assert!((runs.iter().map(|run| run.0).sum::<f64>() - 401.0).abs() < 3.0, "{runs:?}");
        assert!((runs.iter().map(|run| run.1).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_small_sample_says_nothing() {
        assert_eq!(Skew::new(&[1; 100], 1_000_000), Skew { s: 0.0, used: 1_000_000 });
        assert_eq!(Skew::new(&[], 0), Skew { s: 0.0, used: 0 });
    }
}
