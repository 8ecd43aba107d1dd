//! Axes: from values to places in a picture, with round numbers for labels.

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal factors take equal room; values have to be positive.
    Logarithmic,
}

/// An axis from values to positions in the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The positions of the lowest and the highest value.
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Axis {
    /// A linear axis between two values.
    pub(crate) fn between(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + low.abs().max(1e-9) };
        Self { scale: Scale::Linear, low, high, from, to }
    }

    /// A linear axis over values, with a margin; it starts at zero if the values are close to it. Ignores
    /// values that are not finite.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let Some((low, high)) = range(values) else { return Self::between(0.0, 1.0, from, to) };
        let low = if low >= 0.0 && low < 0.6 * high { 0.0 } else { low };
        let room = match high - low {
            room if room > 0.0 => 0.06 * room,
            // Nothing but zeros: an axis to 1 has plain labels.
            _ if high == 0.0 => 1.0,
            _ => 0.1 * high.abs().max(1e-9),
        };
        let below = if low == 0.0 { 0.0 } else { room };
        Self::between(low - below, high + room, from, to)
    }

    /// A logarithmic axis over the positive ones of some values.
    pub(crate) fn logarithmic(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) = range(positive).unwrap_or((1.0, 10.0));
        let high = if high > low { high } else { low * 2.0 };
        Self { scale: Scale::Logarithmic, low, high, from, to }
    }

    /// Whether the axis starts at zero, as the length of a bar or the height of a point suggests.
    pub(crate) fn starts_at_zero(&self) -> bool {
        self.scale == Scale::Linear && self.low == 0.0
    }

    /// The position of a value; values outside are at the ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE),
            Scale::Logarithmic => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln().max(1e-12)
            }
        };
        self.from + place.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values for labels: 1, 2 or 5 times a power of ten.
    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.linear_ticks(about.max(1)),
            Scale::Logarithmic => self.logarithmic_ticks(about.max(1)),
        }
    }

    fn linear_ticks(&self, about: usize) -> Vec<f64> {
        let span = self.high - self.low;
        if span <= 0.0 || !span.is_finite() {
            return vec![self.low];
        }
        let rough = span / about as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        (0..=2 * about)
            .map(|n| (first + n as f64) * step)
            .take_while(|value| *value <= self.high + step * 1e-9)
            .collect()
    }

    fn logarithmic_ticks(&self, about: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let with = |factors: &[f64]| -> Vec<f64> {
            let powers = (first..=last).map(|power| 10f64.powi(power));
            let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
            all.filter(|value| *value >= self.low * (1.0 - 1e-9) && *value <= self.high * (1.0 + 1e-9))
                .collect()
        };
        let decades = with(&[1.0]);
        if decades.len() >= about.min(3) {
            let every = decades.len().div_ceil(2 * about).max(1);
            return decades.into_iter().step_by(every).collect();
        }
        match with(&[1.0, 2.0, 5.0]) {
            ticks if ticks.len() >= 2 => ticks,
            _ => vec![self.low, self.high],
        }
    }
}

/// The least and the greatest of the finite ones of some values.
fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let (low, high) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_over_zeros_alone_has_plain_labels() {
        let axis = Axis::over([0.0, 0.0], 0.0, 100.0);
        assert!(axis.ticks(5).iter().all(|tick| *tick == 0.0 || *tick >= 0.1), "{:?}", axis.ticks(5));
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis = Axis::over([0.0, 93.0], 0.0, 100.0);
        assert_eq!(axis.ticks(4), [0.0, 50.0]);
        assert_eq!(axis.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let narrow = Axis::over([1.000, 1.001], 0.0, 100.0);
        assert!(narrow.low > 0.99 && narrow.ticks(4).len() >= 2 && !narrow.starts_at_zero());
    }

    #[test]
    fn a_logarithmic_axis_gives_equal_factors_equal_room() {
        let axis = Axis::logarithmic([0.001, 0.0, 10.0], 0.0, 400.0);
        let places = [0.001, 0.01, 0.1, 1.0, 10.0].map(|value| axis.at(value).round());
        assert_eq!(places, [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(axis.ticks(4).len(), 5);
        assert_eq!(Axis::logarithmic([0.3, 0.9], 0.0, 1.0).ticks(4), [0.3, 0.9]);
    }

    #[test]
    fn one_value_or_none_still_has_an_axis() {
        for axis in
            [Axis::over([5.0], 0.0, 1.0), Axis::over([], 0.0, 1.0), Axis::over([f64::NAN, 0.0], 0.0, 1.0)]
        {
            assert!(axis.at(5.0).is_finite());
        }
        for values in [vec![], vec![3.0], vec![0.0]] {
            let axis = Axis::logarithmic(values, 0.0, 1.0);
            assert!(axis.at(3.0).is_finite() && axis.at(0.0).is_finite() && !axis.ticks(4).is_empty());
        }
    }
}
