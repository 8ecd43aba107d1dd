//! Writes dates, times and intervals as jsonb strings, in the form of `to_jsonb` (`JsonEncodeDateTime` in
//! src/backend/utils/adt/json.c).

use std::io::Write;

use arrow_schema::TimeUnit;

use crate::values::calendar::{civil, per_second};
use crate::values::interval::Interval;

/// Writes to a `Vec`, which cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let written = write!($out, $($format)*);
        debug_assert!(written.is_ok(), "writing to a Vec cannot fail");
    }};
}
pub(super) use put;

/// Appends a date. Returns whether its year is before 1, in which case the caller appends `BC` after the
/// time.
fn write_day(days: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil(days);
    let (shown, before) = if year > 0 { (year, false) } else { (1 - year, true) };
    put!(out, "{shown:04}-{month:02}-{day:02}");
    before
}

/// Appends a date, given in days since 1970.
pub(super) fn write_date(days: i64, out: &mut Vec<u8>) {
    out.push(b'"');
    if write_day(days, out) {
        out.extend_from_slice(b" BC");
    }
    out.push(b'"');
}

/// Appends a time of day in ISO 8601, given in units since midnight, without trailing zeros of the fraction.
pub fn write_clock(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let scale = per_second(unit);
    let (seconds, fraction) = (value.div_euclid(scale), value.rem_euclid(scale));
    put!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    write_fraction(fraction, unit, out);
}

fn write_fraction(fraction: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    if fraction == 0 {
        return;
    }
    let nanos = fraction * (1_000_000_000 / per_second(unit));
    put!(out, ".{nanos:09}");
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Appends a time of day.
pub(super) fn write_time(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    out.push(b'"');
    write_clock(value, unit, out);
    out.push(b'"');
}

/// Appends a timestamp, in UTC if it has a time zone. Nanoseconds remain, since the result is text.
pub(super) fn write_timestamp(value: i64, unit: TimeUnit, zone: bool, out: &mut Vec<u8>) {
    let day = 86_400 * per_second(unit);
    out.push(b'"');
    let before = write_day(value.div_euclid(day), out);
    out.push(b'T');
    write_clock(value.rem_euclid(day), unit, out);
    if zone {
        out.extend_from_slice(b"+00:00");
    }
    if before {
        out.extend_from_slice(b" BC");
    }
    out.push(b'"');
}

/// Appends an interval as `interval_out` prints it with `intervalstyle = iso_8601`.
pub(super) fn write_interval(interval: Interval, out: &mut Vec<u8>) {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let (seconds, fraction) = (interval.micros / 1_000_000, interval.micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(b"\"P");
    for (number, unit) in [(years, 'Y'), (months, 'M'), (interval.days, 'D')] {
        if number != 0 {
            put!(out, "{number}{unit}");
        }
    }
    let clock = interval.micros != 0;
    if clock {
        out.push(b'T');
    }
    for (number, unit) in [(hours, 'H'), (minutes, 'M')] {
        if number != 0 {
            put!(out, "{number}{unit}");
        }
    }
    if seconds != 0 || fraction != 0 {
        if interval.micros < 0 {
            out.push(b'-');
        }
        put!(out, "{}", seconds.unsigned_abs());
        write_fraction(fraction.abs(), TimeUnit::Microsecond, out);
        out.push(b'S');
    }
    if interval.months == 0 && interval.days == 0 && !clock {
        out.extend_from_slice(b"T0S");
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_reach_from_before_christ_to_years_of_five_digits() {
        assert_eq!(text(|out| write_date(0, out)), "\"1970-01-01\"");
        assert_eq!(text(|out| write_date(19_782, out)), "\"2024-02-29\"");
        assert_eq!(text(|out| write_date(-719_529, out)), "\"0002-12-31 BC\"");
        assert_eq!(text(|out| write_date(2_932_897, out)), "\"10000-01-01\"");
    }

    #[test]
    fn fractions_lose_their_trailing_zeros() {
        let stamp = |value, unit, zone| text(|out| write_timestamp(value, unit, zone, out));
        assert_eq!(stamp(-1, TimeUnit::Millisecond, false), "\"1969-12-31T23:59:59.999\"");
        assert_eq!(stamp(1_500_000, TimeUnit::Microsecond, true), "\"1970-01-01T00:00:01.5+00:00\"");
        assert_eq!(stamp(1, TimeUnit::Nanosecond, false), "\"1970-01-01T00:00:00.000000001\"");
        assert_eq!(text(|out| write_time(86_400, TimeUnit::Second, out)), "\"24:00:00\"");
    }

    #[test]
    fn intervals_are_iso_8601() {
        let interval =
            |months, days, micros| text(|out| write_interval(Interval { micros, days, months }, out));
        assert_eq!(interval(14, 3, 14_706_700_000), "\"P1Y2M3DT4H5M6.7S\"");
        assert_eq!(interval(0, 0, 0), "\"PT0S\"");
        assert_eq!(interval(0, -1, -500_000), "\"P-1DT-0.5S\"");
    }
}
