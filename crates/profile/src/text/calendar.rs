//! Days as dates of the proleptic Gregorian calendar, and moments as text, without a dependency.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in whole seconds in RFC 3339 format: `2026-11-01T12:34:56Z`.
pub fn utc_text(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil((seconds / 86_400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days from 1970-01-01 to a date. Months count from 1 and may be outside of 1 to 12.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12));
    // Years that start in March end with the leap day, so the lengths of months follow a formula.
    let year = if month < 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 10) % 12) + 2) / 5 + day - 1;
    // 0000-03-01 is 719468 days before 1970-01-01.
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// The year, month and day of a day since 1970-01-01.
#[inline]
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years have equally many days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_match_the_calendar() {
        let text = |seconds| utc_text(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(text(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn dates_and_days_are_inverse() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(days_from_civil(2023, 13, 1), days_from_civil(2024, 1, 1));
        for day in (-1_000_000..1_000_000).step_by(37) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days_from_civil(year, month, of_month), day);
        }
    }
}
