//! Statistics of repeated runs.

use serde::{Deserialize, Serialize};

use crate::measure::compare::order::{Interval, median_interval};

/// Statistics of a series of measurements. For times, the minimum is the undisturbed cost of the work, and
/// the median is what to expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The number of measurements.
    pub count: usize,
    /// The smallest.
    pub min: f64,
    /// A quarter of the measurements are below this (linear interpolation, type 7 of Hyndman and Fan, 1996).
    pub lower_quartile: f64,
    /// Half of the measurements are below this.
    pub median: f64,
    /// A quarter of the measurements are above this.
    pub upper_quartile: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation (divisor n - 1); 0 for one measurement.
    pub standard_deviation: f64,
    /// The exact 95 % interval of the median; `None` for fewer than six measurements.
    pub interval: Option<Interval>,
    /// Indices of the measurements outside Tukey's fences: more than 1.5 times the interquartile range below
    /// or above the quartiles (Tukey, *Exploratory Data Analysis*, 1977).
    pub outliers: Vec<usize>,
}

impl Statistics {
    /// The statistics of measurements, given in the order in which they were made; `None` if there are none
    /// or one is not finite.
    ///
    /// ```
    /// let times = [1.0, 1.1, 0.9, 1.0, 1.05, 4.0];
    /// let statistics = sawmill_profile::Statistics::new(&times).unwrap();
    /// assert_eq!(statistics.outliers, [5]);
    /// assert!((statistics.median - 1.025).abs() < 1e-9);
    /// ```
    pub fn new(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = samples.len();
        let mean = samples.iter().sum::<f64>() / count as f64;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let (lower, upper) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
        let fence = 1.5 * (upper - lower);
        let outside = |sample: f64| sample < lower - fence || sample > upper + fence;
        Some(Self {
            count,
            min: *sorted.first()?,
            lower_quartile: lower,
            median: quantile(&sorted, 0.5),
            upper_quartile: upper,
            max: *sorted.last()?,
            mean,
            standard_deviation: (squares / (count.max(2) - 1) as f64).sqrt(),
            interval: median_interval(samples),
            outliers: (0..).zip(samples).filter(|(_, s)| outside(**s)).map(|(n, _)| n).collect(),
        })
    }

    /// Whether `other`, computed from the same measurements, agrees within rounding. The intervals may differ: earlier
    /// versions computed one that was too narrow.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let figures = |of: &Self| {
            [of.min, of.lower_quartile, of.median, of.upper_quartile, of.max, of.mean, of.standard_deviation]
        };
        let close =
            figures(self).into_iter().zip(figures(other)).all(|(ours, theirs)| is_close(ours, theirs));
        close && self.count == other.count && self.outliers == other.outliers
    }

    /// The standard deviation as a fraction of the mean; 0 if the mean is 0.
    pub fn relative_deviation(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { (self.standard_deviation / self.mean).abs() }
    }
}

/// Whether two figures are the same within rounding.
pub(crate) fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()) + 1e-9
}

/// The median of a group, which is sorted in place.
pub(crate) fn median(group: &mut [f64]) -> f64 {
    group.sort_by(f64::total_cmp);
    quantile(group, 0.5)
}

/// A quantile of a sorted group by linear interpolation; NaN for an empty group.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let value = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (below, above) = (value(place.floor()), value(place.ceil()));
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_match_numpy() {
        // numpy: percentile([2, 4, 4, 4, 5, 5, 7, 9], [25, 50, 75]) = 4, 4.5, 5.5; std(ddof=1) = 2.13809
        let statistics = Statistics::new(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((statistics.lower_quartile, statistics.upper_quartile), (4.0, 5.5));
        assert_eq!((statistics.median, statistics.mean), (4.5, 5.0));
        assert!((statistics.standard_deviation - 2.138_089_935).abs() < 1e-9);
        assert_eq!(statistics.outliers, [7]);
        let interval = statistics.interval.unwrap();
        assert_eq!((interval.low, interval.high), (2.0, 9.0));
    }

    #[test]
    fn one_measurement_has_no_deviation_and_no_interval() {
        let statistics = Statistics::new(&[3.0]).unwrap();
        assert_eq!((statistics.median, statistics.standard_deviation), (3.0, 0.0));
        assert_eq!((statistics.interval, statistics.outliers.len()), (None, 0));
    }

    #[test]
    fn empty_series_and_nan_have_no_statistics() {
        assert_eq!(Statistics::new(&[]), None);
        assert_eq!(Statistics::new(&[1.0, f64::NAN]), None);
    }
}
