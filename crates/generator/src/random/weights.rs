//! Categorical draws in constant time: Vose's alias method.
//!
//! (M. D. Vose: "A linear algorithm for generating random numbers with a given distribution",
//! IEEE Transactions on Software Engineering 17(9), 1991.)

use crate::random::instruction_sets::widest;
use crate::random::rng::{Stream, scale32};

/// A table that draws index `i` with a probability proportional to its weight.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// For each cell: the threshold below which it means its own index, and the index it means otherwise.
    cells: Vec<(u32, u32)>,
    /// The weights, scaled to a sum of 1.
    probabilities: Vec<f64>,
}

/// Why a list of weights is not a valid distribution.
#[derive(Debug, PartialEq)]
pub(crate) enum BadWeights {
    /// The list is empty.
    Empty,
    /// One is negative, infinite or not a number.
    NotAWeight(f64),
    /// They sum to zero.
    AllZero,
}

impl Weights {
    /// Builds the table.
    pub(crate) fn new(weights: &[f64]) -> Result<Self, BadWeights> {
        if weights.is_empty() {
            return Err(BadWeights::Empty);
        }
        if let Some(w) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
            return Err(BadWeights::NotAWeight(*w));
        }
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 || !sum.is_finite() {
            return Err(BadWeights::AllZero);
        }
        let n = weights.len();
        let probabilities: Vec<f64> = weights.iter().map(|w| w / sum).collect();
        let mut scaled: Vec<f64> = probabilities.iter().map(|p| p * n as f64).collect();
        let mut cells: Vec<(u32, u32)> = (0..n as u32).map(|i| (u32::MAX, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| scaled[i] < 1.0);
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            cells[low] = ((scaled[low] * 2f64.powi(32)) as u32, high as u32);
            scaled[high] -= 1.0 - scaled[low];
            if scaled[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Ok(Weights { cells, probabilities })
    }

    /// The index for 32 uniform bits.
    #[inline(always)]
    pub(crate) fn pick(&self, draw: u32) -> u32 {
        pick(&self.cells, draw)
    }

    /// Fills `out` with indices drawn from the stream.
    pub(crate) fn fill(&self, stream: Stream, out: &mut [u32]) {
        if self.cells.len() > 1 << 12 {
            for (i, out) in out.iter_mut().enumerate() {
                *out = self.pick_fine(stream.draw(i as u64));
            }
            return;
        }
        stream.fill32(out);
        pick_all(&self.cells, out);
    }

    /// Replaces each 32-bit draw by its index.
    pub(crate) fn replace(&self, draws: &mut [u32]) {
        pick_all(&self.cells, draws);
    }

    /// The index for 64 uniform bits: precise for tables so large that 32 bits would leave too few for the
    /// choice within a cell.
    #[inline(always)]
    pub(crate) fn pick_fine(&self, draw: u64) -> u32 {
        let (cell, _) = scale32((draw >> 32) as u32, self.cells.len() as u32);
        let (threshold, alias) = self.cells[cell as usize];
        std::hint::select_unpredictable((draw as u32) < threshold, cell, alias)
    }

    /// The index that [`fill`](Self::fill) writes to place `i`.
    pub(crate) fn at(&self, stream: Stream, i: u64) -> u32 {
        if self.cells.len() > 1 << 12 {
            return self.pick_fine(stream.draw(i));
        }
        // Two 32-bit draws come from each 64-bit draw.
        self.pick((stream.draw(i / 2) >> (32 * (i % 2))) as u32)
    }

    /// The probability of each index.
    pub(crate) fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }
}

#[inline(always)]
fn pick(cells: &[(u32, u32)], draw: u32) -> u32 {
    let (cell, rest) = scale32(draw, cells.len() as u32);
    let (threshold, alias) = cells[cell as usize];
    std::hint::select_unpredictable(rest < threshold, cell, alias)
}

widest! {
/// Replaces each 32-bit draw by its index.
fn pick_all(cells: &[(u32, u32)], draws: &mut [u32]) {
    for draw in draws {
        *draw = pick(cells, *draw);
    }
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [55.0, 35.0, 10.0, 0.0];
        let table = Weights::new(&weights).unwrap();
        let stream = Stream::new(42, 1, 0);
        let n = 1_000_000;
        let mut counts = [0f64; 4];
        for i in 0..n {
            counts[table.pick(stream.draw(i) as u32) as usize] += 1.0;
        }
        assert_eq!(counts[3], 0.0);
        let chi_square: f64 = (0..3)
            .map(|i| {
                let expected = n as f64 * weights[i] / 100.0;
                (counts[i] - expected).powi(2) / expected
            })
            .sum();
        // Two degrees of freedom: 18.4 is passed once in ten thousand fair tables, and this
        // stream is fixed.
        assert!(chi_square < 18.4, "{counts:?}");
    }

    #[test]
    fn invalid_weights_are_refused() {
        assert_eq!(Weights::new(&[]).unwrap_err(), BadWeights::Empty);
        assert_eq!(Weights::new(&[1.0, -1.0]).unwrap_err(), BadWeights::NotAWeight(-1.0));
        assert!(matches!(Weights::new(&[f64::NAN]).unwrap_err(), BadWeights::NotAWeight(w) if w.is_nan()));
        assert_eq!(Weights::new(&[0.0, 0.0]).unwrap_err(), BadWeights::AllZero);
    }
}
