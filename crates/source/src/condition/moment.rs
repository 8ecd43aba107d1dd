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
    if let Some(nanoseconds) = plain(text.as_bytes()) {
        return Some(Moment { nanoseconds, offset: None });
    }
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

/// Parses `2024-01-31 12:30:00` and `2024-01-31T12:30:00.25`, as most text has them, without looking for the
/// parts: `None` for everything else, valid or not.
fn plain(text: &[u8]) -> Option<i128> {
    let (head, fraction) = text.split_first_chunk::<19>()?;
    let pair = |at: usize| {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
    };
    let separated = head[4] == b'-' && head[7] == b'-' && head[13] == b':' && head[16] == b':';
    if !separated || !matches!(head[10], b' ' | b'T') {
        return None;
    }
    let (year, month, day) = (pair(0)? * 100 + pair(2)?, pair(5)?, pair(8)?);
    let (hours, minutes, seconds) = (pair(11)?, pair(14)?, pair(17)?);
    // Every month has 28 days; those with more are left to the other parser, as is the end of a day.
    if !(1..=12).contains(&month) || day == 0 || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let days = if day <= 28 {
        days_from_civil(year, month, day)
    } else {
        days(std::str::from_utf8(&head[..10]).ok()?)?
    };
    let mut nanoseconds = 0;
    if let Some((point, digits)) = fraction.split_first() {
        if *point != b'.' || digits.is_empty() || digits.len() > 9 {
            return None;
        }
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            nanoseconds = nanoseconds * 10 + i64::from(digit);
        }
        nanoseconds *= 10_i64.pow(9 - digits.len() as u32);
    }
    let seconds = days * 86_400 + hours * 3600 + minutes * 60 + seconds;
    Some(i128::from(seconds) * SECOND + i128::from(nanoseconds))
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
    Some(days_from_civil(year, month, day))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years that start in March end with the leap day, so the lengths of months follow a formula.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 0000-03-01 is 719468 days before 1970-01-01.
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parsers_of_timestamps_agree() {
        for date in ["2024-02-29", "1900-02-28", "1999-12-31", "0001-03-01", "2023-06-30"] {
            for clock in ["00:00:00", "23:59:59.5", "12:34:56.123456789"] {
                let (quick, slow) =
                    (timestamp(&format!("{date} {clock}")), timestamp(&format!("{date} {clock}+00")));
                assert_eq!(
                    plain(format!("{date}T{clock}").as_bytes()),
                    quick.map(|moment| moment.nanoseconds)
                );
                assert_eq!(
                    plain(format!("{date} {clock}").as_bytes()),
                    slow.map(|moment| moment.nanoseconds)
                );
            }
        }
        for wrong in
            ["2023-02-29 00:00:00", "2024-04-31 00:00:00", "2024-00-01 00:00:00", "2024-01-01 00:00:60"]
        {
            assert!(timestamp(wrong).is_none(), "{wrong}");
        }
    }

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
