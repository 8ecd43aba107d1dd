//! The rate over time, as stretches in which it changes evenly.

use std::fmt;
use std::time::Duration;

use sawmill_profile::{format_duration, parse_count, parse_duration};

/// A sine is drawn by this many straight stretches each period: within a thousandth of the rate.
const STRETCHES: u32 = 64;

/// How the rate changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Always the same.
    Constant(f64),
    /// From one rate to another within a time; then it stays.
    Ramp {
        /// The rate at the start.
        from: f64,
        /// The rate at the end.
        to: f64,
        /// How long the change takes.
        over: Duration,
    },
    /// One rate after the other, each for the same time; the last one stays.
    Steps {
        /// The rates.
        rates: Vec<f64>,
        /// How long each stays.
        every: Duration,
    },
    /// Between two rates and back within each period, beginning in their middle.
    Sine {
        /// The lowest rate.
        low: f64,
        /// The highest rate.
        high: f64,
        /// The period.
        every: Duration,
    },
}

/// A stretch of time in which the rate changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Seconds.
    pub length: f64,
    pub from: f64,
    pub to: f64,
}

impl Stretch {
    /// The operations of the first `time` seconds.
    fn operations(&self, time: f64) -> f64 {
        self.from * time + (self.to - self.from) * time * time / (2.0 * self.length)
    }
}

/// Parses a rate: `50k`, `2.5/s`, `1000`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = text.trim();
    let number = number.strip_suffix("/s").unwrap_or(number).trim();
    let value = number.parse::<f64>().ok().or_else(|| parse_count(number).ok().map(|count| count as f64));
    match value {
        Some(value) if value.is_finite() && value > 0.0 && value <= 1e8 => Ok(value),
        _ => Err(format!("{text:?} is not a rate: give operations a second, such as 200, 0.5 or 50k")),
    }
}

impl std::str::FromStr for Shape {
    type Err = String;

    /// `50k`, `constant 50k`, `soak 500`, `ramp 100..5k over 60s`, `steps 100,200,400 every 30s`,
    /// `sine 100..1000 every 60s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let range = |text: &str| {
            let (from, to) =
                text.split_once("..").ok_or_else(|| format!("{text:?} is not a range such as 100..5k"))?;
            Ok::<_, String>((rate(from)?, rate(to)?))
        };
        let time = |text: &str| match parse_duration(text) {
            Ok(time) if !time.is_zero() => Ok(time),
            _ => Err(format!("{text:?} is not a time such as 30s or 5m")),
        };
        match words.as_slice() {
            [number] | ["constant" | "soak", number] => Ok(Self::Constant(rate(number)?)),
            ["ramp", rates, "over", over] => {
                let (from, to) = range(rates)?;
                Ok(Self::Ramp { from, to, over: time(over)? })
            }
            ["steps", rates, "every", every] => {
                let rates = rates.split(',').map(rate).collect::<Result<Vec<_>, _>>()?;
                Ok(Self::Steps { rates, every: time(every)? })
            }
            ["sine", rates, "every", every] => {
                let (low, high) = range(rates)?;
                Ok(Self::Sine { low: low.min(high), high: low.max(high), every: time(every)? })
            }
            _ => Err(format!(
                "{text:?} is not a shape: give 50k, `constant 50k`, `soak 500`, `ramp 100..5k over 60s`, \
                 `steps 100,200,400 every 30s` or `sine 100..1000 every 60s`"
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => write!(f, "{rate}/s"),
            Self::Ramp { from, to, over } => write!(f, "ramp {from}..{to} over {}", format_duration(*over)),
            Self::Steps { rates, every } => {
                let rates: Vec<String> = rates.iter().map(f64::to_string).collect();
                write!(f, "steps {} every {}", rates.join(","), format_duration(*every))
            }
            Self::Sine { low, high, every } => {
                write!(f, "sine {low}..{high} every {}", format_duration(*every))
            }
        }
    }
}

impl Shape {
    /// The length of a run of this shape if the plan gives none.
    pub fn natural_length(&self) -> Option<Duration> {
        match self {
            Self::Ramp { over, .. } => Some(*over),
            Self::Steps { rates, every } => Some(*every * rates.len() as u32),
            Self::Constant(_) | Self::Sine { .. } => None,
        }
    }

    /// The stretches of a run: the warm-up at the first rate, then the shape for `length` seconds.
    pub(crate) fn stretches(&self, warm_up: f64, length: f64) -> Vec<Stretch> {
        let even = |length, rate| Stretch { length, from: rate, to: rate };
        let mut all = Vec::new();
        let (first, last) = match self {
            Self::Constant(rate) => (*rate, *rate),
            Self::Ramp { from, to, over } => {
                all.push(Stretch { length: over.as_secs_f64(), from: *from, to: *to });
                (*from, *to)
            }
            Self::Steps { rates, every } => {
                all.extend(rates.iter().map(|rate| even(every.as_secs_f64(), *rate)));
                (rates.first().copied().unwrap_or(1.0), rates.last().copied().unwrap_or(1.0))
            }
            Self::Sine { low, high, every } => {
                let (middle, half) = (f64::midpoint(*low, *high), (high - low) / 2.0);
                let step = every.as_secs_f64() / f64::from(STRETCHES);
                let at = |i: u32| {
                    middle + half * (f64::from(i) / f64::from(STRETCHES) * std::f64::consts::TAU).sin()
                };
                let periods = (length / every.as_secs_f64()).ceil().min(1e6) as u32;
                for _ in 0..periods {
                    all.extend((0..STRETCHES).map(|i| Stretch { length: step, from: at(i), to: at(i + 1) }));
                }
                (middle, middle)
            }
        };
        let mut left = length;
        let mut cut = Vec::with_capacity(all.len() + 2);
        if warm_up > 0.0 {
            cut.push(even(warm_up, first));
        }
        for stretch in all {
            let part = stretch.length.min(left);
            if part > 0.0 {
                let to = stretch.from + (stretch.to - stretch.from) * part / stretch.length;
                cut.push(Stretch { length: part, to, ..stretch });
                left -= part;
            }
        }
        if left > 0.0 {
            cut.push(even(left, last));
        }
        cut
    }
}

/// Walks through stretches: which moment has a number of operations before it.
#[derive(Clone, Debug)]
pub(crate) struct RateClock {
    stretches: Vec<Stretch>,
    /// The stretch that was reached, when it begins, and how many operations lie before it.
    at: usize,
    began: f64,
    before: f64,
}

impl RateClock {
    pub(crate) fn new(stretches: Vec<Stretch>) -> Self {
        Self { stretches, at: 0, began: 0.0, before: 0.0 }
    }

    /// The second by which `operations` have been scheduled; `None` if that is after the end. Operations may
    /// not decrease from call to call.
    pub(crate) fn moment(&mut self, operations: f64) -> Option<f64> {
        loop {
            let stretch = self.stretches.get(self.at)?;
            let here = stretch.operations(stretch.length);
            let wanted = operations - self.before;
            if wanted < here {
                let slope = (stretch.to - stretch.from) / stretch.length;
                let time = if slope.abs() < 1e-12 {
                    wanted / stretch.from
                } else {
                    // The root of slope/2 t² + from t = wanted, in the form that loses no digits.
                    let root = (stretch.from * stretch.from + 2.0 * slope * wanted).max(0.0).sqrt();
                    2.0 * wanted / (stretch.from + root)
                };
                return Some(self.began + time.min(stretch.length));
            }
            self.before += here;
            self.began += stretch.length;
            self.at += 1;
        }
    }

    /// The operations between two moments.
    pub(crate) fn between(&self, from: f64, to: f64) -> f64 {
        let (mut began, mut sum) = (0.0, 0.0);
        for stretch in &self.stretches {
            let low = (from - began).clamp(0.0, stretch.length);
            let high = (to - began).clamp(0.0, stretch.length);
            sum += stretch.operations(high) - stretch.operations(low);
            began += stretch.length;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_shown() {
        for text in ["200/s", "ramp 100..5000 over 60 s", "steps 1,2,3 every 30 s", "sine 10..90 every 60 s"]
        {
            let plain = text.replace(" s", "s");
            let shape: Shape = plain.parse().unwrap();
            let again: Shape = shape.to_string().replace(" s", "s").parse().unwrap();
            assert_eq!(shape, again, "{text}");
        }
        for wrong in [
            "",
            "fast",
            "-1",
            "0",
            "ramp 1..2",
            "ramp 1-2 over 3s",
            "steps 1,x every 3s",
            "sine 1..2 every 0s",
            "nan",
        ] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn as_many_operations_lie_before_a_moment_as_the_rate_adds_up_to() {
        for text in [
            "100",
            "ramp 100..300 over 10s",
            "ramp 300..100 over 10s",
            "sine 50..150 every 5s",
            "steps 10,40 every 5s",
        ] {
            let shape: Shape = text.parse().unwrap();
            let mut clock = RateClock::new(shape.stretches(2.0, 10.0));
            let whole = clock.between(0.0, 12.0);
            for i in 0..=20 {
                let operations = whole * f64::from(i) / 20.0;
                let Some(moment) = clock.moment(operations - 1e-9) else {
                    panic!("{text}: none at {operations}")
                };
                assert!(
                    (clock.between(0.0, moment) - operations).abs() < 1e-3,
                    "{text} {operations} {moment}"
                );
            }
            assert_eq!(clock.moment(whole + 0.5), None);
        }
        let ramp: Shape = "ramp 100..300 over 10s".parse().unwrap();
        assert!((RateClock::new(ramp.stretches(0.0, 10.0)).between(0.0, 10.0) - 2000.0).abs() < 1e-9);
    }
}
