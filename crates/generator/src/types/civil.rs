//! Dates and times of a spec as the days and nanoseconds that Parquet stores.

use sawmill_profile::{civil, days_from_civil};
use toml::value::{Date, Datetime, Offset, Time};

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar; `None` for a time without a date.
pub(crate) fn days(at: &Datetime) -> Option<i32> {
    let Date { year, month, day } = at.date?;
    Some(days_from_civil(year.into(), month.into(), day.into()) as i32)
}

pub(crate) fn nanoseconds_of_day(time: &Time) -> i128 {
    let second = i128::from(time.second.unwrap_or(0));
    let seconds = i128::from(time.hour) * 3600 + i128::from(time.minute) * 60 + second;
    seconds * 1_000_000_000 + i128::from(time.nanosecond.unwrap_or(0))
}

/// Nanoseconds from 1970-01-01T00:00:00 to a time; a date alone means midnight. A time with an offset is
/// converted to UTC. `None` for a time without a date, and for an offset if `zoned` is false.
pub(crate) fn nanoseconds(at: &Datetime, zoned: bool) -> Option<i128> {
    let offset_minutes = match at.offset {
        None | Some(Offset::Z) => 0,
        Some(Offset::Custom { minutes }) => i128::from(minutes),
    };
    if at.offset.is_some() && !zoned {
        return None;
    }
    let days = i128::from(days(at)?);
    let within = at.time.map_or(0, |time| nanoseconds_of_day(&time));
    Some(days * 86_400_000_000_000 + within - offset_minutes * 60_000_000_000)
}

/// The date of a number of days from 1970-01-01, as `YYYY-MM-DD`.
pub(crate) fn date_text(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_nanoseconds_of_known_dates() {
        let days = |text: &str| days(&text.parse().unwrap()).unwrap();
        assert_eq!(days("1970-01-01"), 0);
        assert_eq!(days("1969-12-31"), -1);
        assert_eq!(days("2000-02-29"), 11_016);
        assert_eq!(days("2024-03-01"), 19_783);
        assert_eq!(days("0001-01-01"), -719_162);
        let nanos = |text: &str, zoned| nanoseconds(&text.parse().unwrap(), zoned);
        assert_eq!(nanos("1970-01-02T00:00:01.5", false), Some(86_401_500_000_000));
        assert_eq!(nanos("1970-01-02T00:00:01Z", false), None);
        assert_eq!(nanos("1970-01-01T02:00:01+02:00", true), Some(1_000_000_000));
        assert_eq!(nanos("12:00:00", false), None);
    }

    #[test]
    fn days_convert_back_to_dates() {
        for text in ["1970-01-01", "1969-12-31", "2000-02-29", "2024-03-01", "0001-01-01", "9999-12-31"] {
            assert_eq!(date_text(days(&text.parse().unwrap()).unwrap().into()), text);
        }
    }
}
