//! A random order of the numbers below `n` that is computed, not stored: a Feistel network.
//!
//! Rounds mix each half of a number's bits into the other, which can be undone, so no two numbers become the
//! same. The network permutes the next power of two; a result that is not below `n` goes through it again.

use crate::random::rng::Stream;

/// Enough to break up neighbours and low numbers; it is not a cipher.
const ROUNDS: u64 = 4;

/// A permutation of the numbers below `n`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    n: u64,
    /// The bits of the lower half, and of the upper one.
    low: u32,
    high: u32,
    key: u64,
}

impl Permutation {
    /// The permutation that `key` chooses.
    pub(crate) fn new(n: u64, key: u64) -> Self {
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(2);
        Permutation { n, low: bits / 2, high: bits - bits / 2, key }
    }

    /// Where `number`, which is below `n`, goes to.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> u64 {
        let mut at = number;
        loop {
            at = self.rounds(at);
            if at < self.n {
                return at;
            }
        }
    }

    fn rounds(&self, number: u64) -> u64 {
        let (low_mask, high_mask) = ((1 << self.low) - 1, (1 << self.high) - 1);
        let (mut low, mut high) = (number & low_mask, number >> self.low);
        for round in 0..ROUNDS {
            let mixed = Stream::from_draw(self.key.wrapping_add(round));
            match round % 2 {
                0 => high ^= mixed.draw(low) & high_mask,
                _ => low ^= mixed.draw(high) & low_mask,
            }
        }
        high << self.low | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_another_place() {
        for n in [1, 2, 3, 5, 64, 1000, 1024, 1025, 30_000] {
            let permutation = Permutation::new(n, 77);
            let mut places: Vec<u64> = (0..n).map(|number| permutation.place(number)).collect();
            let low: u64 = places.iter().take(100).sum::<u64>() / n.min(100);
            if n > 500 {
                assert!(low > n / 3 && low < 2 * n / 3, "low numbers go everywhere: {low} of {n}");
            }
            places.sort_unstable();
            assert!(places.into_iter().eq(0..n), "{n}");
        }
    }
}
