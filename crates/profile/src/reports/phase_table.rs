//! Phases, threads and results as tables for the terminal.

use crate::measure::results::ResultFile;
use crate::reports::table::{Align, Table};
use crate::text::byte_sizes::{format_byte_rate, format_bytes, format_decimal_bytes};
use crate::text::counts::{format_count, format_grouped, format_rate};
use crate::text::durations::format_duration;
use crate::text::seconds;
use crate::trace::phase::PhaseReport;
use crate::trace::span_report::SpanReport;

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// A line per phase: time, CPU, rows, rates and memory. Nested phases are indented.
pub fn phases_table(phases: &[PhaseReport]) -> Table {
    let mut table = Table::new([
        ("phase", LEFT),
        ("time", RIGHT),
        ("cpu", RIGHT),
        ("processors", RIGHT),
        ("rows", RIGHT),
        ("rows/s", RIGHT),
        ("bytes/s", RIGHT),
        ("peak memory", RIGHT),
    ]);
    for phase in phases {
        let processors = phase.cpu.as_secs_f64() / phase.wall.as_secs_f64().max(1e-9);
        let rates = (phase.rows_per_second(), phase.bytes_per_second());
        table.row([
            format!("{}{}", "  ".repeat(phase.depth as usize), phase.name),
            format_duration(phase.wall),
            format_duration(phase.cpu),
            format!("{processors:.2}"),
            if phase.rows > 0 { format_count(phase.rows) } else { String::new() },
            if phase.rows > 0 { format_rate(rates.0, "rows") } else { String::new() },
            if phase.bytes > 0 { format_byte_rate(rates.1) } else { String::new() },
            phase.peak_memory.map(format_bytes).unwrap_or_default(),
        ]);
    }
    table
}

/// A line per span of every thread in a phase: calls, time, share of the thread's time, CPU.
pub fn spans_table(phase: &PhaseReport) -> Table {
    let mut table = Table::new([
        ("thread and span", LEFT),
        ("calls", RIGHT),
        ("time", RIGHT),
        ("share", RIGHT),
        ("cpu", RIGHT),
        ("rows", RIGHT),
        ("bytes", RIGHT),
    ]);
    for thread in &phase.threads {
        let total = thread.wall.as_secs_f64().max(1e-9);
        table.row([
            thread.name.clone(),
            format_count(thread.attached),
            format_duration(thread.wall),
            String::new(),
            format_duration(thread.cpu),
        ]);
        add_spans(&mut table, &thread.spans, total, 1);
    }
    table
}

fn add_spans(table: &mut Table, spans: &[SpanReport], total: f64, depth: usize) {
    for span in spans {
        table.row([
            format!("{}{}", "  ".repeat(depth), span.name),
            format_count(span.calls),
            format_duration(span.wall),
            format!("{:.1} %", 100.0 * span.wall.as_secs_f64() / total),
            format_duration(span.cpu),
            if span.rows > 0 { format_count(span.rows) } else { String::new() },
            if span.bytes > 0 { format_bytes(span.bytes) } else { String::new() },
        ]);
        add_spans(table, &span.children, total, depth + 1);
    }
}

/// A line per side of every case in a result: times, rows and bytes of a run, rate, CPU, memory, and the
/// comparison with ours.
pub fn results_table(file: &ResultFile) -> Table {
    let (size, size_of) = file.size();
    let mut table = Table::new([
        ("case", LEFT),
        ("side", LEFT),
        ("runs", RIGHT),
        ("min", RIGHT),
        ("median", RIGHT),
        ("± sd", RIGHT),
        ("rows", RIGHT),
        (size, RIGHT),
        ("rows/s", RIGHT),
        ("cpu", RIGHT),
        ("peak memory", RIGHT),
        ("ours takes", RIGHT),
        ("verdict", LEFT),
    ]);
    let duration = |value: f64| format_duration(seconds::from_number(value));
    for case in &file.cases {
        for (place, side) in case.sides.iter().enumerate() {
            let title = if place == 0 { case.title() } else { String::new() };
            let mut row = vec![title, side.name.clone(), side.runs.len().to_string()];
            match &side.wall {
                Some(wall) => row.extend([
                    duration(wall.min),
                    duration(wall.median),
                    format!("{:.1} %", 100.0 * wall.relative_deviation()),
                ]),
                None => row.resize(row.len() + 3, String::new()),
            }
            // All runs of a side do the same work.
            let work = side.runs.first();
            row.push(work.and_then(|run| run.rows).map(format_grouped).unwrap_or_default());
            row.push(work.and_then(size_of).map(format_decimal_bytes).unwrap_or_default());
            row.push(side.rows_per_second().map(|rate| format_rate(rate, "rows")).unwrap_or_default());
            row.push(side.cpu.as_ref().map(|cpu| duration(cpu.median)).unwrap_or_default());
            let memory = side.peak_memory.as_ref().map(|memory| format_bytes(memory.median as u64));
            row.push(memory.unwrap_or_default());
            if let Some(found) = case.comparisons.iter().find(|found| found.with == side.name && place > 0) {
                row.extend([
                    format!("{:.3} x", found.comparison.ratio),
                    found.comparison.verdict.to_string(),
                ]);
            }
            table.row(row);
        }
        let sides: Vec<&str> = case.sides.iter().skip(1).map(|side| side.name.as_str()).collect();
        for found in case.comparisons.iter().filter(|found| !sides.contains(&found.with.as_str())) {
            let mut row = vec![String::new(), format!("(saved) {}", found.with)];
            row.resize(11, String::new());
            row.extend([format!("{:.3} x", found.comparison.ratio), found.comparison.verdict.to_string()]);
            table.row(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::results::{Case, SideResult};
    use crate::measure::run::Run;
    use std::time::Duration;

    #[test]
    fn a_comparison_shows_rows_and_bytes_of_both_sides() {
        let run = |seconds, rows, bytes| Run {
            wall: Duration::from_secs(seconds),
            user: Duration::from_secs(1),
            rows: Some(rows),
            bytes,
            ..Run::default()
        };
        let sides = vec![
            SideResult::new("sawmill", 0, vec![run(2, 1_000_000, Some(8_800_000))]),
            SideResult::new("other", 0, vec![run(4, 1_000_000, Some(16_000_000))]),
            SideResult::new("silent", 0, vec![run(8, 1_000_000, None)]),
        ];
        let mut file = ResultFile::new("a", "sawmill bench gen");
        file.cases.push(Case::new("gen", std::collections::BTreeMap::new(), sides).unwrap());
        let drawn = results_table(&file).to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines[0].contains("rows    bytes        rows/s"), "{drawn}");
        for (line, work) in
            lines[2..].iter().zip(["1,000,000  8.80 MB", "1,000,000  16.0 MB", "1,000,000          "])
        {
            assert!(line.contains(work), "{drawn}");
        }
    }

    #[test]
    fn phases_are_lines_with_their_rates() {
        let phase = PhaseReport {
            name: "generate".into(),
            wall: Duration::from_secs(2),
            cpu: Duration::from_secs(3),
            rows: 8_800_000,
            bytes: 1_000_000_000,
            peak_memory: Some(64 << 20),
            ..PhaseReport::default()
        };
        let inner = PhaseReport { name: "encode".into(), depth: 1, ..PhaseReport::default() };
        let drawn = phases_table(&[phase, inner]).to_string();
        let expected = "\
phase       time     cpu  processors    rows         rows/s   bytes/s  peak memory
--------  ------  ------  ----------  ------  -------------  --------  -----------
generate  2.00 s  3.00 s        1.50  8.80 M  4.40 M rows/s  500 MB/s     64.0 MiB
  encode    0 ns    0 ns        0.00
";
        assert_eq!(drawn, expected);
    }
}
