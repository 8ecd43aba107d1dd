//! Compares two sides: is ours faster, slower, or is the difference invisible?
//!
//! Sides that ran interleaved, A B A B, are compared pair by pair, because what slows the machine down for a
//! while slows both halves of a pair. Results from different days can only be compared as two independent
//! groups, which need larger differences.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::compare::order::{Interval, MIN, median_interval, ordered_ratios, ratio_interval};
use crate::measure::compare::statistics::{is_close, median, quantile};

/// The result of comparing two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Ours takes less: the whole interval of the ratio is below 1.
    Faster,
    /// Ours takes more: the whole interval is above 1.
    Slower,
    /// The interval contains 1, or there are too few runs for an interval.
    NoDifferenceSeen,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceSeen => "no difference seen",
        })
    }
}

/// How the interval of a comparison was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The order of the pairs' ratios: for interleaved runs, six pairs or more.
    PairedOrder,
    /// Student's t on the logarithms of the pairs' ratios: for two to five pairs. It is right where these are
    /// normally distributed; the order of so few pairs alone shows nothing.
    PairedStudent,
    /// The order of the ratios of all pairs of runs: for runs that were not interleaved, four or more per side.
    IndependentOrder,
    /// In files of earlier versions: the median of redrawn pairs, with an interval that is too narrow.
    PairedBootstrap,
    /// In files of earlier versions: the ratio of redrawn medians.
    IndependentBootstrap,
    /// No interval: too few runs.
    TooFewRuns,
}

/// Two sides compared by a cost such as time. Ratios are ours / theirs: below 1 ours took less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The ratio of each pair, in run order; empty for independent groups.
    pub ratios: Vec<f64>,
    /// The median of the ratios; for independent groups, of the ratios of all pairs (Hodges and Lehmann).
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// How the interval was computed.
    pub method: Method,
    /// The verdict.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares interleaved runs: our nth with their nth.
    ///
    /// ```
    /// use sawmill_profile::{Comparison, Verdict};
    /// let ours = [1.00, 1.10, 1.02, 1.20, 1.05, 1.03];
    /// let theirs = [2.00, 2.30, 2.01, 2.35, 2.11, 2.04];
    /// let comparison = Comparison::paired(&ours, &theirs).unwrap();
    /// assert_eq!(comparison.verdict, Verdict::Faster);
    /// ```
    ///
    /// # Errors
    /// The sides have no runs or not equally many, or a figure is not positive.
    pub fn paired(ours: &[f64], theirs: &[f64]) -> Result<Self> {
        if ours.len() != theirs.len() {
            return Err(Error::failed(
                format!("the sides have {} and {} runs and cannot be paired", ours.len(), theirs.len()),
                "",
                "run them interleaved, or compare them as independent groups",
            ));
        }
        check(ours)?;
        check(theirs)?;
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let (interval, method) = match ratios.len() {
            MIN.. => (median_interval(&ratios), Method::PairedOrder),
            2.. => (student_interval(&ratios), Method::PairedStudent),
            _ => (None, Method::TooFewRuns),
        };
        let ratio = median(&mut ratios.clone());
        Ok(Self { ratios, ratio, interval, method, verdict: verdict(interval) })
    }

    /// Compares runs that were not interleaved, such as today's runs with a saved result.
    ///
    /// # Errors
    /// A side has no runs, or a figure is not positive.
    pub fn independent(ours: &[f64], theirs: &[f64]) -> Result<Self> {
        check(ours)?;
        check(theirs)?;
        let ordered = ordered_ratios(ours, theirs);
        let interval = ratio_interval(&ordered, ours.len(), theirs.len());
        let method = if interval.is_some() { Method::IndependentOrder } else { Method::TooFewRuns };
        let ratio = quantile(&ordered, 0.5);
        Ok(Self { ratios: Vec::new(), ratio, interval, method, verdict: verdict(interval) })
    }

    /// Computes a stored comparison again: one of pairs from the runs of both sides; of one with a saved result,
    /// whose runs are not here, only the verdict.
    ///
    /// # Errors
    /// It has another ratio, interval or verdict.
    pub(crate) fn recompute(&mut self, ours: &[f64], theirs: Option<&[f64]>) -> Result<(), String> {
        let unpaired = [Method::IndependentOrder, Method::IndependentBootstrap, Method::TooFewRuns];
        if self.ratios.is_empty() && unpaired.contains(&self.method) {
            return self.agrees(self.ratio, self.interval);
        }
        let theirs = theirs.ok_or("there is no such side")?;
        let again = Self::paired(ours, theirs).map_err(|error| error.to_string())?;
        if self.method != Method::PairedBootstrap {
            self.agrees(again.ratio, again.interval)?;
        }
        *self = again;
        Ok(())
    }

    /// Whether it has this ratio and interval, and the verdict of the interval.
    fn agrees(&self, ratio: f64, interval: Option<Interval>) -> Result<(), String> {
        let close = |interval: Interval, found: Interval| {
            is_close(interval.low, found.low) && is_close(interval.high, found.high)
        };
        let same = match (self.interval, interval) {
            (Some(stored), Some(found)) => close(stored, found),
            (stored, found) => stored == found,
        };
        match verdict(interval) {
            _ if !is_close(self.ratio, ratio) => {
                Err(format!("ratio is {}, and that of the runs {ratio}", self.ratio))
            }
            _ if !same => Err("interval is not that of the runs".to_owned()),
            verdict if verdict != self.verdict => {
                Err(format!("verdict is {:?}, and the interval shows {verdict}", self.verdict.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Whether ours is slower by more than this fraction (0.05 is 5 %): the whole interval is.
    pub fn slower_by_more_than(&self, share: f64) -> bool {
        self.interval.is_some_and(|interval| interval.low > 1.0 + share)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: takes {:.3} of the other's time", self.verdict, self.ratio)?;
        match self.interval {
            Some(Interval { low, high }) => write!(f, " (95 % interval {low:.3} to {high:.3})"),
            None => f.write_str(" (too few runs for an interval)"),
        }
    }
}

fn check(side: &[f64]) -> Result<()> {
    if side.is_empty() {
        return Err(Error::failed("a side has no runs", "", "run both sides at least once"));
    }
    match side.iter().position(|value| !value.is_finite() || *value <= 0.0) {
        Some(run) => {
            let value = side.get(run).copied().unwrap_or(f64::NAN);
            Err(Error::failed(format!("{value} cannot be compared"), format!("run {}", run + 1), ""))
        }
        None => Ok(()),
    }
}

fn verdict(interval: Option<Interval>) -> Verdict {
    match interval {
        Some(Interval { high, .. }) if high < 1.0 => Verdict::Faster,
        Some(Interval { low, .. }) if low > 1.0 => Verdict::Slower,
        _ => Verdict::NoDifferenceSeen,
    }
}

/// The 95 % interval of the geometric mean of two to five ratios.
fn student_interval(ratios: &[f64]) -> Option<Interval> {
    // The 97.5 % quantiles of Student's t for 1 to 4 degrees of freedom.
    let quantile = match ratios.len() {
        2 => 12.706,
        3 => 4.303,
        4 => 3.182,
        5 => 2.776,
        _ => return None,
    };
    let count = ratios.len() as f64;
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio.ln() - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some(Interval { low: (mean - quantile * error).exp(), high: (mean + quantile * error).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_spell_of_the_machine_does_not_hide_a_paired_difference() {
        let spell = [1.0, 1.0, 3.0, 3.1, 2.9, 1.0, 1.1, 1.0];
        let noise = [1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99];
        let theirs: Vec<f64> = spell.to_vec();
        let ours: Vec<f64> = spell.iter().zip(noise).map(|(s, n)| s * 1.08 * n).collect();
        let paired = Comparison::paired(&ours, &theirs).unwrap();
        assert_eq!(paired.verdict, Verdict::Slower);
        assert!(paired.slower_by_more_than(0.05) && !paired.slower_by_more_than(0.10));
        let independent = Comparison::independent(&ours, &theirs).unwrap();
        assert_eq!(independent.verdict, Verdict::NoDifferenceSeen);
    }

    #[test]
    fn equal_sides_show_no_difference() {
        let side = [1.0, 1.2, 0.9, 1.1, 1.0, 1.05];
        let shuffled = [1.1, 1.0, 1.0, 1.05, 0.9, 1.2];
        assert_eq!(Comparison::paired(&side, &shuffled).unwrap().verdict, Verdict::NoDifferenceSeen);
        assert_eq!(Comparison::paired(&side, &side).unwrap().verdict, Verdict::NoDifferenceSeen);
    }

    #[test]
    fn three_pairs_must_agree_closely_and_one_pair_is_too_few() {
        let three = Comparison::paired(&[1.0, 1.01, 0.99], &[2.0, 2.0, 2.0]).unwrap();
        assert_eq!((three.verdict, three.method), (Verdict::Faster, Method::PairedStudent));
        let apart = Comparison::paired(&[1.0, 1.9, 1.4], &[2.0, 2.0, 2.0]).unwrap();
        assert_eq!(apart.verdict, Verdict::NoDifferenceSeen);
        let one = Comparison::paired(&[1.0], &[9.0]).unwrap();
        assert_eq!((one.verdict, one.method), (Verdict::NoDifferenceSeen, Method::TooFewRuns));
    }

    #[test]
    fn sides_that_cannot_be_paired_are_rejected() {
        assert!(Comparison::paired(&[1.0], &[1.0, 2.0]).is_err());
        assert!(Comparison::paired(&[0.0], &[1.0]).is_err());
        assert!(Comparison::paired(&[], &[]).is_err());
    }
}
