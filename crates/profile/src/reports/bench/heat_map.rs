//! A heat map of two varied parameters as a table: one across, one down, with the median time in each cell.

use std::fmt::Write as _;

use crate::measure::results::Case;
use crate::reports::bench::time;
use crate::reports::bench::varied::{called, spoken};
use crate::reports::chart::svg::escape;

/// A parameter's name and its values, in the order of the sweep.
type Parameter<'a> = (&'a str, Vec<&'a str>);

/// One cell for each pair of values; a stronger colour is slower.
pub(super) fn draw(cases: &[&Case], first: &Parameter<'_>, second: &Parameter<'_>) -> String {
    // The parameter with more values runs down, where a page has room.
    let (across, down) = if first.1.len() < second.1.len() { (first, second) } else { (second, first) };
    let median = |column: &str, row: &str| fastest(cases, (across.0, column), (down.0, row));
    let all = || down.1.iter().flat_map(|row| across.1.iter().filter_map(|column| median(column, row)));
    let (low, high) = all().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let base = across.1.first().zip(down.1.first()).and_then(|(column, row)| median(column, row));
    let title = format!("median time by {} and {}", spoken(across.0), spoken(down.0));
    let mut text = format!(
        "<div class=\"scroll\"><table class=\"map\" aria-label=\"{}\">\n<thead><tr><td></td>",
        escape(&title)
    );
    for column in &across.1 {
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(&called(across.0, column)));
    }
    text.push_str("</tr></thead><tbody>\n");
    for row in &down.1 {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escape(&called(down.0, row)));
        for column in &across.1 {
            let Some(value) = median(column, row) else {
                text.push_str("<td>not run</td>");
                continue;
            };
            // By logarithm: sweeps use factors.
            let span = (high / low).ln();
            let share = if span > 0.0 { (value / low).ln() / span } else { 0.0 };
            let speed = base.map(|base| format!("<small>{:.2} x</small>", base / value)).unwrap_or_default();
            let _ =
                write!(text, "<td style=\"--share:{:.0}%\">{}{speed}</td>", 6.0 + 34.0 * share, time(value));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

/// The fastest median of our side among the cases with two values.
fn fastest(cases: &[&Case], one: (&str, &str), other: (&str, &str)) -> Option<f64> {
    let is = |case: &Case, (parameter, value): (&str, &str)| {
        case.parameters.get(parameter).is_some_and(|have| have == value)
    };
    let there = cases.iter().filter(|case| is(case, one) && is(case, other));
    there.filter_map(|case| Some(case.sides.first()?.wall.as_ref()?.median)).min_by(f64::total_cmp)
}
