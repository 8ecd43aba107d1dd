//! Local times of a time zone, as the server converts them.

use std::fmt;
use std::str::FromStr;

use arrow_array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

use crate::values::calendar::{civil, days_from_civil};

const DAY: i64 = 86_400;
/// The tables of the tz database end before the year 2100.
const LAST_YEAR: i64 = 2099;

/// A time zone: a name of the tz database, such as `Europe/Vienna`, or an offset east of Greenwich, such as `+02:00`.
#[derive(Clone, Copy, Debug)]
pub struct Zone(Tz);

impl Zone {
    /// Returns the seconds by which the local time is ahead of UTC at a moment, in seconds since 1970.
    fn ahead(self, utc: i64) -> i64 {
        let moment = DateTime::from_timestamp(same_calendar(utc), 0).unwrap_or_default();
        i64::from(self.0.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc())
    }

    /// Returns the local time of a moment. Both count seconds since 1970.
    pub(crate) fn local(self, utc: i64) -> i64 {
        utc + self.ahead(utc)
    }

    /// Returns the moment of a local time. A time that a change of the clocks repeats or leaves out is the later of
    /// the two moments with the offsets before and after (`DetermineTimeZoneOffset` in
    /// src/backend/utils/adt/datetime.c).
    pub(crate) fn utc(self, local: i64) -> i64 {
        let before = local - self.ahead(local - DAY);
        let after = local - self.ahead(local + DAY);
        match (self.local(before) == local, self.local(after) == local) {
            (true, false) => before,
            (false, true) => after,
            _ => before.max(after),
        }
    }
}

/// Returns a moment unchanged, or moves one beyond the tables to an earlier year with the same calendar, in which the
/// clocks change on the same days.
fn same_calendar(seconds: i64) -> i64 {
    let first = |year: i64| days_from_civil(year, 1, 1);
    let (year, ..) = civil(seconds.div_euclid(DAY));
    if year <= LAST_YEAR {
        return seconds;
    }
    let days = |year: i64| first(year + 1) - first(year);
    let is_same = |other: &i64| days(*other) == days(year) && (first(*other) - first(year)) % 7 == 0;
    let other = (LAST_YEAR - 27..=LAST_YEAR).find(is_same).unwrap_or(LAST_YEAR);
    seconds - (first(year) - first(other)) * DAY
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let refused = |_| format!("{name:?} is not a time zone, such as Europe/Vienna, +02:00 or UTC");
        name.parse().map(Self).map_err(refused)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Zone {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i64, month: i64, day: i64, hour: i64, minute: i64) -> i64 {
        days_from_civil(year, month, day) * DAY + hour * 3600 + minute * 60
    }

    #[test]
    fn a_repeated_time_is_the_second_and_a_skipped_one_has_the_offset_before() {
        let vienna: Zone = "Europe/Vienna".parse().unwrap();
        let offset = |local: i64| (local - vienna.utc(local)) / 3600;
        assert_eq!(offset(at(2024, 1, 1, 12, 0)), 1);
        assert_eq!(offset(at(2024, 7, 1, 12, 0)), 2);
        // Clocks skip 02:00 to 03:00 on 2024-03-31, and repeat it on 2024-10-27.
        assert_eq!(offset(at(2024, 3, 31, 1, 59)), 1);
        assert_eq!(offset(at(2024, 3, 31, 2, 30)), 1);
        assert_eq!(offset(at(2024, 3, 31, 3, 0)), 2);
        assert_eq!(offset(at(2024, 10, 27, 1, 59)), 2);
        assert_eq!(offset(at(2024, 10, 27, 2, 0)), 1);
        assert_eq!(offset(at(2024, 10, 27, 2, 30)), 1);
        assert_eq!(vienna.local(at(2024, 7, 1, 10, 0)), at(2024, 7, 1, 12, 0));
    }

    #[test]
    fn the_rules_go_on_after_the_tables_end() {
        let vienna: Zone = "Europe/Vienna".parse().unwrap();
        for year in [2099, 2100, 2150, 2400, 9999] {
            assert_eq!(vienna.ahead(at(year, 1, 15, 0, 0)), 3600, "{year}");
            assert_eq!(vienna.ahead(at(year, 7, 15, 0, 0)), 7200, "{year}");
        }
    }

    #[test]
    fn offsets_count_to_the_east_and_names_are_those_of_the_tz_database() {
        let zone = |name: &str| name.parse::<Zone>();
        assert_eq!(zone("+02:00").unwrap().utc(7200), 0);
        assert_eq!(zone("-0530").unwrap().utc(0), 19_800);
        assert_eq!(zone("UTC").unwrap().utc(5), 5);
        assert_ne!(zone("UTC"), zone("+01:00"));
        assert!(zone("Europe/Wien").unwrap_err().contains("Europe/Wien"));
    }
}
