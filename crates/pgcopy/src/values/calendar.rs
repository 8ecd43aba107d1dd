//! The proleptic Gregorian calendar, whose year 0 is 1 BC, by H. Hinnant's "chrono-compatible low-level date
//! algorithms".

use arrow_schema::TimeUnit;

/// Returns year, month and day of a day counted from 1970-01-01.
#[inline]
pub fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the days from 1970-01-01 to a day.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns how many of the unit a second has.
#[inline]
pub fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_for_all_days_of_400_years_and_far_away() {
        for day in (-73_000..73_100).chain([i64::from(i32::MIN), -719_528, -719_529, i64::from(i32::MAX)]) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days_from_civil(year, month, of_month), day);
        }
        assert_eq!((civil(0), civil(-1), civil(11_016)), ((1970, 1, 1), (1969, 12, 31), (2000, 2, 29)));
    }
}
