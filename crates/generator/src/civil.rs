//! Dates and times of a spec as the days and microseconds that Parquet stores.

use toml::value::{Date, Datetime};

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar, `None` for a time without
/// a date.
///
/// (H. Hinnant: "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.)
pub(crate) fn days(at: &Datetime) -> Option<i32> {
    let Date { year, month, day } = at.date?;
    let (month, day) = (i32::from(month), i32::from(day));
    let year = i32::from(year) - i32::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Microseconds from 1970-01-01T00:00:00 to a local time (midnight where it is a date alone),
/// `None` for a time without a date or with a zone.
pub(crate) fn microseconds(at: &Datetime) -> Option<i64> {
    if at.offset.is_some() {
        return None;
    }
    let days = i64::from(days(at)?);
    let within = at.time.map_or(0, |time| {
        let second = i64::from(time.second.unwrap_or(0));
        let seconds = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + second;
        seconds * 1_000_000 + i64::from(time.nanosecond.unwrap_or(0)) / 1000
    });
    Some(days * 86_400_000_000 + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_microseconds_of_known_dates() {
        let days = |text: &str| days(&text.parse().unwrap()).unwrap();
        assert_eq!(days("1970-01-01"), 0);
        assert_eq!(days("1969-12-31"), -1);
        assert_eq!(days("2000-02-29"), 11_016);
        assert_eq!(days("2024-03-01"), 19_783);
        assert_eq!(days("0001-01-01"), -719_162);
        let micros = |text: &str| microseconds(&text.parse().unwrap());
        assert_eq!(micros("1970-01-02T00:00:01.5"), Some(86_401_500_000));
        assert_eq!(micros("1970-01-02T00:00:01Z"), None);
        assert_eq!(micros("12:00:00"), None);
    }
}
