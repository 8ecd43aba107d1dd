//! Results as a table for the terminal.

use crate::measure::results::ResultFile;
use crate::reports::bench::summary;
use crate::reports::table::{Align, Table};

/// A line per side of every case in a result: times, rows and bytes of a run, rate, CPU, memory, and the
/// comparison with ours.
pub fn results_table(file: &ResultFile) -> Table {
    let (size, _) = file.size();
    let cells = [
        ("runs", "runs"),
        ("min", "min"),
        ("median", "median"),
        ("sd", "± sd"),
        ("rows", "rows"),
        (size, size),
        ("rate", "rows/s"),
        ("cpu", "cpu"),
        ("memory", "peak memory"),
    ];
    let heads = cells.map(|(_, head)| (head, Align::Right));
    let (first, last) = (
        ["case", "side"].map(|head| (head, Align::Left)),
        [("ours takes", Align::Right), ("verdict", Align::Left)],
    );
    let mut table = Table::new(first.into_iter().chain(heads).chain(last));
    for line in summary::lines(file) {
        let mut row = vec![line.title.clone(), line.side.clone()];
        row.extend(cells.map(|(cell, _)| line.cell(cell).to_owned()));
        if let Some(found) = line.found {
            row.extend([format!("{:.3} x", found.comparison.ratio), found.comparison.verdict.to_string()]);
        }
        table.row(row);
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
