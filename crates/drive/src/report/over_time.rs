//! Rates, latencies and errors over time.

use std::collections::BTreeMap;

use sawmill_profile::{Across, Heat, HeatColumn, Line, Lines, Section, Upward, format_rate};

use crate::report::{ends, events};
use crate::result::file::DriveResult;
use crate::result::latency::Percentiles;
use crate::result::second::{OperationSecond, Second};
use crate::watch::screen::micros;

/// Maximum points of a line; in longer runs, each covers several seconds.
const MAX_POINTS: usize = 600;

/// Maximum areas of a stacked chart; the others share one more.
const MAX_KINDS: usize = 6;

/// The height of a chart.
pub(super) const HEIGHT: f64 = 170.0;

/// A chart over the time of a run.
pub(super) fn chart(result: &DriveResult, title: &str, upward: Upward, lines: Vec<Line>) -> Lines {
    let chart = Lines::new(title, HEIGHT, Across::time(ends(result), clock), upward, lines);
    Lines { events: events(result), ..chart }
}

/// A time since the start of the run: `40 s`, `2:05`.
pub(super) fn clock(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        seconds => format!("{}:{:02}", seconds as u64 / 60, seconds as u64 % 60),
    }
}

/// A line with a point at the end of each second; in long runs of the mean of several seconds.
pub(super) fn line(result: &DriveResult, name: &str, value: impl Fn(&Second) -> Option<f64>) -> Line {
    joined(result, name, value, |values| values.iter().sum::<f64>() / values.len() as f64)
}

/// The same with the greatest value of several seconds: a mean would hide the slow ones.
pub(super) fn greatest(result: &DriveResult, name: &str, value: impl Fn(&Second) -> Option<f64>) -> Line {
    joined(result, name, value, |values| values.iter().copied().fold(0.0, f64::max))
}

fn joined(
    result: &DriveResult,
    name: &str,
    value: impl Fn(&Second) -> Option<f64>,
    join: fn(&[f64]) -> f64,
) -> Line {
    let stretches = result.seconds.chunks(stretch(result));
    let points = stretches.map(|stretch| {
        let values: Vec<f64> = stretch.iter().filter_map(&value).filter(|value| value.is_finite()).collect();
        let at = stretch.last().map_or(0.0, |second| second.at);
        (at, if values.is_empty() { f64::NAN } else { join(&values) })
    });
    Line::new(name, points)
}

/// The number of seconds that one point covers.
fn stretch(result: &DriveResult) -> usize {
    result.seconds.len().div_ceil(MAX_POINTS).max(1)
}

/// A sentence for a note that says how many seconds a point covers; empty in short runs.
fn stretch_told(result: &DriveResult, what: &str) -> String {
    match stretch(result) {
        1 => String::new(),
        seconds => format!(" Each point is the {what} of {seconds} seconds."),
    }
}

pub(super) fn operations_a_second(value: f64) -> String {
    format_rate(value, "ops")
}

pub(super) fn rates(result: &DriveResult) -> Section {
    let upward = Upward::linear("operations a second", operations_a_second);
    let closed = result.run.loop_kind == "closed";
    let mut lines = Vec::new();
    if !closed {
        lines.push(line(result, "intended", |second| Some(second.intended)));
    }
    lines.push(line(result, "achieved", |second| Some(second.achieved)));
    if result.seconds.iter().any(|second| second.late > 0) {
        lines.push(line(result, "started late", |second| Some(second.late as f64 / second.length.max(1e-3))));
    }
    let note = format!(
        "Achieved operations ended well in that second; late ones started more than 1 ms after their intended \
         start. The first seconds are the warm-up, if there is one, which the totals leave out.{}",
        stretch_told(result, "mean")
    );
    let chart = chart(result, "Rates over time", upward, lines);
    Section::new("Intended and achieved rate", &note, chart.html() + &chart.event_list())
}

pub(super) fn latencies(result: &DriveResult) -> Section {
    let mut content = String::new();
    for name in &result.run.operations {
        let upward = Upward::logarithmic("latency", micros);
        let of = |second: &Second, place: usize| {
            let percentiles = &second.operations.get(name)?.latency;
            (percentiles.count > 0).then(|| percentiles.figures()[place].max(1) as f64)
        };
        let names = Percentiles::NAMES.iter().enumerate();
        let lines = names.map(|(place, text)| greatest(result, text, |second| of(second, place))).collect();
        let chart = chart(result, &format!("Latency of {name} over time"), upward, lines).html();
        if result.run.operations.len() > 1 && !chart.is_empty() {
            content.push_str(&format!("<h3>{}</h3>\n", sawmill_profile::escape_html(name)));
        }
        content.push_str(&chart);
    }
    let note = format!(
        "From the intended start to the end. An operation counts in the second in which it ended.{}",
        stretch_told(result, "greatest")
    );
    Section::new("Latency over time", &note, content)
}

pub(super) fn heat(result: &DriveResult) -> Section {
    let note =
        "All operations. A darker cell has more of them; the scale is logarithmic in both latency and count.";
    Section::new("Latency as a heat map", note, heat_map(result, "Heat map of the latency over time").html())
}

pub(super) fn heat_map(result: &DriveResult, title: &str) -> Heat {
    let column = |second: &Second| {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (value, count) in second.operations.values().flat_map(|one: &OperationSecond| &one.heat) {
            *counts.entry(*value).or_default() += count;
        }
        HeatColumn {
            from: (second.at - second.length).max(0.0),
            until: second.at,
            counts: counts.into_iter().map(|(value, count)| (value.max(1) as f64, count)).collect(),
        }
    };
    Heat {
        title: title.to_owned(),
        name: "latency".into(),
        ends: ends(result),
        columns: result.seconds.iter().map(column).collect(),
        show: micros,
        show_time: clock,
        events: events(result),
    }
}

/// The most frequent kinds of something as stacked areas.
pub(super) fn stacked(
    result: &DriveResult,
    kinds: fn(&Second) -> BTreeMap<&str, u64>,
    value: fn(u64, &Second) -> f64,
) -> Vec<Line> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in result.seconds.iter().flat_map(kinds) {
        *totals.entry(kind).or_default() += count;
    }
    let mut totals: Vec<(&str, u64)> = totals.into_iter().collect();
    totals.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (shown, rest) = totals.split_at(totals.len().min(MAX_KINDS));
    let area = |name: &str, of: &[(&str, u64)]| {
        let sum = |second: &Second| {
            let here = kinds(second);
            let count = of.iter().filter_map(|(kind, _)| here.get(kind)).sum();
            Some(value(count, second))
        };
        Line { stacked: true, ..line(result, name, sum) }
    };
    let mut areas: Vec<Line> = shown.iter().map(|kind| area(kind.0, std::slice::from_ref(kind))).collect();
    if !rest.is_empty() {
        areas.push(area("others", rest));
    }
    areas
}

pub(super) fn errors(result: &DriveResult) -> Section {
    let areas = stacked(result, error_kinds, |count, second| count as f64 / second.length.max(1e-3));
    let upward = Upward::linear("errors a second", |value| format!("{value}"));
    let note =
        "By kind: an SQLSTATE, timeout, lost (the connection, with unknown outcome), check (a wrong result).";
    Section::new("Errors over time", note, chart(result, "Errors over time by kind", upward, areas).html())
}

fn error_kinds(second: &Second) -> BTreeMap<&str, u64> {
    let mut kinds = BTreeMap::new();
    for (kind, count) in second.operations.values().flat_map(|one| &one.errors) {
        *kinds.entry(kind.as_str()).or_default() += count;
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_seconds_is_drawn_with_few_points_and_its_worst_second_stays() {
        let second = |at: u32| Second {
            at: f64::from(at),
            achieved: if at == 4_321 { 90_000.0 } else { 10.0 },
            ..Second::default()
        };
        let result = DriveResult { seconds: (1..=86_400).map(second).collect(), ..DriveResult::default() };
        let worst = greatest(&result, "worst", |second| Some(second.achieved));
        assert_eq!(worst.points.len(), MAX_POINTS);
        assert_eq!(worst.points.iter().filter(|point| point.y == 90_000.0).count(), 1);
        let mean = line(&result, "mean", |second| Some(second.achieved));
        assert!((mean.points[0].y - 10.0).abs() < 1e-9 && mean.points.last().unwrap().x == 86_400.0);
        assert!(line(&result, "none", |_| None).points.iter().all(|point| point.y.is_nan()));
    }
}
