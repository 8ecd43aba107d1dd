//! Dates and timestamps that follow the calendar: more on weekdays, in the evening, in December, year by year.
//!
//! A day is drawn by the product of the weights of its weekday, month and year, an hour by the weights of hours, and
//! the moment within the hour uniformly.

use sawmill_profile::civil;

use crate::draw::choice::bad_weights;
use crate::draw::expression::Reach;
use crate::error::Result;
use crate::random::rng::{Sequence, scale64};
use crate::random::weights::Weights;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::literal::{Literal, whole};
use crate::types::logical_type::LogicalType;

/// The most days from the first to the last: some 2,800 years.
const MAX_DAYS: i128 = 1 << 20;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Points in time by the weights of the calendar.
#[derive(Debug)]
pub(crate) struct Seasonal {
    /// The first day, counted from 1970-01-01, and the weights of the days from there on.
    first: i128,
    days: Weights,
    hours: Weights,
    /// The whole numbers of the type that make up an hour; `None` for dates.
    per_hour: Option<u64>,
}

impl Seasonal {
    /// Reads `{ from = DATE, to = DATE, hours = ..., weekdays = ..., months = ..., years = ... }`.
    pub(crate) fn read(node: SpecNode<'_>, kind: &LogicalType) -> Result<Self> {
        let table = node.table("seasonal", &["from", "to", "hours", "weekdays", "months", "years"])?;
        let per_day = match kind.ticks_per_day() {
            Some(per_day) if !matches!(kind, LogicalType::Time { .. } | LogicalType::Duration { .. }) => {
                per_day
            }
            _ => {
                let what = format!("seasonal draws dates and timestamps, not {}", kind.name());
                return Err(node.error(what, "change the type of the field, or use `weights`"));
            }
        };
        let (first, last) = (date(table, "from")?, date(table, "to")?);
        if last < first || last - first >= MAX_DAYS {
            let what = format!("{} days from the first to the last", last - first + 1);
            return Err(node.error(what, format!("use 1 to {MAX_DAYS} days")));
        }
        let range = kind.range();
        let ends = [first * per_day, (last + 1) * per_day - 1];
        if ends.iter().any(|end| !(range.0..=range.1).contains(end)) {
            let what = format!("days that {} cannot hold", kind.a_name());
            return Err(node.error(what, "use days that are closer to today, or a coarser `unit`"));
        }
        let weekdays = weights_of(table, "weekdays", &|i| WEEKDAYS.get(i).map(|day| (*day).to_owned()))?;
        let months = weights_of(table, "months", &|i| (i < 12).then(|| (i + 1).to_string()))?;
        let hours = weights_of(table, "hours", &|i| (i < 24).then(|| i.to_string()))?;
        let (first_year, ..) = civil(first as i64);
        let (last_year, ..) = civil(last as i64);
        let year_name = |i: usize| {
            let year = first_year + i as i64;
            (year <= last_year).then(|| year.to_string())
        };
        let years = weights_of(table, "years", &year_name)?;
        let weight = |list: &[f64], i: i64| usize::try_from(i).ok().and_then(|i| list.get(i)).copied();
        let day_weight = |day: i128| {
            let (year, month, _) = civil(day as i64);
            // 1970-01-01 was a Thursday.
            let weekday = weight(&weekdays, (day + 3).rem_euclid(7) as i64);
            let factors = [weekday, weight(&months, month - 1), weight(&years, year - first_year)];
            factors.into_iter().map(|factor| factor.unwrap_or(1.0)).product()
        };
        let days: Vec<f64> = (first..=last).map(day_weight).collect();
        let of = |weights: &[f64]| Weights::new(weights).map_err(|bad| bad_weights(&bad, node));
        let is_date = *kind == LogicalType::Date;
        let per_hour = (!is_date).then(|| u64::try_from(per_day / 24).unwrap_or(1));
        Ok(Seasonal { first, days: of(&days)?, hours: of(&hours)?, per_hour })
    }

    /// The whole number of the type for a random `draw`.
    #[inline]
    pub(crate) fn value(&self, draw: u64) -> i128 {
        let mut random = Sequence::new(draw);
        let day = self.first + i128::from(self.days.pick_fine(random.next()));
        let Some(per_hour) = self.per_hour else { return day };
        let hour = day * 24 + i128::from(self.hours.pick_fine(random.next()));
        hour * i128::from(per_hour) + i128::from(scale64(random.next(), per_hour))
    }

    /// The number of days that may be drawn.
    pub(crate) fn days(&self) -> usize {
        self.days.probabilities().len()
    }

    /// The range of its values, in the whole numbers of the type.
    pub(crate) fn reach(&self) -> Reach {
        let per_day = self.per_hour.map_or(1.0, |per_hour| per_hour as f64 * 24.0);
        let first = self.first as f64;
        Reach::new(first * per_day, (first + self.days() as f64) * per_day - 1.0)
    }
}

/// The day of `key`, counted from 1970-01-01.
fn date(table: SpecTable<'_>, key: &str) -> Result<i128> {
    let node = table.need(key, "seasonal")?;
    let day = Literal::new(node).filter(|literal| matches!(literal, Literal::Datetime(_)));
    day.and_then(|day| whole(&LogicalType::Date, &day))
        .ok_or_else(|| node.unfit("{} is not a date", "write a date like 2024-02-29"))
}

/// The weights of `key`: a list with one for each name, or a table for some names; others weigh 1.
fn weights_of(table: SpecTable<'_>, key: &str, name: &dyn Fn(usize) -> Option<String>) -> Result<Vec<f64>> {
    let names: Vec<String> = (0..).map_while(name).collect();
    let mut weights = vec![1.0; names.len()];
    let Some(node) = table.get(key) else { return Ok(weights) };
    let number = |node: SpecNode<'_>| {
        let what = format!("the weight {{}} in `{key}`");
        node.number_in(0.0..=f64::MAX).ok_or_else(|| node.unfit(&what, "use a number of 0 or more"))
    };
    if let Some(list) = node.array() {
        if list.len() != names.len() {
            let what = format!("{} weights in `{key}`", list.len());
            return Err(node.error(what, format!("write {} weights, or a table of some", names.len())));
        }
        return list.map(number).collect();
    }
    let given = node.any_table(key)?;
    for (key_name, weight) in given.entries() {
        let Some(place) = names.iter().position(|name| name == key_name) else {
            let all = match names.as_slice() {
                [first, .., last] if names.len() > 7 => format!("{first} to {last}"),
                names => names.join(", "),
            };
            let what = format!("{key_name:?} in `{key}`");
            return Err(given.key_error(key_name, what, format!("use {all}")));
        };
        if let Some(slot) = weights.get_mut(place) {
            *slot = number(weight)?;
        }
    }
    Ok(weights)
}
