//! Dates and times.
//!
//! Hand-written, because CrateDB's timestamps span 292 million years, but `chrono`'s 262,000 and `jiff`'s
//! 9,999.

/// Milliseconds of `YYYY-MM-DD[THH:MM:SS[.f]][Z]`; truncates finer fractions.
pub(super) fn moment(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut parts = date.splitn(3, '-');
    let mut number = || parts.next()?.parse::<i64>().ok();
    let (year, month, day) = (number()?, number()?, number()?);
    let clock = clock.trim_end_matches('Z');
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut millis = days(year, month, day) * 86_400_000;
    for (part, unit) in clock.split(':').zip([3_600_000, 60_000, 1000]) {
        millis += if part.is_empty() { 0 } else { part.parse::<i64>().ok()? * unit };
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(millis + fraction.parse::<i64>().ok()?)
}

/// Days since 1970 of a date (H. Hinnant, days_from_civil).
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `date_trunc(part, moment)`.
pub(crate) fn date_trunc(part: &str, millis: i64) -> i64 {
    let day = millis.div_euclid(86_400_000);
    let unit = |n: i64| millis.div_euclid(n) * n;
    // Search for the year and month of the day.
    let mut year = 1970 + day.div_euclid(366) - 1;
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day {
        month += 1;
    }
    match part {
        "second" => unit(1000),
        "minute" => unit(60_000),
        "hour" => unit(3_600_000),
        "day" => unit(86_400_000),
        // Monday; 1970-01-01 was a Thursday.
        "week" => ((day + 3).div_euclid(7) * 7 - 3) * 86_400_000,
        "month" => days(year, month, 1) * 86_400_000,
        "quarter" => days(year, (month - 1) / 3 * 3 + 1, 1) * 86_400_000,
        _ => days(year, 1, 1) * 86_400_000,
    }
}
