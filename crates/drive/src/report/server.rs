//! The server's own figures, on the time axis of the latencies.

use std::collections::BTreeMap;

use sawmill_profile::{Line, Section, Upward, format_byte_rate};

use crate::report::over_time::{chart, line, stacked};
use crate::result::file::DriveResult;
use crate::result::second::{Second, ServerSample};

/// Memory is drawn in MiB, so that the axis has round numbers.
const MIB: f64 = 1_048_576.0;

pub(super) fn section(result: &DriveResult) -> Section {
    let plain = |value: f64| format!("{value}");
    let mut content = String::new();
    let mut add = |title: &str, unit: &str, show: fn(f64) -> String, lines: Vec<Line>| {
        let chart = chart(result, &format!("{title} over time"), Upward::linear(unit, show), lines);
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
    add("Waits", "waiting sessions", plain, stacked(result, waits, |count, _| count as f64));
    let note = "Sampled once a second, on the same time axis as the latency above.";
    let note = if content.is_empty() { "" } else { note };
    if content.is_empty() && !result.seconds.is_empty() {
        content.push_str("<p class=\"note\">The server reported nothing of itself.</p>\n");
    }
    Section::new("The server during the run", note, content)
}

fn checkpoints(second: &Second) -> f64 {
    second.server.as_ref().and_then(|server| server.checkpoints).unwrap_or(0) as f64
}

/// Waiting sessions by event.
fn waits(second: &Second) -> BTreeMap<&str, u64> {
    let waits = second.server.iter().flat_map(|server| &server.waits);
    waits.map(|(event, count)| (event.as_str(), *count)).collect()
}
