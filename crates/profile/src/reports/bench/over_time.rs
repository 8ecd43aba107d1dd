//! The sampler's observations over time: memory, processors in use by thread, and bytes per second, on one
//! time axis.

use std::fmt::Write as _;

use crate::reports::bench::time_tick;
use crate::reports::chart::lines::{Across, Line, Lines, Upward};
use crate::reports::chart::svg::escape;
use crate::text::byte_sizes::format_byte_rate;
use crate::watch::timeline::{Sample, Timeline};

/// Memory is drawn in MiB, so that the axis has round numbers.
const MIB: f64 = 1_048_576.0;
/// Threads with their own names in the picture; the others form one series.
const MAX_THREADS: usize = 5;
/// The colour of anything without a name.
const GREY: usize = 7;

pub(super) fn draw(timeline: &Timeline) -> String {
    let mut text = String::new();
    let parts = [
        chart(timeline, "Memory", "MiB", memory(timeline), |value| format!("{value}")),
        chart(timeline, "Processors in use", "processors", processors(timeline), |value| format!("{value}")),
        chart(timeline, "Bytes per second", "bytes per second", bytes(timeline), format_byte_rate),
    ];
    parts.iter().for_each(|part| text.push_str(part));
    for sentence in &timeline.missing {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "<p class=\"note\">Not sampled here: {}</p>", escape(sentence));
    }
    text
}

fn chart(timeline: &Timeline, title: &str, unit: &str, lines: Vec<Line>, show: fn(f64) -> String) -> String {
    if lines.iter().all(|line| line.points.len() < 2) {
        return String::new();
    }
    let at = |sample: Option<&Sample>| sample.map_or(0.0, |sample| sample.at.as_secs_f64());
    let ends = (at(timeline.samples.first()), at(timeline.samples.last()));
    let (name, across) = (format!("{title} over time"), Across::time(ends, time_tick));
    let chart = Lines::new(&name, 150.0, across, Upward::linear(unit, show), lines);
    format!("<h3>{title}</h3>\n{}", chart.html())
}

fn memory(timeline: &Timeline) -> Vec<Line> {
    let own = timeline
        .samples
        .iter()
        .filter_map(|sample| Some((sample.at.as_secs_f64(), sample.own.resident? as f64 / MIB)));
    let mut all = vec![Line::new("this process", own)];
    for (place, name) in timeline.watched.iter().enumerate() {
        let points = timeline.samples.iter().filter_map(|sample| {
            let usage = (*sample.watched.get(place)?)?;
            Some((sample.at.as_secs_f64(), usage.resident? as f64 / MIB))
        });
        all.push(Line::new(name, points));
    }
    all
}

fn bytes(timeline: &Timeline) -> Vec<Line> {
    let mut all = vec![
        Line::new("sent", timeline.rate(|sample| Some(sample.wire_sent as f64))),
        Line::new("received", timeline.rate(|sample| Some(sample.wire_received as f64))),
        Line::new("read from storage", timeline.rate(|sample| sample.own.read.map(|bytes| bytes as f64))),
        Line::new("written to storage", timeline.rate(|sample| sample.own.written.map(|bytes| bytes as f64))),
    ];
    for (place, name) in timeline.watched.iter().enumerate() {
        let points =
            timeline.rate(|sample| sample.watched.get(place)?.as_ref()?.written.map(|bytes| bytes as f64));
        all.push(Line::new(&format!("{name}: written"), points));
    }
    all.retain(|line| line.points.iter().any(|point| point.y > 0.0));
    all
}

/// The threads' shares, stacked, and other processes as lines.
fn processors(timeline: &Timeline) -> Vec<Line> {
    let whole = timeline.rate(|sample| Some(sample.own.cpu));
    let mut all: Vec<Line> = Vec::new();
    let totals = timeline.thread_totals();
    for (name, _) in totals.iter().filter(|(_, cpu)| *cpu > 0.0).take(MAX_THREADS) {
        let Some(place) = timeline.threads.iter().position(|have| have == name) else { continue };
        all.push(Line { stacked: true, ..Line::new(name, timeline.thread_share(place)) });
    }
    let rest = whole.iter().enumerate().map(|(place, (at, sum))| {
        let known: f64 = all.iter().filter_map(|line| line.points.get(place)).map(|point| point.y).sum();
        (*at, (sum - known).max(0.0))
    });
    let rest = Line::new(if all.is_empty() { "this process" } else { "other threads" }, rest);
    // Clocks of threads and of the process differ by some microseconds, which does not make a thread.
    if rest.points.iter().any(|point| point.y > 0.005) {
        all.push(Line { stacked: true, colour: Some(GREY), ..rest });
    }
    for (place, name) in timeline.watched.iter().enumerate() {
        let points = timeline.rate(|sample| Some(sample.watched.get(place)?.as_ref()?.cpu));
        all.push(Line { colour: Some(MAX_THREADS + place % 2), ..Line::new(name, points) });
    }
    all
}
