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

/// Returns the nanoseconds of a unit: units are a thousand apart, the longest first.
pub(super) fn unit(unit: TimeUnit) -> i128 {
    SECOND / 1_000_i128.pow(unit as u32)
}

/// Parses `2024-01-31`, `2024-01-31T12:30`, `2024-01-31 12:30:00.25+02:00`, `...Z`.
pub(crate) fn timestamp(text: &str) -> Option<Moment> {
    if let Some((seconds, nanoseconds)) = plain_timestamp(text.as_bytes()) {
        let nanoseconds = i128::from(seconds) * SECOND + i128::from(nanoseconds);
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
/// parts: seconds since 1970 and nanoseconds. `None` for everything else, valid or not.
pub(crate) fn plain_timestamp(text: &[u8]) -> Option<(i64, i64)> {
    let (head, fraction) = text.split_first_chunk::<19>()?;
    let [year, _, decade, _, _, month, ..] = pairs(head.first_chunk()?, b"0000-00-")?;
    let [hours, _, _, minutes, _, _, seconds, _] = pairs(head.last_chunk()?, b"00:00:00")?;
    let day = (head[8].wrapping_sub(b'0'), head[9].wrapping_sub(b'0'));
    if day.0 > 9 || day.1 > 9 || !matches!(head[10], b' ' | b'T') {
        return None;
    }
    let whole = i64::from;
    let (year, month, day) = (whole(year) * 100 + whole(decade), whole(month), whole(day.0 * 10 + day.1));
    if day == 0 || day > length_of_month(year, month) || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
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
            nanoseconds = nanoseconds * 10 + whole(digit);
        }
        nanoseconds *= 10_i64.pow(9 - digits.len() as u32);
    }
    let of_day = whole(hours) * 3600 + whole(minutes) * 60 + whole(seconds);
    Some((days_from_civil(year, month, day) * 86_400 + of_day, nanoseconds))
}

/// Reads all pairs of digits at once: the n-th byte is the number of the digits n and n + 1. `None` if the text
/// does not have digits where `form` has zeros, and the other characters of `form` in their places.
#[inline(always)]
fn pairs(text: &[u8; 8], form: &[u8; 8]) -> Option<[u8; 8]> {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let (word, form) = (u64::from_le_bytes(*text), u64::from_le_bytes(*form));
    let digits = word ^ form;
    // A byte of the form other than `0` makes a greater number, unless the text has the same byte there.
    let wrong = form ^ (EACH * u64::from(b'0'));
    let is_separator = (wrong + EACH * 0x7f) & (EACH * 0x80);
    let above_nine = digits.wrapping_add(EACH * 0x76) | digits;
    let other = digits & ((is_separator >> 7) * 0xff);
    if above_nine & (EACH * 0x80) != 0 || other != 0 {
        return None;
    }
    Some((digits * 10 + (digits >> 8)).to_le_bytes())
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
    let day = number(day, 2, length_of_month(year, month)).filter(|day| *day > 0)?;
    Some(days_from_civil(year, month, day))
}

/// Returns how many days a month has, or 0 if `month` is not between 1 and 12.
fn length_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, whose year is not negative. By Neri and Schneider,
/// "Euclidean affine functions and their application to calendar algorithms".
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years that start in March end with the leap day, so the lengths of months follow a formula. 400 years more
    // keep all numbers positive.
    let is_before_march = month <= 2;
    let year = (year + 400 - i64::from(is_before_march)) as u64;
    let month = (month + if is_before_march { 12 } else { 0 }) as u64;
    let century = year / 100;
    let day_of_year = (979 * month - 2919) / 32 + day as u64 - 1;
    // 0000-03-01 is 719468 days before 1970-01-01.
    (1461 * year / 4 - century + century / 4 + day_of_year) as i64 - 719_468 - 146_097
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parsers_of_timestamps_agree() {
        let plain = |text: &str| {
            plain_timestamp(text.as_bytes())
                .map(|(seconds, nanoseconds)| i128::from(seconds) * SECOND + i128::from(nanoseconds))
        };
        for date in ["2024-02-29", "1900-02-28", "1999-12-31", "0001-03-01", "2023-06-30"] {
            for clock in ["00:00:00", "23:59:59.5", "12:34:56.123456789"] {
                let slow = timestamp(&format!("{date} {clock}+00")).map(|moment| moment.nanoseconds);
                assert!(slow.is_some());
                assert_eq!(plain(&format!("{date}T{clock}")), slow);
                assert_eq!(plain(&format!("{date} {clock}")), slow);
            }
        }
        for wrong in
            ["2023-02-29 00:00:00", "2024-04-31 00:00:00", "2024-00-01 00:00:00", "2024-01-01 00:00:60"]
        {
            assert!(timestamp(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn days_follow_one_another() {
        let mut expected = days("0000-01-01").unwrap();
        assert_eq!(expected, -719_528);
        for year in 0..2500 {
            for month in 1..=12 {
                for day in 1..=length_of_month(year, month) {
                    assert_eq!(days_from_civil(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
        assert_eq!(days_from_civil(2000, 1, 1), 10_957);
        assert_eq!(days_from_civil(999_999, 12, 31), 364_522_971);
    }

    #[test]
    fn only_the_very_form_is_plain() {
        let right = "2024-01-31 12:30:59.5";
        assert!(plain_timestamp(right.as_bytes()).is_some());
        for at in (0..right.len()).filter(|at| *at != 10) {
            for byte in 0..=u8::MAX {
                let mut text = right.as_bytes().to_vec();
                text[at] = byte;
                let (before, is_digit) = (right.as_bytes()[at], byte.is_ascii_digit());
                let fits = if before.is_ascii_digit() { is_digit } else { byte == before };
                if !fits {
                    assert_eq!(plain_timestamp(&text), None, "{}", text.escape_ascii());
                }
            }
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
