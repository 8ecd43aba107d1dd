//! Formats durations for people, `843 ns`, `4.56 ms`, `12.3 s`, `2 min 5 s`, and parses them: `250ms`, `5s`,
//! `1.5h`.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::text::number_text::{number_and_unit, scaled};

const ADVICE: &str = "write a number and a unit: 250ms, 5s, 2min, 1.5h, 1d (also ns, us)";

/// Formats a duration with three significant digits; from 100 s in minutes and seconds, hours and minutes, or
/// days and hours.
///
/// ```
/// use std::time::Duration;
/// use sawmill_profile::format_duration;
/// assert_eq!(format_duration(Duration::from_micros(4_560)), "4.56 ms");
/// assert_eq!(format_duration(Duration::from_secs(125)), "2 min 5 s");
/// ```
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 99.95 {
        let nanos = seconds * 1e9;
        if nanos < 999.5 {
            return format!("{nanos:.0} ns");
        }
        let (number, unit) = scaled(nanos, &[("µs", 1e3), ("ms", 1e6), ("s", 1e9)]);
        return format!("{number} {unit}");
    }
    let parts = |value: f64, large: &str, small: &str, ratio: u64| {
        let whole = value.round() as u64;
        match (whole / ratio, whole % ratio) {
            (count, 0) => format!("{count} {large}"),
            (count, rest) => format!("{count} {large} {rest} {small}"),
        }
    };
    if seconds < 3599.5 {
        parts(seconds, "min", "s", 60)
    } else if seconds < 86_370.0 {
        parts(seconds / 60.0, "h", "min", 60)
    } else {
        parts(seconds / 3600.0, "d", "h", 24)
    }
}

/// Parses a duration: a number with one of the units ns, us (or µs), ms, s, m (or min), h and d.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(sawmill_profile::parse_duration("250ms"), Ok(Duration::from_millis(250)));
/// assert!(sawmill_profile::parse_duration("5").is_err());
/// ```
///
/// # Errors
/// The text has another form, is negative, or has no unit or an unknown one.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let (value, unit) = number_and_unit(text, "duration", ADVICE)?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" if value == 0.0 => 0.0,
        "" => return Err(Error::failed(format!("{text:?} has no unit"), "", ADVICE)),
        _ => return Err(Error::failed(format!("{unit:?} is not a unit of time"), text, ADVICE)),
    };
    Duration::try_from_secs_f64(value * seconds)
        .map_err(|_| Error::failed(format!("{text:?} is too long"), "", ADVICE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_the_unit_that_fits() {
        let shown = |nanos| format_duration(Duration::from_nanos(nanos));
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(843), "843 ns");
        assert_eq!(shown(1_000), "1.00 µs");
        assert_eq!(shown(999_700), "1.00 ms");
        assert_eq!(shown(12_345_678), "12.3 ms");
        assert_eq!(shown(1_230_000_000), "1.23 s");
        assert_eq!(shown(99_940_000_000), "99.9 s");
        assert_eq!(shown(99_960_000_000), "1 min 40 s");
        assert_eq!(shown(3_599_700_000_000), "1 h");
        assert_eq!(shown(3_780_000_000_000), "1 h 3 min");
        assert_eq!(shown(26 * 3_600_000_000_000), "1 d 2 h");
    }

    #[test]
    fn durations_are_read_with_every_unit() {
        for (text, nanos) in [
            ("7ns", 7),
            ("1.5us", 1_500),
            ("2 µs", 2_000),
            ("250ms", 250_000_000),
            ("5s", 5_000_000_000),
            ("2min", 120_000_000_000),
            ("0.5h", 1_800_000_000_000),
            ("1d", 86_400_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_duration_is_rejected_with_an_example() {
        for text in ["", "s", "5", "-1s", "1 parsec", "1e40d", "nan s"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.advice().contains("250ms"), "{text}: {error}");
        }
    }
}
