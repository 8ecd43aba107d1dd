//! Results as a table for the terminal.

use crate::measure::results::ResultFile;
use crate::reports::table::{Align, Table};
use crate::text::byte_sizes::{format_bytes, format_decimal_bytes};
use crate::text::counts::{format_grouped, format_rate};
use crate::text::durations::format_duration;
use crate::trace::seconds;

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

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
}
