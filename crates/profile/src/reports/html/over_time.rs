//! The sampler's observations over time: memory, processors in use by thread, and bytes per second.

use std::fmt::Write as _;

use super::trend::legend;
use crate::reports::svg::{Axis, Drawing, escape};
use crate::text::byte_sizes::format_byte_rate;
use crate::watch::timeline::{Points, Timeline};

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 76.0;
/// Memory is drawn in MiB, so that the axis has round numbers.
const MIB: f64 = 1_048_576.0;
/// Threads with their own names in the picture; the others form one series.
const MOST_THREADS: usize = 6;

/// A named line; a dashed one belongs to another process.
struct Line {
    name: String,
    points: Points,
    dashed: bool,
}

pub(super) fn draw(timeline: &Timeline) -> String {
    let mut text = String::new();
    let parts = [
        ("Memory (MiB)", lines("memory", &memory(timeline), |v| format!("{v}"))),
        ("Processors in use", processors(timeline)),
        ("Bytes per second", lines("bytes per second", &bytes(timeline), format_byte_rate)),
    ];
    for (title, picture) in parts.iter().filter(|(_, picture)| !picture.is_empty()) {
        // Writing to a String cannot fail.
        let _ = write!(text, "<h3>{title}</h3>\n{picture}");
    }
    for sentence in &timeline.missing {
        let _ = writeln!(text, "<p class=\"note\">Not sampled here: {}</p>", escape(sentence));
    }
    text
}

fn line(name: &str, points: Points) -> Line {
    Line { name: name.to_owned(), points, dashed: false }
}

fn memory(timeline: &Timeline) -> Vec<Line> {
    let own = timeline
        .samples
        .iter()
        .filter_map(|sample| Some((sample.at.as_secs_f64(), sample.own.resident? as f64 / MIB)));
    let mut all = vec![line("this process", own.collect())];
    for (place, name) in timeline.watched.iter().enumerate() {
        let points = timeline.samples.iter().filter_map(|sample| {
            let usage = (*sample.watched.get(place)?)?;
            Some((sample.at.as_secs_f64(), usage.resident? as f64 / MIB))
        });
        all.push(Line { name: name.clone(), points: points.collect(), dashed: true });
    }
    all
}

fn bytes(timeline: &Timeline) -> Vec<Line> {
    let mut all = vec![
        line("sent", timeline.rate(|sample| Some(sample.wire_sent as f64))),
        line("received", timeline.rate(|sample| Some(sample.wire_received as f64))),
        line("read from storage", timeline.rate(|sample| sample.own.read.map(|bytes| bytes as f64))),
        line("written to storage", timeline.rate(|sample| sample.own.written.map(|bytes| bytes as f64))),
    ];
    for (place, name) in timeline.watched.iter().enumerate() {
        let points =
            timeline.rate(|sample| sample.watched.get(place)?.as_ref()?.written.map(|bytes| bytes as f64));
        all.push(Line { name: format!("{name}: written"), points, dashed: true });
    }
    all.retain(|line| line.points.iter().any(|(_, value)| *value > 0.0));
    all
}

/// The time axis of all pictures of a timeline.
fn across(timeline: &Timeline) -> Axis {
    let at = |sample: Option<&crate::watch::timeline::Sample>| sample.map_or(0.0, |s| s.at.as_secs_f64());
    let (low, high) = (at(timeline.samples.first()), at(timeline.samples.last()));
    Axis { low, high: high.max(low + 1e-3), from: LEFT, to: WIDTH - 24.0 }
}

fn lines(label: &str, all: &[Line], show: impl Fn(f64) -> String) -> String {
    if all.iter().all(|line| line.points.len() < 2) {
        return String::new();
    }
    let points = || all.iter().flat_map(|line| &line.points);
    let times = points().map(|(at, _)| *at);
    let (low, high) = times.fold((f64::INFINITY, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    let x = Axis { low, high: high.max(low + 1e-3), from: LEFT, to: WIDTH - 24.0 };
    let y = Axis::over(points().map(|(_, value)| *value).chain([0.0]), HEIGHT - 26.0, 8.0);
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    drawing.upward_axis(&y, (x.from, x.to), show);
    drawing.across_axis(&x, (8.0, HEIGHT - 26.0), super::time);
    for (number, line) in all.iter().enumerate() {
        let places: Vec<_> = line.points.iter().map(|(at, v)| (x.at(*at), y.at(*v))).collect();
        let dashed = if line.dashed { " dashed" } else { "" };
        drawing.path(&format!("l{}{dashed}", number % 8), &places);
    }
    legend(all.iter().map(|line| line.name.as_str())) + &drawing.finish(&format!("{label} over time"))
}

/// The threads' shares, stacked, and other processes as lines.
fn processors(timeline: &Timeline) -> String {
    let totals = timeline.thread_totals();
    let series = |name: &str| timeline.threads.iter().position(|have| have == name);
    let shown: Vec<usize> = totals
        .iter()
        .filter(|(_, cpu)| *cpu > 0.0)
        .take(MOST_THREADS)
        .filter_map(|(name, _)| series(name))
        .collect();
    let whole = timeline.rate(|sample| Some(sample.own.cpu));
    if whole.len() < 2 {
        return String::new();
    }
    let mut layers: Vec<Line> = shown
        .iter()
        .map(|place| {
            let name = timeline.threads.get(*place).map(String::as_str).unwrap_or_default();
            line(name, timeline.thread_share(*place))
        })
        .collect();
    let rest = whole.iter().enumerate().map(|(place, (at, all))| {
        let known: f64 = layers.iter().filter_map(|layer| layer.points.get(place)).map(|(_, v)| v).sum();
        (*at, (all - known).max(0.0))
    });
    layers.push(Line { name: "other threads".into(), points: rest.collect(), dashed: false });
    let watched: Vec<Line> = timeline
        .watched
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let points = timeline.rate(|sample| Some(sample.watched.get(place)?.as_ref()?.cpu));
            Line { name: name.clone(), points, dashed: true }
        })
        .collect();
    let x = across(timeline);
    let mut sums = vec![0.0; whole.len()];
    let tops: Vec<Vec<f64>> = layers
        .iter()
        .map(|layer| {
            for (sum, (_, value)) in sums.iter_mut().zip(&layer.points) {
                *sum += value.max(0.0);
            }
            sums.clone()
        })
        .collect();
    let others = watched.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let y = Axis::over(sums.iter().copied().chain(others).chain([0.0]), HEIGHT - 26.0, 8.0);
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    drawing.upward_axis(&y, (x.from, x.to), |value| format!("{value:.1}"));
    drawing.across_axis(&x, (8.0, HEIGHT - 26.0), super::time);
    let mut below = vec![0.0; whole.len()];
    for (number, top) in tops.iter().enumerate() {
        let edge = |values: &[f64]| -> Vec<(f64, f64)> {
            whole.iter().zip(values).map(|((at, _), value)| (x.at(*at), y.at(*value))).collect()
        };
        let mut corners = edge(top);
        corners.extend(edge(&below).into_iter().rev());
        // The rest is grey; the threads use the colours before it.
        let colour = if number + 1 == tops.len() { 7 } else { number % 7 };
        drawing.area(&format!("f{colour} solid"), &corners);
        below.clone_from(top);
    }
    for (number, line) in watched.iter().enumerate() {
        let places: Vec<_> = line.points.iter().map(|(at, v)| (x.at(*at), y.at(*v))).collect();
        drawing.path(&format!("l{} dashed", (number + layers.len()) % 7), &places);
    }
    let mut names = String::from("<p class=\"legend\">");
    for (number, layer) in layers.iter().enumerate() {
        let colour = if number + 1 == layers.len() { 7 } else { number % 7 };
        let _ = write!(names, "<span><i class=\"b{colour}\"></i>{}</span>", escape(&layer.name));
    }
    for (number, line) in watched.iter().enumerate() {
        let colour = (number + layers.len()) % 7;
        let _ = write!(names, "<span><i class=\"b{colour}\"></i>{} (dashed)</span>", escape(&line.name));
    }
    names + "</p>\n" + &drawing.finish("processors in use over time")
}
