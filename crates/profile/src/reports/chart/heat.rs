//! A heat map over time: how many values fell into each range in each moment.

use std::fmt::Write as _;

use crate::reports::chart::axis::Axis;
use crate::reports::chart::frame::{Frame, Room, pictures};
use crate::reports::chart::lines::Event;
use crate::reports::chart::plot::{self, FOOT, HEAD};
use crate::reports::chart::svg::Drawing;

/// A heat map of counts over time, with a logarithmic vertical axis.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Its description, for readers who do not see it.
    pub title: String,
    /// The name of the vertical axis.
    pub name: String,
    /// The ends of the time axis, in the unit of the columns.
    pub ends: (f64, f64),
    /// The columns: when each begins and ends, and its counts by value. Values are positive.
    pub columns: Vec<HeatColumn>,
    /// Writes a value of the vertical axis.
    pub show: fn(f64) -> String,
    /// Writes a time.
    pub show_time: fn(f64) -> String,
    /// What happened on the way.
    pub events: Vec<Event>,
}

/// The counts of one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatColumn {
    /// When it begins.
    pub from: f64,
    /// When it ends.
    pub until: f64,
    /// Values with their counts.
    pub counts: Vec<(f64, u64)>,
}

/// Rows of cells, and cells across in a wide and in a narrow picture.
const ROWS: usize = 36;
const COLUMNS: (usize, usize) = (160, 70);
const HEIGHT: f64 = 220.0;
/// Shades of a cell; each is for a share of the logarithm of the largest count.
const SHADES: usize = 6;

impl Heat {
    /// The heat map as HTML; empty without counts.
    pub fn html(&self) -> String {
        let total: u64 = self.columns.iter().flat_map(|column| &column.counts).map(|(_, count)| count).sum();
        if total == 0 {
            return String::new();
        }
        let figures = format!(
            "{} values in {} stretches of time; a darker cell has more of them.",
            crate::format_grouped(total),
            self.columns.len()
        );
        pictures(Room::Whole, &self.title, &figures, |frame| self.draw(frame))
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let bottom = HEAD + HEIGHT;
        let mut drawing = Drawing::new(frame.width, bottom + FOOT);
        let values = self.columns.iter().flat_map(|column| &column.counts).map(|(value, _)| *value);
        let y = Axis::logarithmic(values, bottom, HEAD);
        let upward = plot::ticks(&y, 4, self.show);
        let (left, right) = (plot::room_for(&upward), frame.width - 12.0);
        let x = Axis::between(self.ends.0, self.ends.1, left, right);
        let across = if frame.narrow { COLUMNS.1 } else { COLUMNS.0 };
        let cells = self.cells(&y, across);
        let largest = cells.iter().flatten().copied().max().unwrap_or(1).max(1);
        let (width, height) = ((right - left) / across as f64, HEIGHT / ROWS as f64);
        let mut shades: Vec<String> = vec![String::new(); SHADES];
        for (column, rows) in cells.iter().enumerate() {
            for (row, count) in rows.iter().enumerate().filter(|(_, count)| **count > 0) {
                let share = (*count as f64).ln_1p() / (largest as f64).ln_1p();
                let shade = ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES) - 1;
                let (from, top) = (left + width * column as f64, bottom - height * (row + 1) as f64);
                if let Some(shade) = shades.get_mut(shade) {
                    // Writing to a String cannot fail.
                    let _ = write!(shade, "M{from:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z");
                }
            }
        }
        for (number, cells) in shades.iter().enumerate().filter(|(_, cells)| !cells.is_empty()) {
            let opacity = (number + 1) as f64 / SHADES as f64;
            drawing.raw(&format!("<path class=\"heat\" fill-opacity=\"{opacity:.2}\" d=\"{cells}\"/>"));
        }
        plot::upward(&mut drawing, &y, (left, right), &upward, &self.name);
        let ticks = plot::ticks(&x, (frame.width / 100.0) as usize, self.show_time);
        plot::across(&mut drawing, &x, (HEAD, bottom), &ticks);
        drawing.line("axis", (left, bottom), (right, bottom));
        for event in &self.events {
            drawing.line("event", (x.at(event.at), HEAD), (x.at(event.at), bottom));
        }
        drawing
    }

    /// Counts by column and row, from the bottom.
    fn cells(&self, y: &Axis, across: usize) -> Vec<Vec<u64>> {
        let mut cells = vec![vec![0u64; ROWS]; across];
        let span = (self.ends.1 - self.ends.0).max(f64::MIN_POSITIVE);
        let place = |time: f64| (time - self.ends.0) / span * across as f64;
        for column in &self.columns {
            // A cell may cover several columns, and a column several cells.
            let first = (place(column.from) + 1e-6).floor().max(0.0) as usize;
            let last = ((place(column.until) - 1e-6).ceil().max(0.0) as usize)
                .clamp(first + 1, across.max(first + 1));
            for cell in cells.iter_mut().take(last).skip(first.min(across - 1)) {
                for (value, count) in &column.counts {
                    let share = (y.at(*value) - y.from) / (y.to - y.from);
                    let row = ((share * ROWS as f64) as usize).min(ROWS - 1);
                    if let Some(sum) = cell.get_mut(row) {
                        *sum += count;
                    }
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_in_the_cell_of_its_time_and_value() {
        let column = |from: f64, value: f64| HeatColumn { from, until: from + 1.0, counts: vec![(value, 5)] };
        let heat = Heat {
            title: "latency".into(),
            name: "latency".into(),
            ends: (0.0, 2.0),
            columns: vec![column(0.0, 0.001), column(1.0, 1.0)],
            show: |value| format!("{value}"),
            show_time: |value| format!("{value}"),
            events: Vec::new(),
        };
        let y = Axis::logarithmic([0.001, 1.0], 220.0, 0.0);
        let cells = heat.cells(&y, 2);
        assert_eq!((cells[0][0], cells[1][ROWS - 1]), (5, 5));
        assert_eq!(cells.iter().flatten().sum::<u64>(), 10);
        assert!(heat.html().contains("10 values"));
    }
}
