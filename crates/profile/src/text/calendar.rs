//! Formats a moment as date and time in UTC, without a dependency.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in whole seconds in RFC 3339 format: `2026-11-01T12:34:56Z`.
pub fn utc_text(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The year, month and day of a day counted from 1970-01-01 (Hinnant, *chrono-Compatible Low-Level Date
/// Algorithms*, `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March, so that the leap day ends the year.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
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
}
