//! Serialises durations in JSON as a number of seconds, so that any tool can plot them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest duration accepted, 31 years; larger numbers become this.
const MAX: f64 = 1e9;
/// Numbers of longer durations have no room for nanoseconds, only for milliseconds.
const MAX_EXACT: f64 = 1e6;

pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    value.as_secs_f64().serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    f64::deserialize(from).map(from_number)
}

/// Converts seconds to a duration; negative numbers and NaN become zero.
pub(crate) fn from_number(seconds: f64) -> Duration {
    let seconds = seconds.clamp(0.0, MAX);
    // Rounded, so that a written fraction is read back as the same duration.
    let parts: u64 = if seconds < MAX_EXACT { 1_000_000_000 } else { 1000 };
    let whole = (seconds * parts as f64).round() as u64;
    Duration::new(whole / parts, (whole % parts * (1_000_000_000 / parts)) as u32)
}

/// The same for an optional duration.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, from_number};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|value| value.as_secs_f64()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.map(from_number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_survives_a_round_trip_through_a_number() {
        for nanos in [0, 1, 999, 1_000_000_007, 86_400_000_000_123] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(from_number(duration.as_secs_f64()), duration);
        }
        for number in [999_999.999_999_9, 1e6, 12_345_678.123_45, 987_654_321.012_3, 1e300] {
            let read = from_number(number);
            assert_eq!(from_number(read.as_secs_f64()), read, "{number}");
        }
        assert_eq!(from_number(f64::NAN), Duration::ZERO);
        assert_eq!(from_number(-1.0), Duration::ZERO);
    }
}
