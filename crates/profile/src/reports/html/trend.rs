//! A trend over a series of results or of values of a parameter: the line is the median, the band
//! reaches from the fastest run to the slowest.

use std::fmt::Write as _;

use super::box_plot::clipped;
use super::time;
use crate::measure::compare::statistics::Statistics;
use crate::reports::svg::{Axis, Drawing, escape};

const LEFT: f64 = 76.0;
/// The minimum width of a label in pixels; with less room, only every second, third, ... label is written.
const LABEL: f64 = 80.0;

/// Width and height of a picture.
pub(super) type Size = (f64, f64);
/// One picture of the page's width.
pub(super) const WHOLE: Size = (1080.0, 290.0);
/// One of two pictures side by side.
pub(super) const HALF: Size = (530.0, 210.0);

/// One line for each named series; missing points leave a gap.
pub(super) fn draw(
    labels: &[String],
    series: &[(String, Vec<Option<Statistics>>)],
    title: &str,
    size: Size,
) -> String {
    let (right, bottom) = (size.0 - 24.0, size.1 - 34.0);
    let ends = series.iter().flat_map(|(_, points)| points.iter().flatten()).flat_map(|p| [p.min, p.max]);
    // Times are compared by their height, so the axis starts at zero.
    let axis = Axis::over(ends.chain([0.0]), bottom, 12.0);
    let step = (right - LEFT) / labels.len().max(1) as f64;
    let x = |place: usize| LEFT + step * (place as f64 + 0.5);
    let mut drawing = Drawing::new(size.0, size.1);
    drawing.upward_axis(&axis, (LEFT, right), time);
    let every = (LABEL / step.max(1.0)).ceil().max(1.0) as usize;
    let letters = (step * every as f64 / 7.0) as usize;
    for (place, label) in labels.iter().enumerate().step_by(every) {
        drawing.text("tick", (x(place), bottom + 18.0), "middle", &clipped(label, letters.max(3)));
    }
    for (number, (name, points)) in series.iter().enumerate() {
        let colour = number % 8;
        for run in stretches(points) {
            let above = run.iter().map(|(place, point)| (x(*place), axis.at(point.max)));
            let below = run.iter().rev().map(|(place, point)| (x(*place), axis.at(point.min)));
            drawing.area(&format!("f{colour} light"), &above.chain(below).collect::<Vec<_>>());
            let medians: Vec<_> = run.iter().map(|(place, p)| (x(*place), axis.at(p.median))).collect();
            drawing.path(&format!("l{colour}"), &medians);
        }
        for (place, point) in points.iter().enumerate() {
            let Some(point) = point else { continue };
            let at = (x(place), axis.at(point.median));
            let low_high = format!("from {} to {}", time(point.min), time(point.max));
            let label = labels.get(place).map(String::as_str).unwrap_or_default();
            let title = format!("{label}, {name}: {} ({low_high})", time(point.median));
            drawing.line(
                &format!("whisker l{colour}"),
                (at.0, axis.at(point.min)),
                (at.0, axis.at(point.max)),
            );
            drawing.dot(&format!("f{colour}"), at, 4.0, &title);
        }
    }
    drawing.line("axis", (LEFT, bottom), (right, bottom));
    legend(series.iter().map(|(name, _)| name.as_str())) + &drawing.finish(title)
}

/// The runs of consecutive points without a gap.
fn stretches(points: &[Option<Statistics>]) -> Vec<Vec<(usize, &Statistics)>> {
    let mut stretches: Vec<Vec<(usize, &Statistics)>> = vec![Vec::new()];
    for (place, point) in points.iter().enumerate() {
        match (point, stretches.last_mut()) {
            (Some(point), Some(stretch)) => stretch.push((place, point)),
            _ => stretches.push(Vec::new()),
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

/// The series' names with their colours.
pub(super) fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("<p class=\"legend\">");
    for (number, name) in names.enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "<span><i class=\"b{}\"></i>{}</span>", number % 8, escape(name));
    }
    text + "</p>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_point_leaves_a_gap() {
        let point = Statistics::of(&[1.0, 2.0]);
        let points = [point.clone(), None, point.clone(), point];
        let stretches = stretches(&points);
        let places: Vec<Vec<usize>> =
            stretches.iter().map(|stretch| stretch.iter().map(|(place, _)| *place).collect()).collect();
        assert_eq!(places, [vec![0], vec![2, 3]]);
    }
}
