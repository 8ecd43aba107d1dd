//! Years, months, days and hours as spans of a column's values.
//!
//! Dates follow the proleptic Gregorian calendar in UTC, as in PostgreSQL.

use sawmill_pgcopy::calendar::{civil, days_from_civil};

use crate::partition::by::Scheme;

/// The years whose values can be partitioned: outside of them notations of dates differ.
pub(crate) const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// A period. Its number is the year, the month counted from year 0, or the day or hour counted from 1970; its
/// bounds are hours since 1970-01-01, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub number: i64,
    pub first_hour: i64,
    pub end_hour: i64,
}

/// Days from 1970-01-01 to the first day of a month, counted from January of year 0.
fn first_of(month: i64) -> i64 {
    days_from_civil(month.div_euclid(12), month.rem_euclid(12) + 1, 1)
}

/// The month of a day, counted from January of year 0.
fn month_of(day: i64) -> i64 {
    let (year, month, _) = civil(day);
    year * 12 + month - 1
}

/// The period of an hour since 1970-01-01. `None` outside of [`YEARS`], and for schemes without periods.
pub(crate) fn period_of(scheme: Scheme, hour: i64) -> Option<Period> {
    let day = hour.div_euclid(24);
    let (first, end) = (first_of(YEARS.start() * 12), first_of((YEARS.end() + 1) * 12));
    if !(first..end).contains(&day) {
        return None;
    }
    let months = |from: i64, to: i64, number: i64| Period {
        number,
        first_hour: first_of(from) * 24,
        end_hour: first_of(to) * 24,
    };
    match scheme {
        Scheme::Hour => Some(Period { number: hour, first_hour: hour, end_hour: hour + 1 }),
        Scheme::Day => Some(Period { number: day, first_hour: day * 24, end_hour: (day + 1) * 24 }),
        Scheme::Month => {
            let month = month_of(day);
            Some(months(month, month + 1, month))
        }
        Scheme::Year => {
            let year = month_of(day).div_euclid(12);
            Some(months(year * 12, year * 12 + 12, year))
        }
        Scheme::Hash(_) | Scheme::List => None,
    }
}

/// The period with this number.
pub(crate) fn period(scheme: Scheme, number: i64) -> Option<Period> {
    let hour = match scheme {
        Scheme::Year => first_of(number.checked_mul(12)?).checked_mul(24)?,
        Scheme::Month => first_of(number).checked_mul(24)?,
        Scheme::Day => number.checked_mul(24)?,
        _ => number,
    };
    period_of(scheme, hour)
}

/// A day as `2024-01-31`.
pub(crate) fn date(day: i64) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_lie_in_their_months_and_years() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(first_of(10_000 * 12)), "10000-01-01");
        let day = |scheme, day: i64| {
            let period = period_of(scheme, day.saturating_mul(24))?;
            Some((date(period.first_hour / 24), date(period.end_hour / 24)))
        };
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(day(Scheme::Month, 19_782), pair("2024-02-01", "2024-03-01"));
        assert_eq!(day(Scheme::Year, 19_782), pair("2024-01-01", "2025-01-01"));
        assert_eq!(day(Scheme::Day, 19_782), pair("2024-02-29", "2024-03-01"));
        assert_eq!(day(Scheme::Month, -1), pair("1969-12-01", "1970-01-01"));
        assert_eq!(day(Scheme::Year, first_of(12)), pair("0001-01-01", "0002-01-01"));
        assert_eq!(day(Scheme::Day, first_of(12) - 1), None);
        assert_eq!(day(Scheme::Year, first_of(120_000)), None);
        assert_eq!(day(Scheme::Month, i64::MIN), None);
    }

    #[test]
    fn hours_are_periods_of_their_own() {
        let hour = period_of(Scheme::Hour, -1).unwrap();
        assert_eq!((hour.number, hour.first_hour, hour.end_hour), (-1, -1, 0));
        assert_eq!(period(Scheme::Hour, -1), Some(hour));
    }

    #[test]
    fn periods_follow_one_another_and_are_found_by_their_numbers() {
        for scheme in [Scheme::Year, Scheme::Month, Scheme::Day] {
            let mut hour = first_of(12) * 24;
            let mut periods = 0;
            while let Some(found) = period_of(scheme, hour) {
                assert_eq!((found.first_hour, period(scheme, found.number)), (hour, Some(found)));
                assert_eq!(period_of(scheme, found.end_hour - 1), Some(found));
                hour = found.end_hour;
                periods += 1;
            }
            let expected = match scheme {
                Scheme::Year => 9999,
                Scheme::Month => 9999 * 12,
                _ => first_of(120_000) - first_of(12),
            };
            assert_eq!(periods, expected);
        }
    }
}
