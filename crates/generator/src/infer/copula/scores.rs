//! Normal scores of values that are known as ranges of ranks, and their correlations.

use crate::random::elementary::exp;
use crate::random::normal::normal_quantile;

/// A narrower range has the score of its middle.
const NARROW: f64 = 1e-4;

/// The mean normal score between two shares.
pub(super) fn mean_score(low: f64, high: f64) -> f64 {
    if high - low < NARROW {
        return normal_quantile((low + high) / 2.0);
    }
    const SCALE: f64 = 0.398_942_280_401_432_7;
    let density = |share: f64| match share <= 0.0 || share >= 1.0 {
        true => 0.0,
        false => {
            let score = normal_quantile(share);
            SCALE * exp(-score * score / 2.0)
        }
    };
    (density(low) - density(high)) / (high - low)
}

/// The correlation in the rows in which both are numbers, and how many these are.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> (f64, usize) {
    let (mut n, mut sums) = (0usize, [0.0f64; 5]);
    for (x, y) in a.iter().zip(b).filter(|(x, y)| !(x.is_nan() || y.is_nan())) {
        n += 1;
        [*x, *y, x * x, y * y, x * y].iter().zip(&mut sums).for_each(|(v, sum)| *sum += v);
    }
    let [x, y, xx, yy, xy] = sums.map(|sum| sum / n.max(1) as f64);
    let spread = ((xx - x * x) * (yy - y * y)).max(0.0).sqrt();
    (if spread > 1e-12 { ((xy - x * y) / spread).clamp(-1.0, 1.0) } else { 0.0 }, n)
}

/// The mean square of the numbers, without nulls.
pub(super) fn mean_square(values: &[f64]) -> f64 {
    let there = values.iter().filter(|v| !v.is_nan());
    let (n, sum) = there.fold((0usize, 0.0), |(n, sum), v| (n + 1, sum + v * v));
    sum / n.max(1) as f64
}
