//! A distribution in a few figures, in addition to its histogram.

use serde::{Deserialize, Serialize};

use crate::result::histogram::Durations;

/// Percentiles of a duration, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The number of values.
    pub count: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// 90 % are at most this.
    pub p90_us: u64,
    /// 99 % are at most this.
    pub p99_us: u64,
    /// 99.9 % are at most this.
    pub p999_us: u64,
    /// The greatest.
    pub max_us: u64,
}

impl Percentiles {
    /// The names of its [`figures`](Self::figures).
    pub(crate) const NAMES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "greatest"];

    /// The percentiles and the greatest value.
    pub(crate) fn figures(&self) -> [u64; 5] {
        [self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us]
    }
}

impl From<&Durations> for Percentiles {
    fn from(histogram: &Durations) -> Self {
        Self {
            count: histogram.count(),
            mean_us: histogram.mean(),
            p50_us: histogram.quantile(0.5),
            p90_us: histogram.quantile(0.9),
            p99_us: histogram.quantile(0.99),
            p999_us: histogram.quantile(0.999),
            max_us: histogram.max(),
        }
    }
}

/// A distribution with its histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its figures.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The histogram: `[[microseconds, count], ...]`.
    pub histogram: Durations,
}

impl From<Durations> for Distribution {
    fn from(histogram: Durations) -> Self {
        Self { percentiles: (&histogram).into(), histogram }
    }
}
