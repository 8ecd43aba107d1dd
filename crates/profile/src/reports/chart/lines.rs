//! A chart of lines: over a parameter, over time, or over shares.

use crate::reports::chart::axis::{Axis, Scale};
use crate::reports::chart::frame::{Frame, Room, pictures};
use crate::reports::chart::line_style::{COLOURS, Key, legend, mark};
use crate::reports::chart::plot::{self, FOOT, HEAD, TICK, Tick};
use crate::reports::chart::svg::{Drawing, escape};

/// A chart of lines.
#[derive(Clone, Debug)]
pub struct Lines {
    /// What the chart shows, for readers who do not see it.
    pub title: String,
    /// How wide it is.
    pub room: Room,
    /// The height of its area in pixels.
    pub height: f64,
    /// The horizontal axis.
    pub across: Across,
    /// The vertical axis.
    pub upward: Upward,
    /// The lines. Those without points are in neither the chart nor its legend.
    pub lines: Vec<Line>,
    /// What happened on the way, drawn as vertical lines with numbers.
    pub events: Vec<Event>,
}

/// A horizontal axis.
#[derive(Clone, Debug)]
pub struct Across {
    /// Its name: a parameter, or empty for time.
    pub name: String,
    /// How values are spread over it.
    pub scale: Scale,
    /// Its ends, if several charts share them; otherwise the ends of the points.
    pub ends: Option<(f64, f64)>,
    /// Labels at given values instead of round ones.
    pub labels: Option<Vec<(f64, String)>>,
    /// Writes a value.
    pub show: fn(f64) -> String,
}

/// A vertical axis.
#[derive(Clone, Debug)]
pub struct Upward {
    /// Its name.
    pub name: String,
    /// How values are spread over it. A linear axis includes zero.
    pub scale: Scale,
    /// Writes a value.
    pub show: fn(f64) -> String,
}

/// A named line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right. A value that is not a number leaves a gap.
    pub points: Vec<Point>,
    /// Whether it is an area on top of the stacked lines before it. Stacked lines have the same places, and
    /// come first.
    pub stacked: bool,
    /// The number of its colour, if it differs from its place.
    pub colour: Option<usize>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The least and the greatest value behind it, drawn as a band, or as a whisker where there are many lines.
    pub band: Option<(f64, f64)>,
}

/// Something that happened at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// When.
    pub at: f64,
    /// Until when, if it lasted.
    pub until: Option<f64>,
    /// What.
    pub name: String,
}

/// With more lines than these the spread is drawn as whiskers, because bands would cover each other.
const MAX_BANDS: usize = 2;

/// A longer list of events is folded.
const MAX_EVENTS: usize = 12;

/// With more points than these a line has no marks.
const MAX_MARKS: usize = 40;

impl Across {
    /// An axis of time between two ends.
    pub fn time(ends: (f64, f64), show: fn(f64) -> String) -> Self {
        Self { name: String::new(), scale: Scale::Linear, ends: Some(ends), labels: None, show }
    }

    /// An axis of a parameter, with labels at its values.
    pub fn labelled(name: &str, scale: Scale, labels: Vec<(f64, String)>, show: fn(f64) -> String) -> Self {
        Self { name: name.to_owned(), scale, ends: None, labels: Some(labels), show }
    }
}

impl Upward {
    /// An axis that includes zero.
    pub fn linear(name: &str, show: fn(f64) -> String) -> Self {
        Self { name: name.to_owned(), scale: Scale::Linear, show }
    }

    /// An axis on which equal factors have equal room.
    pub fn logarithmic(name: &str, show: fn(f64) -> String) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(name, show) }
    }
}

impl Line {
    /// A line through places and values.
    pub fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, band: None }).collect();
        Self { name: name.to_owned(), points, ..Self::default() }
    }

    fn is_there(&self) -> bool {
        self.points.iter().any(|point| point.y.is_finite())
    }

    /// The stretches without a gap.
    fn stretches(&self) -> impl Iterator<Item = &[Point]> {
        self.points.split(|point| !point.y.is_finite()).filter(|stretch| !stretch.is_empty())
    }
}

impl Lines {
    /// A chart as wide as the page, without events.
    pub fn new(title: &str, height: f64, across: Across, upward: Upward, lines: Vec<Line>) -> Self {
        let title = title.to_owned();
        Self { title, room: Room::Whole, height, across, upward, lines, events: Vec::new() }
    }

    /// The legend and the chart as HTML; empty without points.
    pub fn html(&self) -> String {
        let there: Vec<(usize, &Line)> =
            self.lines.iter().enumerate().filter(|(_, line)| line.is_there()).collect();
        if there.is_empty() {
            return String::new();
        }
        let entries =
            there.iter().map(|(place, line)| (self.colour(*place), self.key(line), line.name.as_str()));
        // One line is named by its heading.
        let legend = if self.lines.len() > 1 { legend(entries) } else { String::new() };
        let chart = pictures(self.room, &self.title, &self.figures(), |frame| self.draw(frame));
        legend + &chart
    }

    /// The numbered list of the events: once for all charts that share them.
    pub fn event_list(&self) -> String {
        if self.events.is_empty() {
            return String::new();
        }
        let item = |event: &Event| {
            let until = event.until.map(|until| format!(" to {}", (self.across.show)(until)));
            let when = (self.across.show)(event.at) + &until.unwrap_or_default();
            format!("<li>{when}: {}</li>", escape(&event.name))
        };
        let list =
            format!("<ol class=\"events\">{}</ol>\n", self.events.iter().map(item).collect::<String>());
        match self.events.len() {
            0..=MAX_EVENTS => list,
            count => format!("<details><summary>{count} events</summary>\n{list}</details>\n"),
        }
    }

    fn colour(&self, place: usize) -> usize {
        self.lines.get(place).and_then(|line| line.colour).unwrap_or(place) % COLOURS
    }

    fn key(&self, line: &Line) -> Key {
        match line.stacked {
            true => Key::Filled,
            false if self.marked() => Key::Marked,
            false => Key::Dashed,
        }
    }

    /// Whether there are so few points that each has a mark.
    fn marked(&self) -> bool {
        self.lines.iter().all(|line| line.points.len() <= MAX_MARKS && !line.stacked)
    }

    /// The stacked lines' upper edges, and the other lines' values.
    fn tops(&self) -> Vec<Vec<f64>> {
        let mut sums: Vec<f64> = Vec::new();
        let mut tops = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            if !line.stacked {
                tops.push(line.points.iter().map(|point| point.y).collect());
                continue;
            }
            sums.resize(sums.len().max(line.points.len()), 0.0);
            for (sum, point) in sums.iter_mut().zip(&line.points) {
                *sum += if point.y.is_finite() { point.y.max(0.0) } else { 0.0 };
            }
            tops.push(sums.clone());
        }
        tops
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let named = !self.across.name.is_empty();
        let bottom = HEAD + self.height;
        let mut drawing = Drawing::new(frame.width, bottom + FOOT + if named { 16.0 } else { 0.0 });
        let tops = self.tops();
        let bands = self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.band);
        let values = tops.iter().flatten().copied().chain(bands.flat_map(|(low, high)| [low, high]));
        let y = match self.upward.scale {
            Scale::Linear => Axis::over(values.chain([0.0]), bottom, HEAD),
            Scale::Logarithmic => Axis::logarithmic(values, bottom, HEAD),
        };
        let upward = plot::ticks(&y, (self.height / 42.0) as usize, self.upward.show);
        let (left, right) = (plot::room_for(&upward), frame.width - 12.0);
        let x = self.across_axis(left, right);
        plot::upward(&mut drawing, &y, (left, right), &upward, &self.upward.name);
        plot::across(&mut drawing, &x, (HEAD, bottom), &self.across_ticks(&x, frame));
        if named {
            let name = match x.scale {
                Scale::Logarithmic => plot::named(&self.across.name, &x),
                Scale::Linear => self.across.name.clone(),
            };
            drawing.label("tick", ((left + right) / 2.0, bottom + FOOT + 11.0), TICK, &name);
        }
        drawing.line("axis", (left, bottom), (right, bottom));
        self.draw_events(&mut drawing, &x, (HEAD, bottom));
        self.draw_stacked(&mut drawing, &x, &y, &tops);
        self.draw_lines(&mut drawing, &x, &y);
        drawing
    }

    fn across_axis(&self, left: f64, right: f64) -> Axis {
        let places = || self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.x));
        let inset = if self.marked() { 10.0 } else { 0.0 };
        match (self.across.scale, self.across.ends) {
            (Scale::Logarithmic, _) => Axis::logarithmic(places(), left + inset, right - inset),
            (Scale::Linear, Some((low, high))) => Axis::between(low, high, left, right),
            (Scale::Linear, None) => {
                let (low, high) =
                    places().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
                Axis::between(low, high, left + inset, right - inset)
            }
        }
    }

    fn across_ticks(&self, x: &Axis, frame: Frame) -> Vec<Tick> {
        match &self.across.labels {
            Some(labels) => labels.clone(),
            None => plot::ticks(x, (frame.width / 100.0) as usize, self.across.show),
        }
    }

    fn draw_stacked(&self, drawing: &mut Drawing, x: &Axis, y: &Axis, tops: &[Vec<f64>]) {
        let mut below: Option<&Vec<f64>> = None;
        for (place, (line, top)) in
            self.lines.iter().zip(tops).enumerate().filter(|(_, (line, _))| line.stacked)
        {
            let edge = |values: Option<&Vec<f64>>| -> Vec<(f64, f64)> {
                let value = |n: usize| values.and_then(|values| values.get(n)).copied().unwrap_or(0.0);
                line.points.iter().enumerate().map(|(n, point)| (x.at(point.x), y.at(value(n)))).collect()
            };
            let mut corners = edge(Some(top));
            corners.extend(edge(below).into_iter().rev());
            drawing.area(&format!("f{} solid", self.colour(place)), &corners);
            below = Some(top);
        }
    }

    fn draw_lines(&self, drawing: &mut Drawing, x: &Axis, y: &Axis) {
        let marked = self.marked();
        for (place, line) in self.lines.iter().enumerate().filter(|(_, line)| !line.stacked) {
            let colour = self.colour(place);
            for stretch in line.stretches() {
                self.draw_spread(drawing, x, y, stretch, colour);
                let places: Vec<_> = stretch.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
                let dashes = if marked { String::new() } else { format!(" p{colour}") };
                drawing.path(&format!("l{colour}{dashes}"), &places);
            }
            for point in line.points.iter().filter(|point| marked && point.y.is_finite()) {
                mark(drawing, colour, (x.at(point.x), y.at(point.y)), &self.told(line, point));
            }
        }
    }

    /// The values behind the points: a band, or whiskers.
    fn draw_spread(&self, drawing: &mut Drawing, x: &Axis, y: &Axis, points: &[Point], colour: usize) {
        let ends = points.iter().filter_map(|point| {
            let (low, high) = point.band?;
            Some((x.at(point.x), y.at(low), y.at(high)))
        });
        let ends: Vec<(f64, f64, f64)> = ends.collect();
        if self.lines.len() > MAX_BANDS || ends.len() == 1 {
            for (x, low, high) in ends {
                drawing.line(&format!("whisker l{colour}"), (x, low), (x, high));
            }
            return;
        }
        let above = ends.iter().map(|(x, _, high)| (*x, *high));
        let below = ends.iter().rev().map(|(x, low, _)| (*x, *low));
        let corners: Vec<_> = above.chain(below).collect();
        if !corners.is_empty() {
            drawing.area(&format!("f{colour} light"), &corners);
        }
    }

    fn draw_events(&self, drawing: &mut Drawing, x: &Axis, (top, bottom): (f64, f64)) {
        let mut taken = f64::NEG_INFINITY;
        for (number, event) in self.events.iter().enumerate() {
            let at = x.at(event.at);
            if let Some(until) = event.until {
                drawing.rect("during", (at, top), (x.at(until) - at, bottom - top), &event.name);
            }
            drawing.line("event", (at, top), (at, bottom));
            // Numbers that would touch the one before are left out; the list below has all of them.
            if at > taken + 16.0 {
                drawing.label("event-number", (at, top - 4.0), TICK, &(number + 1).to_string());
                taken = at;
            }
        }
    }

    /// A point in words.
    fn told(&self, line: &Line, point: &Point) -> String {
        let band = point.band.map(|(low, high)| {
            format!(" (from {} to {})", (self.upward.show)(low), (self.upward.show)(high))
        });
        let (value, band) = ((self.upward.show)(point.y), band.unwrap_or_default());
        format!("{}, {}: {value}{band}", line.name, self.place(point.x))
    }

    /// A place on the horizontal axis in words.
    fn place(&self, x: f64) -> String {
        let labels = self.across.labels.iter().flatten();
        let label = labels.into_iter().find(|(at, _)| *at == x).map(|(_, label)| label.clone());
        let value = label.unwrap_or_else(|| (self.across.show)(x));
        format!("{} {value}", self.across.name).trim_start().to_owned()
    }

    /// The ends and extremes of each line in words.
    fn figures(&self) -> String {
        let show = self.upward.show;
        let line = |line: &Line| {
            let points: Vec<&Point> = line.points.iter().filter(|point| point.y.is_finite()).collect();
            let (first, last) = (points.first()?, points.last()?);
            let highest = points.iter().max_by(|a, b| a.y.total_cmp(&b.y))?;
            let lowest = points.iter().min_by(|a, b| a.y.total_cmp(&b.y))?;
            Some(format!(
                "{}: {} at {}, {} at {}; least {} at {}, most {} at {}.",
                line.name,
                show(first.y),
                self.place(first.x),
                show(last.y),
                self.place(last.x),
                show(lowest.y),
                self.place(lowest.x),
                show(highest.y),
                self.place(highest.x),
            ))
        };
        self.lines.iter().filter_map(line).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> Lines {
        let show = |value: f64| format!("{value}");
        let across = Across { name: "degree".into(), scale: Scale::Linear, ends: None, labels: None, show };
        let upward = Upward { name: "time".into(), scale: Scale::Linear, show };
        Lines {
            title: "a chart".into(),
            room: Room::Whole,
            height: 200.0,
            across,
            upward,
            lines,
            events: vec![],
        }
    }

    #[test]
    fn a_missing_point_leaves_a_gap() {
        let line = Line::new("a", [(1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 1.5)]);
        let lengths: Vec<usize> = line.stretches().map(<[Point]>::len).collect();
        assert_eq!(lengths, [1, 2]);
        assert!(!chart(vec![line]).html().contains("NaN"));
    }

    #[test]
    fn the_legend_has_only_lines_with_points_and_the_figures_are_words() {
        let html = chart(vec![
            Line::new("there", [(1.0, 2.0), (2.0, 3.0)]),
            Line::new("absent", []),
            Line::new("gone", [(1.0, f64::NAN)]),
        ])
        .html();
        assert!(html.contains(">there</li>") || html.contains("there</li>"));
        assert!(!html.contains("absent") && !html.contains("gone</li>"));
        assert!(
            html.contains("there: 2 at degree 1, 3 at degree 2; least 2 at degree 1, most 3 at degree 2.")
        );
        assert!(chart(vec![Line::new("absent", [])]).html().is_empty());
    }

    #[test]
    fn stacked_areas_lie_on_each_other() {
        let stacked = |name: &str| Line { stacked: true, ..Line::new(name, [(0.0, 1.0), (1.0, 2.0)]) };
        assert_eq!(chart(vec![stacked("a"), stacked("b")]).tops(), [[1.0, 2.0], [2.0, 4.0]]);
    }
}
