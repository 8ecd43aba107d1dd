//! Box plots of the runs of each side of each case, on one axis of time. Names stand above their boxes, so
//! that none is cut.

use crate::measure::compare::statistics::Statistics;
use crate::measure::results::{Case, SideResult};
use crate::reports::bench::varied::{named_by, varied};
use crate::reports::bench::{time, time_tick};
use crate::reports::chart::axis::Axis;
use crate::reports::chart::frame::{Frame, Room, pictures};
use crate::reports::chart::letters;
use crate::reports::chart::line_style::{self, COLOURS};
use crate::reports::chart::plot::{self, FOOT, HEAD, TEXT};
use crate::reports::chart::svg::Drawing;
use crate::reports::distinct::distinct;

/// The height of a box with its surroundings, and of a line of its name.
const BOX: f64 = 30.0;
const LINE: f64 = 16.0;

/// A named box.
struct Row<'a> {
    name: String,
    colour: usize,
    side: &'a SideResult,
    wall: &'a Statistics,
}

/// One box for each side; sides with the same name have the same colour.
pub(super) fn draw(cases: &[&Case]) -> String {
    let measured = cases.iter().flat_map(|case| &case.sides).filter(|side| side.wall.is_some());
    let sides = distinct(measured.map(|side| side.name.as_str()));
    let rows = rows(cases, &sides);
    if rows.is_empty() {
        return String::new();
    }
    let figures: Vec<String> = rows.iter().map(|row| told(&row.name, row.wall)).collect();
    let legend = match sides.len() {
        0 | 1 => String::new(),
        _ => line_style::legend(
            sides.iter().enumerate().map(|(place, name)| (place, line_style::Key::Filled, *name)),
        ),
    };
    legend
        + &pictures(Room::Whole, "Box plots of the time of each run", &figures.join(". "), |frame| {
            plot(frame, &rows)
        })
}

fn rows<'a>(cases: &[&'a Case], sides: &[&str]) -> Vec<Row<'a>> {
    let varied = varied(cases);
    let parameters: Vec<&str> = varied.iter().map(|(name, _)| *name).collect();
    let mut rows = Vec::new();
    for case in cases {
        for side in &case.sides {
            let Some(wall) = &side.wall else { continue };
            let colour = sides.iter().position(|name| *name == side.name).unwrap_or(0);
            // The section's heading has the name of the case.
            let by = named_by(case, &parameters);
            let name = match by.is_empty() {
                true => side.name.clone(),
                false if case.sides.len() == 1 => by,
                false => format!("{by}: {}", side.name),
            };
            rows.push(Row { name, colour: colour % COLOURS, side, wall });
        }
    }
    rows
}

fn plot(frame: Frame, rows: &[Row<'_>]) -> Drawing {
    let names: Vec<Vec<String>> =
        rows.iter().map(|row| letters::wrapped(&row.name, TEXT, frame.width - 8.0)).collect();
    let heights: Vec<f64> = names.iter().map(|lines| LINE * lines.len() as f64 + BOX).collect();
    let bottom = HEAD + heights.iter().sum::<f64>();
    let mut drawing = Drawing::new(frame.width, bottom + FOOT);
    let axis = Axis::over(rows.iter().flat_map(|row| [row.wall.min, row.wall.max]), 14.0, frame.width - 14.0);
    let ticks = plot::ticks(&axis, (frame.width / 90.0) as usize, time_tick);
    drawing.text("tick", (1.0, HEAD - 8.0), "start", &plot::named("time", &axis));
    plot::across(&mut drawing, &axis, (HEAD, bottom), &ticks);
    let mut y = HEAD;
    for ((row, lines), height) in rows.iter().zip(&names).zip(&heights) {
        for (number, line) in lines.iter().enumerate() {
            drawing.text("", (2.0, y + 12.0 + LINE * number as f64), "start", line);
        }
        draw_box(&mut drawing, &axis, y + height - BOX / 2.0 - 2.0, row);
        y += height;
    }
    drawing
}

fn told(name: &str, wall: &Statistics) -> String {
    format!(
        "{name}: median {}, from {} to {}, {} runs",
        time(wall.median),
        time(wall.min),
        time(wall.max),
        wall.count
    )
}

fn draw_box(drawing: &mut Drawing, axis: &Axis, y: f64, row: &Row<'_>) {
    let Row { name, colour, side, wall } = row;
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
    let (from, to) = (axis.at(wall.lower_quartile), axis.at(wall.upper_quartile));
    drawing.rect(
        &format!("f{colour} light l{colour}"),
        (from, y - 9.0),
        (to - from, 18.0),
        &told(name, wall),
    );
    drawing.line("median", (axis.at(wall.median), y - 9.0), (axis.at(wall.median), y + 9.0));
    if let Some(interval) = wall.interval {
        let (from, to) = (axis.at(interval.low), axis.at(interval.high));
        let title = "95 % interval of the median";
        drawing.rect(&format!("f{colour}"), (from, y + 11.0), (to - from, 2.5), title);
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
