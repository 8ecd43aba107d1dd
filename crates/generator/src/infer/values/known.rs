//! The known distributions, and how near a sample is to each.
//!
//! The Kolmogorov-Smirnov distance is the largest difference between the shares of values up to any point. Of
//! samples of a distribution 99 % are nearer to it than 1.63 / sqrt(n). A sample that is farther away, or
//! farther than [`FARTHEST`], is described by its quantiles instead.

use crate::draw::distribution::poisson;
use crate::random::elementary::{exp, ln, pow};

/// The largest distance at which a known distribution describes a sample, however small the sample is.
const FARTHEST: f64 = 0.02;

/// The most values at which the distance is computed.
const MAX_COMPARED: usize = 20_000;

/// The most ranks to fit an exponent to.
const MAX_FITTED_RANKS: f64 = 200_000.0;

/// A distribution with its parameters, in the numbers of the sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Uniform,
    Normal { mean: f64, stddev: f64 },
    LogNormal { median: f64, sigma: f64 },
    Exponential { mean: f64 },
    Poisson { mean: f64 },
    Geometric { p: f64 },
    Zipf { n: u64, s: f64 },
}

/// The values of a sample and how often each occurs, from the least to the greatest.
pub(crate) struct Counted<'a> {
    pub runs: &'a [(f64, u64)],
    /// The number of values.
    pub n: u64,
    /// The distance of neighbouring values that can be drawn: 1 for whole numbers, 0 for real ones.
    pub unit: f64,
    /// Whether values may be counts or ranks.
    pub counts: bool,
    /// The least and the greatest of all values, between which a distribution is drawn. A uniform one must not be
    /// stretched to bounds that the sample missed.
    pub bounds: (f64, f64),
}

impl Counted<'_> {
    /// The nearest known distribution, if it is near enough.
    pub(crate) fn nearest(&self) -> Option<Known> {
        let most = (1.63 / (self.n as f64).sqrt()).min(FARTHEST);
        let near = self.candidates().into_iter().map(|known| (self.distance(&known), known));
        let nearest = near.min_by(|a, b| a.0.total_cmp(&b.0));
        nearest.filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
    }

    fn ends(&self) -> (f64, f64) {
        (self.runs.first().map_or(0.0, |run| run.0), self.runs.last().map_or(0.0, |run| run.0))
    }

    fn candidates(&self) -> Vec<Known> {
        let (low, high) = self.ends();
        let n = self.n as f64;
        let mean = self.runs.iter().map(|(v, count)| v * *count as f64).sum::<f64>() / n;
        let squares = self.runs.iter().map(|(v, count)| (v - mean).powi(2) * *count as f64).sum::<f64>();
        let variance = squares / n;
        let mut known = vec![Known::Uniform, Known::Normal { mean, stddev: variance.sqrt() }];
        if low > 0.0 {
            let logs = || self.runs.iter().map(|(v, count)| (ln(*v), *count as f64));
            let mu = logs().map(|(v, count)| v * count).sum::<f64>() / n;
            let spread = logs().map(|(v, count)| (v - mu).powi(2) * count).sum::<f64>() / n;
            known.push(Known::LogNormal { median: exp(mu), sigma: spread.sqrt() });
        }
        if low >= 0.0 && mean > 0.0 {
            known.push(Known::Exponential { mean });
        }
        if self.counts && low >= 0.0 && mean > 0.0 {
            if (variance / mean - 1.0).abs() < 0.1 && mean < 1e6 {
                known.push(Known::Poisson { mean });
            }
            known.push(Known::Geometric { p: 1.0 / (1.0 + mean) });
            let most = self.runs.iter().map(|(_, count)| *count).max();
            if low == 1.0 && high <= MAX_FITTED_RANKS && self.runs.first().map(|run| run.1) == most {
                known.push(Known::Zipf { n: high as u64, s: self.exponent(high) });
            }
        }
        known
    }

    /// The Zipf exponent with the sample's average logarithm of ranks.
    fn exponent(&self, high: f64) -> f64 {
        let logs = self.runs.iter().map(|(v, count)| ln(*v) * *count as f64).sum::<f64>() / self.n as f64;
        let (mut low, mut up) = (0.0, 10.0);
        for _ in 0..30 {
            let s = (low + up) / 2.0;
            let (mut weights, mut sum) = (0.0, 0.0);
            for k in 1..=high as u32 {
                let weight = pow(k.into(), -s);
                weights += weight;
                sum += weight * ln(k.into());
            }
            (low, up) = if sum / weights > logs { (s, up) } else { (low, s) };
        }
        low
    }

    /// The distance of the sample to `known`.
    pub(crate) fn distance(&self, known: &Known) -> f64 {
        let below = self.shares_below(known);
        let every = self.runs.len().div_ceil(MAX_COMPARED);
        let (mut before, mut most) = (0u64, 0.0f64);
        for (i, (value, count)) in self.runs.iter().enumerate() {
            if i % every == 0 || i + 1 == self.runs.len() {
                let n = self.n as f64;
                let under = (below(value - self.unit / 2.0) - before as f64 / n).abs();
                let up_to = (below(value + self.unit / 2.0) - (before + count) as f64 / n).abs();
                most = most.max(under).max(up_to);
            }
            before += count;
        }
        most
    }

    /// The share of values below a point between two values that can be drawn.
    fn shares_below(&self, known: &Known) -> Box<dyn Fn(f64) -> f64> {
        let (low, high) = self.bounds;
        let half = self.unit / 2.0;
        let table = |first: f64, weights: Vec<f64>| -> Box<dyn Fn(f64) -> f64> {
            let total: f64 = weights.iter().sum();
            let mut sum = 0.0;
            let sums: Vec<f64> = weights
                .iter()
                .map(|w| {
                    sum += w;
                    sum / total
                })
                .collect();
            Box::new(move |x| {
                let k = (x - first).floor();
                if k < 0.0 { 0.0 } else { sums.get(k as usize).copied().unwrap_or(1.0) }
            })
        };
        let bell = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
        match *known {
            Known::Uniform => {
                Box::new(move |x| ((x - low + half) / (high - low + 2.0 * half)).clamp(0.0, 1.0))
            }
            Known::Normal { mean, stddev } => Box::new(move |x| bell((x - mean) / stddev)),
            Known::LogNormal { median, sigma } => {
                let mu = ln(median);
                Box::new(move |x| if x <= 0.0 { 0.0 } else { bell((ln(x) - mu) / sigma) })
            }
            Known::Exponential { mean } => Box::new(move |x| 1.0 - exp(-x.max(0.0) / mean)),
            Known::Poisson { mean } => {
                let (first, weights) = poisson(mean);
                table(first.into(), weights)
            }
            Known::Geometric { p } => {
                Box::new(move |x| if x < 0.0 { 0.0 } else { 1.0 - pow(1.0 - p, x.floor() + 1.0) })
            }
            Known::Zipf { n, s } => table(1.0, (1..=n).map(|k| pow(k as f64, -s)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dataset;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    /// The known distribution of 100,000 whole numbers drawn from `values`.
    fn nearest(values: &str) -> Option<Known> {
        nearest_up_to(values, f64::MIN)
    }

    /// The same if all values reach up to `greatest`.
    fn nearest_up_to(values: &str, greatest: f64) -> Option<Known> {
        let spec = format!("name = \"d\"\n[[fields]]\nname = \"v\"\ntype = \"int64\"\nvalues = {values}\n");
        let dataset = Dataset::from_toml(&spec).unwrap();
        let batch = dataset.batches(0..100_000, 1, 100_000).next().unwrap().unwrap();
        let mut values = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        values.sort_unstable();
        let runs: Vec<(f64, u64)> =
            values.chunk_by(|a, b| a == b).map(|run| (run[0] as f64, run.len() as u64)).collect();
        let bounds = (runs[0].0, runs[runs.len() - 1].0.max(greatest));
        Counted { runs: &runs, n: 100_000, unit: 1.0, counts: true, bounds }.nearest()
    }

    #[test]
    fn samples_of_known_distributions_are_recognised_with_their_parameters() {
        assert_eq!(nearest("{ uniform = { min = -5, max = 90000 } }"), Some(Known::Uniform));
        for (values, expected) in [
            ("{ poisson = { mean = 200 } }", 200.0),
            ("{ normal = { mean = 1000, stddev = 50 } }", 1000.0),
            ("{ lognormal = { median = 5000, sigma = 0.5 } }", 5000.0),
            ("{ exponential = { mean = 700 } }", 700.0),
            ("{ geometric = { p = 0.01 } }", 0.01),
            ("{ zipf = { n = 10000, s = 1.2 } }", 1.2),
        ] {
            let found = match nearest(values) {
                Some(Known::Poisson { mean } | Known::Normal { mean, .. } | Known::Exponential { mean }) => {
                    mean
                }
                Some(Known::LogNormal { median, .. }) => median,
                // Whole exponential waiting times are geometric.
                Some(Known::Geometric { p }) if expected > 1.0 => 1.0 / p,
                Some(Known::Geometric { p }) => p,
                Some(Known::Zipf { s, .. }) => s,
                other => panic!("{values}: {other:?}"),
            };
            assert!((found / expected - 1.0).abs() < 0.02, "{values}: {found}");
        }
    }

    #[test]
    fn a_value_outside_of_the_sample_does_not_stretch_a_uniform_distribution() {
        let values = "{ uniform = { min = 0, max = 90000 } }";
        assert_eq!(nearest_up_to(values, 90_010.0), Some(Known::Uniform));
        assert_eq!(nearest_up_to(values, 1e15), None);
    }

    #[test]
    fn a_mixture_is_not_taken_for_a_known_distribution() {
        assert_eq!(nearest("{ expression = \"floor(uniform(0, 2)) * 1000 + normal(500, 20)\" }"), None);
    }
}
