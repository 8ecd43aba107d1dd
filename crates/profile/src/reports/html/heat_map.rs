//! A heat map of two swept parameters: one across, one down, with the median time in each cell.

use super::box_plot::clipped;
use super::time;
use crate::measure::results::Case;
use crate::reports::svg::{Drawing, escape};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 150.0;
const TOP: f64 = 44.0;
const ROW: f64 = 44.0;

/// A parameter's name and its values, in sweep order.
type Parameter<'a> = (&'a str, Vec<&'a str>);

/// One cell for each pair of values; a stronger colour is slower.
pub(super) fn draw(cases: &[&Case], first: &Parameter<'_>, second: &Parameter<'_>) -> String {
    // The parameter with more values runs across.
    let (across, down) = if first.1.len() >= second.1.len() { (first, second) } else { (second, first) };
    let median = |column: &str, row: &str| -> Option<f64> {
        let is = |case: &Case, parameter: &str, value: &str| {
            case.parameters.get(parameter).is_some_and(|have| have == value)
        };
        cases
            .iter()
            .filter(|case| is(case, across.0, column) && is(case, down.0, row))
            .filter_map(|case| Some(case.sides.first()?.wall.as_ref()?.median))
            .min_by(f64::total_cmp)
    };
    let all = || down.1.iter().flat_map(|row| across.1.iter().filter_map(|column| median(column, row)));
    let (low, high) = all().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let cell = ((WIDTH - LEFT - 10.0) / across.1.len().max(1) as f64).min(150.0);
    let width = LEFT + cell * across.1.len() as f64 + 10.0;
    let height = TOP + ROW * down.1.len() as f64 + 8.0;
    let mut drawing = Drawing::new(width.max(600.0), height);
    let middle = LEFT + cell * across.1.len() as f64 / 2.0;
    drawing.text("tick", (middle, 14.0), "middle", across.0);
    drawing.text("tick", (4.0, TOP - 10.0), "start", down.0);
    for (number, column) in across.1.iter().enumerate() {
        let x = LEFT + cell * (number as f64 + 0.5);
        drawing.text("", (x, TOP - 10.0), "middle", &clipped(column, (cell / 7.0) as usize));
    }
    let base = across.1.first().zip(down.1.first()).and_then(|(column, row)| median(column, row));
    for (line, row) in down.1.iter().enumerate() {
        let y = TOP + ROW * line as f64;
        drawing.text("", (LEFT - 12.0, y + ROW / 2.0 + 4.0), "end", &clipped(row, 18));
        for (number, column) in across.1.iter().enumerate() {
            let x = LEFT + cell * number as f64;
            let centre = x + cell / 2.0;
            let Some(value) = median(column, row) else {
                drawing.text("tick", (centre, y + ROW / 2.0 + 4.0), "middle", "not run");
                continue;
            };
            // By logarithm: sweeps use factors.
            let span = (high / low).ln();
            let share = if span > 0.0 { (value / low).ln() / span } else { 0.0 };
            let opacity = 0.10 + 0.85 * share;
            let title = format!("{}={column} {}={row}: {}", across.0, down.0, time(value));
            drawing.raw(&format!(
                "<rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{cell:.1}\" height=\"{ROW}\" \
                 fill-opacity=\"{opacity:.2}\" rx=\"4\"><title>{}</title></rect>",
                escape(&title)
            ));
            let strong = if opacity > 0.55 { "strong" } else { "" };
            drawing.text(strong, (centre, y + 19.0), "middle", &time(value));
            if let Some(base) = base.filter(|_| number > 0 || line > 0) {
                let speed = format!("{:.2} x", base / value);
                drawing.text(&format!("small {strong}"), (centre, y + 34.0), "middle", &speed);
            }
        }
    }
    drawing.finish(&format!("median time over {} and {}", across.0, down.0))
}
