//! Parses dates, timestamps and times in conditions: ISO 8601 with a `T` or a space.

use arrow_schema::TimeUnit;

/// A point in time.
pub(crate) struct Moment {
    /// Local time in nanoseconds since 1970-01-01.
    pub nanoseconds: i128,
    /// Its offset from UTC in nanoseconds, if written.
    pub offset: Option<i128>,
}

const SECOND: i128 = 1_000_000_000;

/// Returns the nanoseconds of a unit.
pub(super) fn unit(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Parses `2024-01-31`, `2024-01-31T12:30`, `2024-01-31 12:30:00.25+02:00`, `...Z`.
pub(crate) fn timestamp(text: &str) -> Option<Moment> {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, ""),
    };
    let midnight = i128::from(days(date)?) * 86_400 * SECOND;
    if rest.is_empty() {
        return (date.len() == text.len()).then_some(Moment { nanoseconds: midnight, offset: None });
    }
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (&rest[..at], Some(offset(&rest[at..])?)),
        None => (rest, None),
    };
    Some(Moment { nanoseconds: midnight + time(clock.trim_end())?, offset })
}

/// Parses `12:30`, `12:30:00`, `12:30:00.25` into nanoseconds since midnight.
pub(crate) fn time(text: &str) -> Option<i128> {
    let mut parts = text.splitn(3, ':');
    let hours = number(parts.next()?, 2, 24)?;
    let minutes = number(parts.next()?, 2, 59)?;
    let (seconds, fraction) = match parts.next() {
        None => (0, 0),
        Some(text) => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (number(whole, 2, 59)?, format!("{fraction:0<9}").parse().ok()?)
        }
    };
    let time = i128::from(hours * 3600 + minutes * 60 + seconds) * SECOND + fraction;
    (time <= 86_400 * SECOND).then_some(time)
}

/// Parses `Z`, `+02`, `+0200` or `+02:00` into nanoseconds.
fn offset(text: &str) -> Option<i128> {
    let sign = match text.as_bytes() {
        [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let digits = text[1..].replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits, 2, 18)?, 0),
        4 => (number(digits.get(..2)?, 2, 18)?, number(digits.get(2..)?, 2, 59)?),
        _ => return None,
    };
    Some(sign * i128::from(hours * 3600 + minutes * 60) * SECOND)
}

/// Parses a number of exactly `digits` digits, at most `greatest`.
fn number(text: &str, digits: usize, greatest: i64) -> Option<i64> {
    let all_digits = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| all_digits && *number <= greatest)
}

/// Parses a date of the Gregorian calendar; returns days since 1970-01-01.
pub(crate) fn days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let year = number(year, year.len().clamp(4, 6), 999_999)?;
    let month = number(month, 2, 12)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let day = number(day, 2, longest).filter(|day| *day > 0)?;
    // Years that start in March end with the leap day, so the lengths of months follow a formula.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 0000-03-01 is 719468 days before 1970-01-01.
    Some(
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_count_from_1970() {
        let seconds = |text: &str| timestamp(text).map(|moment| (moment.nanoseconds / SECOND, moment.offset));
        assert_eq!(seconds("1970-01-01"), Some((0, None)));
        assert_eq!(seconds("2000-02-29"), Some((951_782_400, None)));
        assert_eq!(seconds("2024-03-01 00:00:01"), Some((1_709_251_201, None)));
        assert_eq!(seconds("1969-12-31T23:59:59Z"), Some((-1, Some(0))));
        assert_eq!(seconds("1970-01-01T00:00-01:30"), Some((0, Some(-5400 * SECOND))));
        assert_eq!(seconds("0000-03-01"), Some((-719_468 * 86_400, None)));
        assert_eq!(timestamp("1970-01-01T00:00:00.000000001").map(|m| m.nanoseconds), Some(1));
        for wrong in
            ["2023-02-29", "2024-13-01", "2024-1-1", "2024-01-01T", "2024-01-01T25:00", "24-01-01", "x"]
        {
            assert!(timestamp(wrong).is_none(), "{wrong}");
        }
    }
}
