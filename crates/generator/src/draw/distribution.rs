//! Distributions of numbers: their parameters in a spec, draws, and expected values.
//!
//! Distributions with few outcomes (Poisson, geometric, Zipf up to [`MAX_RANKS`]) are drawn from an alias table,
//! longer Zipf distributions from buckets of ranks, the others by the ziggurat method. Those use a separate
//! generator for each value, so value *i* does not depend on how many bits value *i - 1* consumed.

use crate::error::Result;
use crate::random::elementary::{exp, fast_exp, ln, pow};
use crate::random::rng::{Sequence, Stream, scale64};
use crate::random::weights::Weights;
use crate::random::ziggurat;
use crate::random::zipf::Zipf;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::literal::{Literal, whole};
use crate::types::logical_type::LogicalType;

/// The most ranks of a Zipf table, which takes 8 bytes a rank. Measured: a draw from a larger table misses the
/// caches and is slower than one from buckets of ranks.
pub(crate) const MAX_RANKS: u64 = 1 << 16;

/// The largest mean of a Poisson distribution.
const MAX_MEAN: f64 = 1e6;

/// The smallest probability of a geometric distribution; its table has fewer than 2^22 entries.
const MIN_PROBABILITY: f64 = 1e-5;

/// A continuous distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Curve {
    Normal {
        mean: f64,
        stddev: f64,
    },
    /// `exp(N(mu, sigma))`.
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Exponential {
        mean: f64,
    },
}

impl Curve {
    /// Reads the parameters of the distribution `name`. Quantities are in the units of `kind`.
    pub(crate) fn read(name: &str, node: SpecNode<'_>, kind: &LogicalType) -> Result<Self> {
        let read = |table: SpecTable<'_>, key: &str, least: f64| -> Result<f64> {
            let node = table.need(key, name)?;
            let value = quantity(kind, node)?;
            if value >= least {
                return Ok(value);
            }
            let more =
                if least > 0.0 { "use more than 0".to_owned() } else { format!("use at least {least}") };
            Err(node.unfit(&format!("`{key} = {{}}` of {name}"), more))
        };
        Ok(match name {
            "normal" => {
                let table = node.table(name, &["mean", "stddev", "min", "max"])?;
                let mean = read(table, "mean", f64::NEG_INFINITY)?;
                Curve::Normal { mean, stddev: read(table, "stddev", 0.0)? }
            }
            "lognormal" => {
                let table = node.table(name, &["mu", "median", "sigma", "min", "max"])?;
                let mu = match (table.get("mu"), table.get("median")) {
                    (None, Some(_)) => ln(read(table, "median", f64::MIN_POSITIVE)?),
                    (Some(_), None) => read(table, "mu", f64::NEG_INFINITY)?,
                    _ => {
                        let what = "lognormal takes either `mu` or `median`";
                        return Err(table.error(what, "use one of them: median = exp(mu)"));
                    }
                };
                let (of, advice) = (("sigma", name), "use a number of at least 0");
                Curve::LogNormal {
                    mu,
                    sigma: table.read_needed(of, advice, |v| v.number_in(0.0..=f64::MAX))?,
                }
            }
            _ => {
                let table = node.table(name, &["mean", "min", "max"])?;
                Curve::Exponential { mean: read(table, "mean", f64::MIN_POSITIVE)? }
            }
        })
    }

    /// Draws one value.
    #[inline]
    pub(crate) fn sample(self, random: &mut Sequence) -> f64 {
        match self {
            Curve::Normal { mean, stddev } => mean + stddev * ziggurat::normal(random),
            Curve::LogNormal { mu, sigma } => fast_exp(mu + sigma * ziggurat::normal(random)),
            Curve::Exponential { mean } => mean * ziggurat::exponential(random),
        }
    }

    /// The median: half of the draws are below it.
    pub(crate) fn centre(self) -> f64 {
        match self {
            Curve::Normal { mean, .. } => mean,
            Curve::LogNormal { mu, .. } => exp(mu),
            Curve::Exponential { mean } => mean * std::f64::consts::LN_2,
        }
    }

    pub(crate) fn mean(self) -> f64 {
        match self {
            Curve::Normal { mean, .. } | Curve::Exponential { mean } => mean,
            Curve::LogNormal { mu, sigma } => exp(mu + sigma * sigma / 2.0),
        }
    }

    fn density(self, x: f64) -> f64 {
        let bell = |z: f64, sigma: f64| {
            exp(-z * z / (2.0 * sigma * sigma)) / (sigma * (2.0 * std::f64::consts::PI).sqrt())
        };
        match self {
            Curve::Normal { mean, stddev } => bell(x - mean, stddev.max(1e-6)),
            Curve::LogNormal { .. } | Curve::Exponential { .. } if x <= 0.0 => 0.0,
            Curve::LogNormal { mu, sigma } => bell(ln(x) - mu, sigma.max(1e-6)) / x,
            Curve::Exponential { mean } => exp(-x / mean) / mean,
        }
    }

    /// The probability of each whole number from `min` to `max` when draws are rounded to the nearest. Draws
    /// outside of the bounds count for the bound.
    pub(crate) fn rounded(self, min: u32, max: u32) -> Vec<(u32, f64)> {
        // Simpson's rule with 64 pieces for each unit.
        let unit = |k: u32| -> f64 {
            const PIECES: u32 = 64;
            // The density of the exponential distribution jumps at 0.
            let start = if matches!(self, Curve::Normal { .. }) {
                f64::from(k) - 0.5
            } else {
                (f64::from(k) - 0.5).max(0.0)
            };
            let step = (f64::from(k) + 0.5 - start) / f64::from(PIECES);
            let at = |i: u32| {
                self.density((start + f64::from(i) * step).max(if start == 0.0 { 1e-12 } else { start }))
            };
            let inner: f64 = (1..PIECES).map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * at(i)).sum();
            (at(0) + inner + at(PIECES)) * step / 3.0
        };
        let within: Vec<(u32, f64)> = (min..=max).map(|k| (k, unit(k))).collect();
        let below: f64 = match self {
            Curve::Normal { mean, .. } if mean < f64::from(min) - 0.5 => {
                1.0 - within.iter().map(|(_, p)| p).sum::<f64>()
            }
            _ => (0..min).map(unit).sum::<f64>(),
        };
        let total: f64 = within.iter().map(|(_, p)| p).sum();
        let negative = match self {
            // With its mean inside of the bounds, at most half of the missing probability is on each side.
            Curve::Normal { mean, .. } if mean >= f64::from(min) - 0.5 && min == 0 => {
                let above: f64 = (max + 1..max.saturating_add(2048)).map(unit).sum();
                (1.0 - total - above).max(0.0)
            }
            _ => 0.0,
        };
        let (first, last) = (0, within.len() - 1);
        let mut weights = within;
        weights[first].1 += below.max(0.0) + negative;
        let above = (1.0 - weights.iter().map(|(_, p)| p).sum::<f64>()).max(0.0);
        weights[last].1 += above;
        weights
    }
}

/// Counts drawn from a table: Poisson or geometric.
#[derive(Debug)]
pub(crate) struct Counts {
    /// The count at index 0 of the table.
    pub first: u32,
    pub table: Weights,
}

impl Counts {
    /// Reads the parameters of the distribution `name`. `min` and `max` are optional.
    pub(crate) fn read(name: &str, node: SpecNode<'_>) -> Result<Self> {
        let key = if name == "poisson" { "mean" } else { "p" };
        let table = node.table(name, &[key, "min", "max"])?;
        let parameter = |low: f64, high: f64| {
            let advice = format!("use a number from {low} to {high}");
            table.read_needed((key, name), advice, |node| node.number_in(low..=high))
        };
        let (mut first, mut weights) = match name {
            "poisson" => poisson(parameter(0.0, MAX_MEAN)?),
            _ => (0, geometric(parameter(MIN_PROBABILITY, 1.0)?)),
        };
        let bound = |key: &str| {
            let advice = format!("use a whole number from 0 to {MAX_MEAN}");
            table.read(key, advice, |node| node.integer_in(0..=MAX_MEAN as u32))
        };
        let (min, max) = node.in_order(bound("min")?.unwrap_or(0), bound("max")?.unwrap_or(u32::MAX))?;
        // Counts outside of the bounds are set to the bound.
        let mut within = Vec::new();
        let start = first.clamp(min, max);
        for (k, weight) in (first..).zip(weights) {
            let at = (k.clamp(min, max) - start) as usize;
            within.resize(within.len().max(at + 1), 0.0);
            within[at] += weight;
        }
        (first, weights) = (start, within);
        let table = Weights::new(&weights)
            .map_err(|_| node.error(format!("{name} without any outcome"), "use other parameters"))?;
        Ok(Counts { first, table })
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (u32, f64)> {
        (self.first..).zip(self.table.probabilities().iter().copied())
    }

    pub(crate) fn mean(&self) -> f64 {
        self.outcomes().map(|(k, p)| f64::from(k) * p).sum()
    }
}

/// The first count, and the relative probabilities from there up, within 12 standard deviations.
pub(crate) fn poisson(mean: f64) -> (u32, Vec<f64>) {
    let reach = 12.0 * mean.sqrt() + 24.0;
    let first = (mean - reach).max(0.0).floor();
    let mode = mean.floor();
    // From the mode outwards, because then every ratio is at most 1.
    let mut down = vec![1.0];
    let mut k = mode;
    while k > first {
        down.push(down.last().copied().unwrap_or(0.0) * k / mean);
        k -= 1.0;
    }
    down.reverse();
    let mut k = mode + 1.0;
    while k < mean + reach {
        down.push(down.last().copied().unwrap_or(0.0) * mean / k);
        k += 1.0;
    }
    (first as u32, down)
}

/// The probabilities of 0, 1, ... failures before the first success, without a tail of 1e-12.
fn geometric(p: f64) -> Vec<f64> {
    let n = if p >= 1.0 { 1.0 } else { (ln(1e-12) / ln(1.0 - p)).ceil().max(1.0) };
    let mut share = p;
    (0..n as u32)
        .map(|_| {
            let this = share;
            share *= 1.0 - p;
            this
        })
        .collect()
}

/// Ranks from 1 up; rank `k` has a probability proportional to `k^-s`.
#[derive(Debug)]
pub(crate) enum Ranks {
    Table {
        table: Weights,
        large: bool,
    },
    Buckets {
        zipf: Zipf,
        n: u64,
        s: f64,
    },
    /// Runs of ranks, each as likely as the others of its run: the first rank of each, counted from 0, and how many.
    Runs {
        table: Weights,
        runs: Vec<(u64, u64)>,
    },
}

impl Ranks {
    /// Reads `{ n = ..., s = ... }`.
    pub(crate) fn read(node: SpecNode<'_>) -> Result<Self> {
        let table = node.table("zipf", &["n", "s"])?;
        let n = count(table.need("n", "zipf")?, u64::MAX >> 11)?;
        let s = exponent(table.need("s", "zipf")?)?;
        Self::new(n, s).ok_or_else(|| {
            table.error(format!("zipf with n = {n}, s = {s}"), "use an exponent s of 0 or more")
        })
    }

    /// `None` if the parameters are not valid.
    pub(crate) fn new(n: u64, s: f64) -> Option<Self> {
        if n <= MAX_RANKS {
            let weights: Vec<f64> = (1..=n).map(|k| pow(k as f64, -s)).collect();
            return Weights::new(&weights).ok().map(|table| Ranks::Table { table, large: n > 1 << 12 });
        }
        Zipf::new(n, s).map(|zipf| Ranks::Buckets { zipf, n, s })
    }

    /// Ranks of `rows` in runs, of each its share of the rows and of the draws; `None` if the shares are not valid.
    pub(crate) fn of_runs(shares: &[(f64, f64)], rows: u64) -> Option<Self> {
        let total: f64 = shares.iter().map(|(keys, _)| keys).sum();
        if shares.iter().any(|(keys, _)| keys.is_nan() || *keys <= 0.0) || total > 1.000_001 {
            return None;
        }
        let (mut runs, mut end, mut share): (Vec<(u64, u64)>, u64, f64) = (Vec::new(), 0, 0.0);
        for (keys, _) in shares {
            share += keys;
            // Each run has a rank, also where there are fewer rows than the shares were taken from.
            let first = end.min(rows - 1);
            end = ((share * rows as f64).round() as u64).clamp(first + 1, rows);
            runs.push((first, end - first));
        }
        let weights: Vec<f64> = shares.iter().map(|(_, draws)| *draws).collect();
        Weights::new(&weights).ok().map(|table| Ranks::Runs { table, runs })
    }

    /// The rank for a random `draw`, from 1 up.
    #[inline(always)]
    pub(crate) fn rank(&self, draw: u64) -> u64 {
        match self {
            // 32 bits are enough if choosing the cell takes at most 12 of them.
            Ranks::Table { table, large: false } => u64::from(table.pick(draw as u32)) + 1,
            Ranks::Table { table, large: true } => u64::from(table.pick_fine(draw)) + 1,
            Ranks::Buckets { zipf, .. } => zipf.rank(draw),
            Ranks::Runs { table, runs } => {
                let (first, ranks) = runs[table.pick_fine(draw) as usize];
                first + scale64(Stream::from_draw(draw).draw(1), ranks) + 1
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            Ranks::Table { table, .. } => table.probabilities().len() as u64,
            Ranks::Buckets { n, .. } => *n,
            Ranks::Runs { runs, .. } => runs.last().map_or(0, |(first, ranks)| first + ranks),
        }
    }

    pub(crate) fn mean(&self) -> f64 {
        match self {
            Ranks::Table { table, .. } => {
                table.probabilities().iter().zip(1u32..).map(|(p, k)| p * f64::from(k)).sum()
            }
            Ranks::Buckets { n, s, .. } => harmonic(*n as f64, s - 1.0) / harmonic(*n as f64, *s),
            Ranks::Runs { table, runs } => {
                let middle = |(first, ranks): &(u64, u64)| *first as f64 + (*ranks as f64 + 1.0) / 2.0;
                table.probabilities().iter().zip(runs).map(|(p, run)| p * middle(run)).sum()
            }
        }
    }
}

/// The sum of `k^-s` for k from 1 to `n`. After a thousand terms it uses the Euler-Maclaurin formula.
fn harmonic(n: f64, s: f64) -> f64 {
    let first = n.min(1000.0);
    let head: f64 = (1..=first as u32).map(|k| pow(f64::from(k), -s)).sum();
    if n <= 1000.0 {
        return head;
    }
    let integral = if (s - 1.0).abs() < 1e-12 {
        ln(n / first)
    } else {
        (pow(n, 1.0 - s) - pow(first, 1.0 - s)) / (1.0 - s)
    };
    head + integral + (pow(n, -s) - pow(first, -s)) / 2.0
}

/// Reads a whole number from 1 to `most`.
pub(crate) fn count(node: SpecNode<'_>, most: u64) -> Result<u64> {
    let advice = || format!("use a whole number from 1 to {most}");
    node.integer_in(1..=most).ok_or_else(|| node.unfit("{} is not a valid number of values", advice()))
}

pub(crate) fn exponent(node: SpecNode<'_>) -> Result<f64> {
    let wrong = || node.unfit("{} is not a Zipf exponent", "use a number from 0 to 100");
    node.number_in(0.0..=100.0).ok_or_else(wrong)
}

/// Reads a quantity in the units of `kind`: a number or, for dates and times, a duration (`"3h"`) or a point
/// in time.
pub(crate) fn quantity(kind: &LogicalType, node: SpecNode<'_>) -> Result<f64> {
    let temporal = kind.ticks_per_day();
    let value = match (temporal, Literal::new(node)) {
        (Some(per_day), Some(Literal::Text(text))) => duration_ticks(text, per_day),
        (Some(_), Some(literal @ Literal::Datetime(_))) => whole(kind, &literal).map(|n| n as f64),
        _ => node.number(),
    };
    value.filter(|v| v.is_finite()).ok_or_else(|| {
        let advice = if temporal.is_some() {
            "use a number, a duration like \"3h\", \"250ms\" or \"30d\", or a point in time"
        } else {
            "use a number"
        };
        node.unfit(&format!("{{}} is not a quantity of type {}", kind.name()), advice)
    })
}

/// A duration like `"1.5h"` in ticks.
pub(crate) fn duration_ticks(text: &str, ticks_per_day: i128) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..at].trim().parse().ok()?;
    let seconds = match &text[at..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => DAY,
        "w" => 7.0 * DAY,
        _ => return None,
    };
    // The division comes last, so whole durations become whole ticks.
    let ticks = ticks_per_day as f64 / DAY;
    Some(if seconds < 1.0 { number * ticks / (1.0 / seconds).round() } else { number * seconds * ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_and_geometric_counts_have_their_means() {
        for mean in [0.0, 0.3, 7.0, 1234.5] {
            let (first, weights) = poisson(mean);
            let counts = Counts { first, table: Weights::new(&weights).unwrap() };
            assert!((counts.mean() - mean).abs() < 1e-6 * (1.0 + mean), "{mean}: {}", counts.mean());
        }
        for p in [1.0, 0.5, 0.01] {
            let counts = Counts { first: 0, table: Weights::new(&geometric(p)).unwrap() };
            assert!((counts.mean() - (1.0 - p) / p).abs() < 1e-6, "{p}: {}", counts.mean());
        }
    }

    #[test]
    fn rounded_curves_sum_to_one_and_nearly_keep_their_mean() {
        for (curve, min, max) in [
            (Curve::Normal { mean: 20.0, stddev: 3.0 }, 0, 60),
            (Curve::LogNormal { mu: 1.0, sigma: 0.5 }, 0, 200),
            (Curve::Exponential { mean: 10.0 }, 0, 400),
        ] {
            let weights = curve.rounded(min, max);
            let total: f64 = weights.iter().map(|(_, p)| p).sum();
            let mean: f64 = weights.iter().map(|(k, p)| f64::from(*k) * p).sum();
            assert!((total - 1.0).abs() < 1e-3, "{curve:?}: {total}");
            assert!((mean - curve.mean()).abs() < 0.02 * curve.mean(), "{curve:?}: {mean}");
        }
    }

    #[test]
    fn a_normal_distribution_below_the_bounds_counts_for_the_lower_bound() {
        let weights = Curve::Normal { mean: -50.0, stddev: 1.0 }.rounded(0, 5);
        assert!(weights[0].1 > 0.999, "{weights:?}");
    }

    #[test]
    fn ranks_from_a_table_and_from_buckets_have_the_same_distribution() {
        // Chi-square over the first ranks and the rest, at the 99.99 % quantile of 20 degrees.
        let (n, s, draws) = (5_000_000u64, 1.1, 400_000u64);
        let ranks = Ranks::new(n, s).unwrap();
        assert!(matches!(ranks, Ranks::Buckets { .. }));
        let small = Ranks::new(50_000, s).unwrap();
        for ranks in [ranks, small] {
            let total = harmonic(ranks.count() as f64, s);
            let mut counts = [0u64; 21];
            let stream = crate::random::rng::Stream::new(5, 6, 7);
            for i in 0..draws {
                let rank = ranks.rank(stream.draw(i));
                assert!((1..=ranks.count()).contains(&rank));
                counts[(rank as usize - 1).min(20)] += 1;
            }
            let mut chi_square = 0.0;
            let mut rest = 1.0;
            for (i, count) in counts.iter().enumerate() {
                let p = if i < 20 { pow((i + 1) as f64, -s) / total } else { rest };
                rest -= p;
                let expected = p * draws as f64;
                chi_square += (*count as f64 - expected).powi(2) / expected;
            }
            assert!(chi_square < 52.4, "{chi_square} {counts:?}");
        }
    }

    #[test]
    fn durations_become_ticks() {
        assert_eq!(duration_ticks("1.5h", 86_400_000), Some(5_400_000.0));
        assert_eq!(duration_ticks("250ms", 86_400_000_000), Some(250_000.0));
        assert_eq!(duration_ticks("2w", 1), Some(14.0));
        assert_eq!(duration_ticks("3 parsecs", 1), None);
    }
}
