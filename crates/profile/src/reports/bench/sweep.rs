//! The swept parameters: lines over a number, one for each combination of the other parameters, with the speed-up
//! beside the time; and a heat map where two numbers were varied.

use std::fmt::Write as _;

use crate::measure::compare::statistics::Statistics;
use crate::measure::results::Case;
use crate::reports::bench::varied::{called, named_by, spoken, varied};
use crate::reports::bench::{heat_map, time, time_tick};
use crate::reports::chart::axis::Scale;
use crate::reports::chart::frame::Room;
use crate::reports::chart::lines::{Across, Line, Lines, Point, Upward};
use crate::reports::chart::svg::escape;
use crate::reports::page::{Section, text_table};
use crate::text::byte_sizes::parse_bytes;
use crate::text::counts::parse_count;

/// More lines than these are spread over several charts.
const MAX_LINES: usize = 8;

/// The parameter that is drawn across if it was varied.
const FIRST_CHOICE: &str = "connections";

/// A line: its name, and the statistics of the wall times by the parameter's value.
struct Series<'a> {
    name: String,
    points: Vec<(f64, &'a str, &'a Statistics)>,
}

/// The sections of the cases with one name; none if nothing was varied.
pub(super) fn sections(name: &str, cases: &[&Case]) -> Vec<Section> {
    let varied = varied(cases);
    let numbers: Vec<&(&str, Vec<&str>)> =
        varied.iter().filter(|(_, values)| values.iter().all(|value| number(value).is_some())).collect();
    let mut sections = Vec::new();
    let chosen = numbers.iter().find(|(parameter, _)| *parameter == FIRST_CHOICE);
    if let Some((across, _)) = chosen.or_else(|| numbers.iter().max_by_key(|(_, values)| values.len())) {
        let others: Vec<&str> = varied.iter().map(|(name, _)| *name).filter(|name| name != across).collect();
        sections.push(over(name, across, &others, cases));
    }
    let tables = pairs(&numbers, &varied, cases);
    let note = "Median time of our side; a stronger colour is slower. Below each time: the speed relative to the \
                first cell. If more than two parameters were varied, a cell shows the fastest of its cases.";
    sections.push(Section::new(&format!("{name}: two parameters at a time"), note, tables));
    sections
}

/// Heat maps of each pair of numbers; without numbers, of each pair of parameters.
fn pairs(numbers: &[&(&str, Vec<&str>)], varied: &[(&str, Vec<&str>)], cases: &[&Case]) -> String {
    let shown: Vec<&(&str, Vec<&str>)> = match numbers {
        [] => varied.iter().collect(),
        numbers => numbers.to_vec(),
    };
    let mut tables = String::new();
    for (place, first) in shown.iter().enumerate() {
        for second in shown.iter().skip(place + 1) {
            tables.push_str(&heat_map::draw(cases, first, second));
        }
    }
    tables
}

/// Time and speed-up over one parameter.
fn over(name: &str, across: &str, others: &[&str], cases: &[&Case]) -> Section {
    let mut content = String::new();
    for (title, cases) in groups(across, others, cases) {
        let series = series(across, others, &cases);
        let heading = if title.is_empty() { title } else { format!("<h3>{}</h3>\n", escape(&title)) };
        let title = format!("{name}: time over {}", spoken(across));
        let times = chart(&title, across, "time", time_tick, &series, |point, _| {
            (point.median, Some((point.min, point.max)))
        });
        let title = format!("{name}: speed-up over {}", spoken(across));
        let factor = |value: f64| format!("{} x", (value * 100.0).round() / 100.0);
        let speeds = chart(&title, across, "speed-up over the first", factor, &series, |point, first| {
            (first.median / point.median.max(f64::MIN_POSITIVE), None)
        });
        // Writing to a String cannot fail.
        let _ = write!(
            content,
            "{heading}<div class=\"pairs\"><div>{times}</div><div>{speeds}</div></div>\n{}",
            figures(across, &series)
        );
    }
    let lines = match others {
        [] => String::new(),
        others => {
            let others: Vec<String> = others.iter().map(|other| spoken(other)).collect();
            format!(" There is a line for each combination of {}.", others.join(" and "))
        }
    };
    let note =
        format!("Points are medians; bands or whiskers reach from the fastest run to the slowest.{lines}");
    Section::new(&format!("{name}: time over {}", spoken(across)), &note, content)
}

/// The cases in groups of at most eight lines each, titled by the parameters that separate them.
fn groups<'a>(across: &str, others: &[&str], cases: &[&'a Case]) -> Vec<(String, Vec<&'a Case>)> {
    let mut groups = vec![(Vec::<String>::new(), cases.to_vec())];
    let mut apart = others.to_vec();
    while groups.iter().any(|(_, cases)| series(across, others, cases).len() > MAX_LINES) {
        // The parameter with the most values is cut first.
        let count =
            |parameter: &str| varied(cases).iter().find(|(name, _)| *name == parameter).map(|(_, v)| v.len());
        let Some(place) = (0..apart.len()).max_by_key(|place| apart.get(*place).and_then(|name| count(name)))
        else {
            break;
        };
        let parameter = apart.remove(place);
        groups = groups.into_iter().flat_map(|group| cut(group, parameter)).collect();
    }
    groups.into_iter().map(|(titles, cases)| (titles.join(", "), cases)).collect()
}

/// A group cut by the values of a parameter.
fn cut<'a>(
    (titles, cases): (Vec<String>, Vec<&'a Case>),
    parameter: &str,
) -> Vec<(Vec<String>, Vec<&'a Case>)> {
    let mut parts: Vec<(Vec<String>, Vec<&Case>)> = Vec::new();
    for case in cases {
        let value = case.parameters.get(parameter).map(String::as_str).unwrap_or_default();
        let mut title = titles.clone();
        title.push(called(parameter, value));
        match parts.iter_mut().find(|(have, _)| *have == title) {
            Some((_, cases)) => cases.push(case),
            None => parts.push((title, vec![case])),
        }
    }
    parts
}

/// One line for each side and combination of the other parameters.
fn series<'a>(across: &str, others: &[&str], cases: &[&'a Case]) -> Vec<Series<'a>> {
    let several = cases.iter().any(|case| case.sides.len() > 1);
    let shown: Vec<&str> =
        varied(cases).iter().map(|(name, _)| *name).filter(|name| others.contains(name)).collect();
    let mut all: Vec<Series<'a>> = Vec::new();
    for case in cases {
        let Some(value) = case.parameters.get(across) else { continue };
        let Some(x) = number(value) else { continue };
        for side in &case.sides {
            let by = named_by(case, &shown);
            let name = match (several, by.is_empty()) {
                (true, false) => format!("{}, {by}", side.name),
                (false, false) => by,
                _ => side.name.clone(),
            };
            let Some(wall) = &side.wall else { continue };
            match all.iter_mut().find(|have| have.name == name) {
                Some(have) => have.points.push((x, value, wall)),
                None => all.push(Series { name, points: vec![(x, value, wall)] }),
            }
        }
    }
    for line in &mut all {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

fn chart(
    title: &str,
    across: &str,
    name: &str,
    show: fn(f64) -> String,
    series: &[Series<'_>],
    figure: impl Fn(&Statistics, &Statistics) -> (f64, Option<(f64, f64)>),
) -> String {
    let line = |one: &Series<'_>| {
        let first = one.points.first().map(|(_, _, first)| *first);
        let points = one.points.iter().filter_map(|(x, _, wall)| {
            let (y, band) = figure(wall, first?);
            Some(Point { x: *x, y, band })
        });
        Line { name: one.name.clone(), points: points.collect(), ..Line::default() }
    };
    let labels: Vec<(f64, String)> = places(series).map(|(x, value)| (x, value.to_owned())).collect();
    let (low, high) = (labels.first().map_or(0.0, |(x, _)| *x), labels.last().map_or(0.0, |(x, _)| *x));
    // Values that a factor separates have equal room.
    let factors = low > 0.0 && high >= 8.0 * low;
    let scale = if factors { Scale::Logarithmic } else { Scale::Linear };
    let across = Across::labelled(&spoken(across), scale, labels, |x| x.to_string());
    let lines = series.iter().map(line).collect();
    let chart = Lines::new(title, 230.0, across, Upward::linear(name, show), lines);
    Lines { room: Room::Half, ..chart }.html()
}

/// The figures of the lines as a table, folded.
fn figures(across: &str, series: &[Series<'_>]) -> String {
    let across = spoken(across);
    let heads: Vec<&str> =
        std::iter::once(across.as_str()).chain(series.iter().map(|one| one.name.as_str())).collect();
    let line = |(x, value): (f64, &str)| {
        let cell = |one: &Series<'_>| {
            let found = one.points.iter().find(|(have, _, _)| *have == x);
            found.map(|(_, _, wall)| time(wall.median)).unwrap_or_default()
        };
        std::iter::once(value.to_owned()).chain(series.iter().map(cell)).collect()
    };
    let lines: Vec<Vec<String>> = places(series).map(line).collect();
    format!(
        "<details class=\"figures\"><summary>Figures</summary>\n{}</details>\n",
        text_table(&heads, &lines)
    )
}

/// The values across, each once, in their order.
fn places<'a>(series: &[Series<'a>]) -> impl Iterator<Item = (f64, &'a str)> + use<'a> {
    let points = series.iter().flat_map(|one| &one.points);
    let mut values: Vec<(f64, &str)> = points.map(|(x, value, _)| (*x, *value)).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values.dedup_by(|a, b| a.0 == b.0);
    values.into_iter()
}

/// The value of a parameter as a number: a count or a size.
fn number(value: &str) -> Option<f64> {
    parse_count(value).or_else(|_| parse_bytes(value)).ok().map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::results::SideResult;
    use crate::measure::run::Run;
    use std::time::Duration;

    fn case(parameters: &[(&str, &str)], millis: u64) -> Case {
        let run = Run { wall: Duration::from_millis(millis), ..Run::default() };
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Case::new("load", parameters.collect(), vec![SideResult::new("sawmill", 0, vec![run])]).unwrap()
    }

    #[test]
    fn four_kinds_of_tables_are_four_lines_over_the_degree() {
        let mut cases = Vec::new();
        for table in ["logged", "unlogged"] {
            for keyed in ["yes", "no"] {
                for degree in ["1", "2", "4", "8"] {
                    cases.push(case(
                        &[("table_kind", table), ("keyed", keyed), ("connections", degree)],
                        1000,
                    ));
                }
            }
        }
        let cases: Vec<&Case> = cases.iter().collect();
        let lines = series("connections", &["keyed", "table_kind"], &cases);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["logged, with key", "logged, no key", "unlogged, with key", "unlogged, no key"]);
        assert!(lines.iter().all(|line| line.points.len() == 4));
        let sections = sections("load", &cases);
        assert_eq!(sections[0].title, "load: time over connections");
        assert!(sections[1].content.is_empty(), "names are lines, not a heat map");
    }

    #[test]
    fn many_lines_are_spread_over_charts() {
        let mut cases = Vec::new();
        for batch in 1..=5 {
            for unit in 1..=4 {
                for degree in ["1", "2"] {
                    let values = (batch.to_string(), unit.to_string());
                    cases.push(case(
                        &[("batch_rows", &values.0), ("unit_rows", &values.1), ("connections", degree)],
                        10,
                    ));
                }
            }
        }
        let cases: Vec<&Case> = cases.iter().collect();
        let groups = groups("connections", &["batch_rows", "unit_rows"], &cases);
        let titles: Vec<&str> = groups.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["batch rows 1", "batch rows 2", "batch rows 3", "batch rows 4", "batch rows 5"]);
    }
}
