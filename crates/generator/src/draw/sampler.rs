//! The skewed ranks of datasets, without files.
//!
//! As in datasets, draw `i` of block `b` depends on the seed, `b` and `i` alone, and uses the same tables.

use crate::draw::distribution::Ranks;
use crate::error::{Error, Result};
use crate::random::rng::{Stream, purpose};

/// Ranks from 1 to `n`; rank `k` has a probability proportional to `k^-s`.
///
/// ```
/// use sawmill_generator::ZipfSampler;
/// let ranks = ZipfSampler::new(1_000_000, 1.1, 42)?;
/// let mut drawn = [0; 100];
/// ranks.fill(0, &mut drawn);
/// assert!(drawn.iter().all(|rank| (1..=1_000_000).contains(rank)));
/// # Ok::<(), sawmill_generator::Error>(())
/// ```
#[derive(Debug)]
pub struct ZipfSampler {
    ranks: Ranks,
    seed: u64,
}

impl ZipfSampler {
    /// Up to 2^16 ranks it uses a table of 8 bytes a rank, beyond that buckets of ranks.
    ///
    /// # Errors
    ///
    /// `n` is 0, or `s` is negative or not finite.
    pub fn new(n: u64, s: f64, seed: u64) -> Result<Self> {
        let valid = n > 0 && s.is_finite() && s >= 0.0;
        let ranks = valid.then(|| Ranks::new(n, s)).flatten().ok_or_else(|| {
            let advice = "use at least 1 rank, and an exponent s of 0 or more";
            Error::spec(
                format!("n = {n}, s = {s} are not parameters of a Zipf distribution"),
                "sampler",
                advice,
            )
        })?;
        Ok(Self { ranks, seed })
    }

    /// Fills `out` with the ranks of `block`.
    pub fn fill(&self, block: u64, out: &mut [u64]) {
        let stream = Stream::new(self.seed, purpose("", "zipf"), block);
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.ranks.rank(stream.draw(i as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::elementary::pow;

    /// The chi-square statistic of `counts`.
    fn chi_square(counts: &[u64], expected: &[f64]) -> f64 {
        let n = counts.iter().sum::<u64>() as f64;
        counts.iter().zip(expected).map(|(count, p)| (*count as f64 - n * p).powi(2) / (n * p)).sum()
    }

    #[test]
    fn ranks_are_zipfian() {
        let (n, s) = (1_000_000u64, 1.1);
        let sampler = ZipfSampler::new(n, s, 7).unwrap();
        let mut counts = [0u64; 21];
        for block in 0..1_000 {
            let mut drawn = [0; 1_000];
            sampler.fill(block, &mut drawn);
            for rank in drawn {
                counts[(rank as usize - 1).min(20)] += 1;
            }
        }
        let total: f64 = (1..=n).map(|k| pow(k as f64, -s)).sum();
        let mut expected: Vec<f64> = (1..=20).map(|k| pow(f64::from(k), -s) / total).collect();
        expected.push(1.0 - expected.iter().sum::<f64>());
        // 20 degrees of freedom: one of ten thousand fair samples exceeds this, and this sample is fixed.
        assert!(chi_square(&counts, &expected) < 52.4, "{counts:?}");
    }

    #[test]
    fn invalid_distributions_are_refused() {
        for (n, s) in [(0, 1.0), (10, -1.0), (10, f64::NAN), (u64::MAX, f64::INFINITY)] {
            assert!(ZipfSampler::new(n, s, 0).is_err(), "{n} {s}");
        }
    }
}
