//! Dates and times of day from counts of days and nanoseconds, in the proleptic Gregorian calendar, as the
//! format requires.
//!
//! Why our own: `chrono` covers 262,000 years each way and `jiff` 9,999; dates of Parquet are 32 bits of
//! days.

use std::fmt::Write;

/// Days from the Julian epoch to the Unix epoch, for INT96 timestamps.
pub(crate) const JULIAN_DAY_OF_EPOCH: i64 = 2_440_588;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND as i128;

/// A date from days since the Unix epoch: `2024-02-29`. Years beyond four digits get a sign, as in ISO 8601.
pub(crate) fn date(days: i64) -> String {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: eras of 400
    // years, years that start in March.
    let days = i128::from(days) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// A time of day from nanoseconds since midnight: `12:34:56`, and `digits` digits of the fraction unless that
/// is 0. `None` beyond a day.
pub(crate) fn time(nanos: i128, digits: usize) -> Option<String> {
    let nanos = u64::try_from(nanos).ok().filter(|&nanos| i128::from(nanos) < NANOS_PER_DAY)?;
    let (seconds, fraction) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let all = format!("{fraction:09}");
        // Writing to a string does not fail.
        let _ = write!(text, ".{}", &all[..digits.min(9)]);
    }
    Some(text)
}

/// An instant from nanoseconds since the Unix epoch: `2024-02-29T12:34:56.789`.
pub(crate) fn timestamp(nanos: i128, digits: usize) -> String {
    // An i64 of milliseconds is 1.1e11 days at most.
    let days = nanos.div_euclid(NANOS_PER_DAY) as i64;
    let time = time(nanos.rem_euclid(NANOS_PER_DAY), digits).unwrap_or_default();
    format!("{}T{time}", date(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        let days = [0, -1, 19_782, 11_016, -719_528, 2_932_896, 2_932_897, -719_529];
        let dates = [
            "1970-01-01",
            "1969-12-31",
            "2024-02-29",
            "2000-02-29",
            "0000-01-01",
            "9999-12-31",
            "+10000-01-01",
            "-0001-12-31",
        ];
        assert_eq!(days.map(date), dates);
        // The ends of 32 bits.
        assert_eq!(date(i32::MAX.into()), "+5881580-07-11");
        assert_eq!(date(i32::MIN.into()), "-5877641-06-23");
    }

    #[test]
    fn instants_have_the_digits_of_their_unit() {
        assert_eq!(timestamp(0, 9), "1970-01-01T00:00:00");
        assert_eq!(timestamp(-1_000_000, 3), "1969-12-31T23:59:59.999");
        assert_eq!(timestamp(1_709_210_096_000_789_000, 6), "2024-02-29T12:34:56.000789");
        assert_eq!(time(NANOS_PER_DAY - 1, 9).unwrap(), "23:59:59.999999999");
        assert_eq!(time(NANOS_PER_DAY, 9), None);
        assert_eq!(time(-1, 9), None);
        assert!(timestamp(i128::from(i64::MIN) * 1_000_000, 3).starts_with("-292275055-"));
    }
}
