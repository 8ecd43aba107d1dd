//! Serialises durations in JSON as a number of seconds, so that any tool can plot them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest duration accepted; larger numbers become this.
const MAX: f64 = 1e15;

pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    value.as_secs_f64().serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    f64::deserialize(from).map(from_number)
}

/// Converts seconds to a duration; negative numbers and NaN become zero.
pub(crate) fn from_number(seconds: f64) -> Duration {
    // Rounded to nanoseconds, so that a written fraction is read back as the same duration.
    let nanos = (seconds.clamp(0.0, MAX) * 1e9).round();
    let nanos = if nanos.is_finite() { nanos as u128 } else { 0 };
    Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32)
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
        assert_eq!(from_number(f64::NAN), Duration::ZERO);
        assert_eq!(from_number(-1.0), Duration::ZERO);
    }
}
