//! Normal scores of values that are known as ranges of ranks, and their correlations.

use crate::random::elementary::exp;
use crate::random::normal::normal_quantile;

/// Jacobi's rotations converge in far fewer sweeps.
const MAX_SWEEPS: usize = 30;

/// Entries nearer to 0 are not rotated.
const ROTATED: f64 = 1e-9;

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

/// The correlation of the numbers at these pairs of places, and how many these are.
pub(super) fn correlation_before(values: &[f64], pairs: &[[usize; 2]]) -> (f64, usize) {
    let at = |end: usize| -> Vec<f64> {
        pairs.iter().map(|pair| values.get(pair[end]).copied().unwrap_or(f64::NAN)).collect()
    };
    correlation(&at(0), &at(1))
}

/// The mean square of the numbers, without nulls.
pub(super) fn mean_square(values: &[f64]) -> f64 {
    let there = values.iter().filter(|v| !v.is_nan());
    let (n, sum) = there.fold((0usize, 0.0), |(n, sum), v| (n + 1, sum + v * v));
    sum / n.max(1) as f64
}

/// The nearest correlation matrix to a symmetric one with no eigenvalue below `least`, apart from the scale of
/// each row.
pub(super) fn positive(matrix: Vec<Vec<f64>>, least: f64) -> Vec<Vec<f64>> {
    let (values, vectors) = eigen(matrix.clone());
    if values.iter().all(|value| *value >= least) {
        return matrix;
    }
    let n = matrix.len();
    let part = |k: usize, i: usize, j: usize| values[k].max(least) * vectors[k][i] * vectors[k][j];
    let at = |i: usize, j: usize| (0..n).map(|k| part(k, i, j)).sum::<f64>();
    let sizes: Vec<f64> = (0..n).map(|i| at(i, i).sqrt()).collect();
    (0..n).map(|i| (0..n).map(|j| at(i, j) / (sizes[i] * sizes[j])).collect()).collect()
}

/// The eigenvalues of a symmetric matrix, each with its vector, by Jacobi's rotations.
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..MAX_SWEEPS {
        let mut left = 0.0f64;
        for i in 0..n {
            for j in 0..i {
                let off = matrix[i][j];
                left = left.max(off.abs());
                if off.abs() < ROTATED {
                    continue;
                }
                let slope = (matrix[i][i] - matrix[j][j]) / (2.0 * off);
                let tangent = slope.signum() / (slope.abs() + (slope * slope + 1.0).sqrt());
                let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
                rotate(&mut matrix, (i, j), cosine, tangent * cosine);
                for row in &mut matrix {
                    (row[i], row[j]) = turned((row[i], row[j]), cosine, tangent * cosine);
                }
                rotate(&mut vectors, (i, j), cosine, tangent * cosine);
            }
        }
        if left < ROTATED {
            break;
        }
    }
    ((0..n).map(|i| matrix[i][i]).collect(), vectors)
}

fn turned((a, b): (f64, f64), cosine: f64, sine: f64) -> (f64, f64) {
    (cosine * a + sine * b, cosine * b - sine * a)
}

/// Rotates two rows in their plane; the second has the lower number.
fn rotate(rows: &mut [Vec<f64>], (i, j): (usize, usize), cosine: f64, sine: f64) {
    let (before, after) = rows.split_at_mut(i);
    for (a, b) in after[0].iter_mut().zip(&mut before[j]) {
        (*a, *b) = turned((*a, *b), cosine, sine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_that_no_scores_have_become_near_ones_that_some_have() {
        let wanted = vec![vec![1.0, 0.9, -0.9], vec![0.9, 1.0, 0.9], vec![-0.9, 0.9, 1.0]];
        let found = positive(wanted, 0.01);
        // The nearest ones are a half.
        for (i, j, value) in [(0, 0, 1.0), (0, 1, 0.5), (0, 2, -0.5), (1, 2, 0.5)] {
            assert!((found[i][j] - value).abs() < 0.02, "{found:?}");
        }
        let (values, _) = eigen(found);
        assert!(values.iter().all(|value| *value > 0.005), "{values:?}");
        let possible = vec![vec![1.0, 0.3], vec![0.3, 1.0]];
        assert_eq!(positive(possible.clone(), 0.01), possible);
    }
}
