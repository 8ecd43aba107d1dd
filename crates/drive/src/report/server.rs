//! The server's own figures, on the time axis of the latencies.

use std::collections::BTreeMap;

use sawmill_profile::{Line, Scale, Section, Upward, format_byte_rate};

use crate::report::over_time::{chart, line};
use crate::result::file::DriveResult;
use crate::result::second::{Second, ServerSample};

/// Memory is drawn in MiB, so that the axis has round numbers.
const MIB: f64 = 1_048_576.0;
/// Maximum wait events with a separate area; the others share one.
const MAX_WAITS: usize = 6;

pub(super) fn section(result: &DriveResult) -> Section {
    let plain = |value: f64| format!("{value}");
    let mut content = String::new();
    let mut add = |title: &str, unit: &str, show: fn(f64) -> String, lines: Vec<Line>| {
        let upward = Upward { name: unit.to_owned(), scale: Scale::Linear, show };
        let chart = chart(result, &format!("{title} over time"), upward, lines);
        let chart = sawmill_profile::Lines { height: 120.0, ..chart }.html();
        if !chart.is_empty() {
            content.push_str(&format!("<h3>{title}</h3>\n{chart}"));
        }
    };
    let of = |pick: fn(&ServerSample, f64) -> Option<f64>| {
        vec![line(result, "server", move |second| pick(second.server.as_ref()?, second.length.max(1e-3)))]
    };
    add("Processors", "processors", plain, of(|server, _| server.processors));
    add("Memory", "MiB", plain, of(|server, _| Some(server.memory? as f64 / MIB)));
    add(
        "Write-ahead log",
        "bytes a second",
        format_byte_rate,
        of(|server, length| Some(server.wal? as f64 / length)),
    );
    let checkpoints = result.seconds.iter().any(|second| checkpoints(second) > 0.0);
    if checkpoints {
        let lines = vec![line(result, "checkpoints", |second| Some(self::checkpoints(second)))];
        add("Checkpoints", "completed in the second", plain, lines);
    }
    add("Active sessions", "sessions", plain, of(|server, _| Some(server.active? as f64)));
    add("Waits", "waiting sessions", plain, waits(result));
    let note = "Sampled once a second, on the same time axis as the latency above.";
    let note = if content.is_empty() { "" } else { note };
    if content.is_empty() && !result.seconds.is_empty() {
        content.push_str("<p class=\"note\">The server reported nothing of itself.</p>\n");
    }
    Section::new("The server meanwhile", note, content)
}

fn checkpoints(second: &Second) -> f64 {
    second.server.as_ref().and_then(|server| server.checkpoints).unwrap_or(0) as f64
}

/// Waiting sessions by event, stacked.
fn waits(result: &DriveResult) -> Vec<Line> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    let samples = result.seconds.iter().filter_map(|second| second.server.as_ref());
    for (event, count) in samples.flat_map(|server| &server.waits) {
        *totals.entry(event).or_default() += count;
    }
    let mut events: Vec<(&str, u64)> = totals.into_iter().collect();
    events.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (shown, rest) = events.split_at(events.len().min(MAX_WAITS));
    let count = |second: &Second, event: &str| {
        let waits = second.server.as_ref().map(|server| &server.waits);
        waits.and_then(|waits| waits.get(event)).copied().unwrap_or(0) as f64
    };
    let stacked = |line: Line| Line { stacked: true, ..line };
    let mut lines: Vec<Line> = shown
        .iter()
        .map(|(event, _)| stacked(line(result, event, |second| Some(count(second, event)))))
        .collect();
    if !rest.is_empty() {
        let all = |second: &Second| Some(rest.iter().map(|(event, _)| count(second, event)).sum());
        lines.push(stacked(line(result, "others", all)));
    }
    lines
}
