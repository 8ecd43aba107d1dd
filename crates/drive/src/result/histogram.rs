//! Histograms of durations, in memory and in JSON.
//!
//! All have the same bounds and precision (1 µs to 1 h, three significant digits). So merging is adding counts: the
//! sum of two histograms is the histogram of all values.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest duration, in microseconds; longer ones count as this.
const MAX_LENGTH: u64 = 3_600_000_000;
/// Significant decimal digits of a value.
const DIGITS: u8 = 3;

/// A histogram of durations in microseconds. In JSON it is the list of its buckets that are not empty:
/// `[[microseconds, count], ...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations(Histogram<u64>);

impl Default for Durations {
    fn default() -> Self {
        // The bounds are constants that the crate accepts; a test makes one.
        #[expect(clippy::expect_used, reason = "constant bounds")]
        // Both bounds and the digits are constants: the highest is at least twice the lowest, and there are at most 5 digits.
        Self(Histogram::new_with_bounds(1, MAX_LENGTH, DIGITS).expect("constant bounds that are valid"))
    }
}

impl Durations {
    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        self.record_micros(duration.as_micros().try_into().unwrap_or(u64::MAX), 1);
    }

    /// Counts a duration in microseconds several times.
    pub fn record_micros(&mut self, micros: u64, count: u64) {
        // A value that never occurred is not the least or the greatest.
        if count > 0 {
            self.0.saturating_record_n(micros.clamp(1, MAX_LENGTH), count);
        }
    }

    /// Adds the counts of another histogram: exact.
    pub fn add(&mut self, other: &Self) {
        if other.0.is_empty() {
            return;
        }
        // Both have the same bounds, so that this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// Takes away the counts of another histogram, whose values it has.
    pub(crate) fn subtract(&mut self, other: &Self) {
        if !other.0.is_empty() {
            // It has the same bounds and at least these counts, so that this cannot fail.
            let _ = self.0.subtract(&other.0);
        }
    }

    /// Forgets all values, and keeps the memory.
    pub fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.reset();
        }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value in microseconds that this share (0 to 1) of all values does not exceed; 0 without values.
    pub fn quantile(&self, share: f64) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(share) }
    }

    /// The mean in microseconds.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The greatest value in microseconds, within the precision; 0 without values.
    pub fn max(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.max() }
    }

    /// The greatest value in microseconds that is counted in the same bucket.
    pub(crate) fn end_of_bucket(&self, micros: f64) -> f64 {
        if micros <= MAX_LENGTH as f64 { self.0.highest_equivalent(micros as u64) as f64 } else { micros }
    }

    /// How many values exceed this many microseconds, within the precision.
    pub fn above(&self, micros: u64) -> u64 {
        self.buckets().filter(|(value, _)| *value > micros).map(|(_, count)| count).sum()
    }

    /// The histogram as the crate `hdrhistogram` has it, in microseconds, for that crate's formats.
    pub fn hdr(&self) -> &Histogram<u64> {
        &self.0
    }

    /// The buckets that are not empty: greatest value in microseconds, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// Counts in coarse buckets, a quarter of an octave each: greatest value in microseconds, count. For heat
    /// maps.
    pub fn coarse(&self) -> Vec<(u64, u64)> {
        let mut coarse: Vec<(u64, u64)> = Vec::new();
        for (value, count) in self.buckets() {
            let quarter = ((value as f64).log2() * 4.0).ceil();
            let bound = (quarter / 4.0).exp2().ceil() as u64;
            match coarse.last_mut() {
                Some((last, sum)) if *last == bound => *sum += count,
                _ => coarse.push((bound, count)),
            }
        }
        coarse
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Durations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::default();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histogram.record_micros(value, count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_merge_exactly_and_come_back_from_json() {
        let (mut left, mut right, mut both) =
            (Durations::default(), Durations::default(), Durations::default());
        let mut value = 7_u64;
        for i in 0..20_000 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let micros = (value >> 33) % 5_000_000;
            both.record_micros(micros, 1);
            if i % 3 == 0 { left.record_micros(micros, 1) } else { right.record_micros(micros, 1) }
        }
        let text = serde_json::to_string(&left).unwrap();
        let mut merged: Durations = serde_json::from_str(&text).unwrap();
        assert_eq!(merged.buckets().collect::<Vec<_>>(), left.buckets().collect::<Vec<_>>());
        merged.add(&right);
        assert_eq!(merged.buckets().collect::<Vec<_>>(), both.buckets().collect::<Vec<_>>());
        assert_eq!(merged.quantile(0.99), both.quantile(0.99));
        assert_eq!(merged.coarse().iter().map(|(_, count)| count).sum::<u64>(), 20_000);
        merged.subtract(&right);
        assert_eq!(
            (&merged.buckets().collect::<Vec<_>>(), merged.max()),
            (&left.buckets().collect(), left.max())
        );
    }

    #[test]
    fn buckets_of_another_program_are_the_same_when_written_and_read_again() {
        // Without values, out of order, twice, within a bucket, beyond the bounds.
        let text = "[[700,0],[90000,2],[0,1],[2048,3],[2049,1],[18446744073709551615,1],[5000000000000,0]]";
        let read: Durations = serde_json::from_str(text).unwrap();
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Durations>(&written).unwrap(), read);
        assert_eq!((read.count(), read.quantile(0.1)), (8, 1));
        assert!(written.starts_with("[[1,1],[2049,4],"), "{written}");
    }

    #[test]
    fn values_beyond_the_bounds_count_as_the_bounds() {
        let mut histogram = Durations::default();
        histogram.record(Duration::ZERO);
        histogram.record(Duration::from_secs(100_000));
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.quantile(0.1), 1);
        assert!(histogram.max() >= MAX_LENGTH);
    }
}
