//! Chooses operations by their weights.

/// Cumulative weights.
#[derive(Clone, Debug)]
pub(crate) struct Weights(Vec<f64>);

impl Weights {
    /// Weights of 0 and more, of which one is more.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        Self(
            weights
                .iter()
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect(),
        )
    }

    /// The place that a random number falls on.
    pub(crate) fn choose(&self, draw: u64) -> usize {
        let whole = self.0.last().copied().unwrap_or(0.0);
        let at = draw as f64 / u64::MAX as f64 * whole;
        self.0.partition_point(|sum| *sum <= at).min(self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::process::Draws;

    #[test]
    fn operations_are_chosen_as_often_as_their_weights_say() {
        let (weights, mut draws, mut counts) = (Weights::new(&[80.0, 0.0, 20.0]), Draws::new(1), [0; 3]);
        (0..100_000).for_each(|_| counts[weights.choose(draws.next())] += 1);
        assert!(counts[1] == 0 && (79_000..81_000).contains(&counts[0]), "{counts:?}");
    }
}
