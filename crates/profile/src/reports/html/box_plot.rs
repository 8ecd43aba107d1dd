//! Box plots of the runs of each side of each case, on one axis of time.

use super::time;
use crate::measure::compare::statistics::Statistics;
use crate::measure::results::{Case, SideResult};
use crate::reports::svg::{Axis, Drawing};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 300.0;
const ROW: f64 = 34.0;

/// One line per side; sides with the same name have the same colour.
pub(super) fn draw(cases: &[&Case]) -> String {
    let sides: Vec<(&Case, &SideResult, &Statistics)> = cases
        .iter()
        .flat_map(|case| case.sides.iter().filter_map(|side| Some((*case, side, side.wall.as_ref()?))))
        .collect();
    if sides.is_empty() {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let height = ROW * sides.len() as f64 + 30.0;
    let ends = sides.iter().flat_map(|(_, _, wall)| [wall.min, wall.max]);
    let axis = Axis::over(ends, LEFT, WIDTH - 20.0);
    let mut drawing = Drawing::new(WIDTH, height);
    drawing.across_axis(&axis, (4.0, height - 24.0), time);
    let mut last_title = String::new();
    for (row, (case, side, wall)) in sides.iter().enumerate() {
        let colour = names.iter().position(|name| *name == side.name).unwrap_or_else(|| {
            names.push(&side.name);
            names.len() - 1
        }) % 8;
        let y = ROW * row as f64 + ROW / 2.0;
        // The picture's heading shows the name of the case.
        let title = case.parameters_text();
        if title != last_title {
            if row > 0 {
                drawing.line("grid", (0.0, y - ROW / 2.0), (WIDTH, y - ROW / 2.0));
            }
            drawing.text("", (4.0, y + 4.0), "start", &clipped(&title, 29));
            last_title = title;
        }
        drawing.text("tick", (LEFT - 12.0, y + 4.0), "end", &clipped(&side.name, 18));
        draw_box(&mut drawing, &axis, y, colour, side, wall);
    }
    drawing.finish("box plots of the time of each run")
}

fn draw_box(drawing: &mut Drawing, axis: &Axis, y: f64, colour: usize, side: &SideResult, wall: &Statistics) {
    let walls = side.walls();
    let within = |place: &usize| !wall.outliers.contains(place);
    let inside = walls.iter().enumerate().filter(|(place, _)| within(place)).map(|(_, value)| *value);
    let (low, high) = inside.fold((wall.median, wall.median), |(low, high), v| (low.min(v), high.max(v)));
    let line = format!("whisker l{colour}");
    drawing.line(&line, (axis.at(low), y), (axis.at(wall.lower_quartile), y));
    drawing.line(&line, (axis.at(wall.upper_quartile), y), (axis.at(high), y));
    for end in [low, high] {
        drawing.line(&line, (axis.at(end), y - 5.0), (axis.at(end), y + 5.0));
    }
    let title = format!(
        "{}: median {}, from {} to {}, {} runs",
        side.name,
        time(wall.median),
        time(wall.min),
        time(wall.max),
        wall.count
    );
    let (from, to) = (axis.at(wall.lower_quartile), axis.at(wall.upper_quartile));
    drawing.rect(&format!("f{colour} light l{colour}"), (from, y - 9.0), (to - from, 18.0), &title);
    drawing.line("median", (axis.at(wall.median), y - 9.0), (axis.at(wall.median), y + 9.0));
    if let Some(interval) = wall.interval {
        let (from, to) = (axis.at(interval.low), axis.at(interval.high));
        drawing.rect(
            &format!("f{colour}"),
            (from, y + 11.0),
            (to - from, 2.5),
            "95 % interval of the median",
        );
    }
    for (place, value) in walls.iter().enumerate() {
        let title = format!("run {}: {}", place + 1, time(*value));
        let at = (axis.at(*value), y);
        if within(&place) {
            drawing.dot(&format!("f{colour}"), at, 2.0, &title);
        } else {
            drawing.dot(&format!("outlier l{colour}"), at, 3.5, &title);
        }
    }
}

/// A text truncated to this many letters.
pub(super) fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
