//! Phases, figures and tables for people.

use sawmill_profile::{Align, PhaseReport, Table, format_byte_rate, format_bytes, format_rate, parse_count};
pub(crate) use sawmill_profile::{
    format_counted as counted, format_decimal_bytes as bytes, format_duration as seconds,
    format_grouped as thousands,
};

/// Parses a count of rows: `1000`, `10k`, `1M`, `1.5B`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

/// A phase in one line.
pub(crate) fn summary(phase: &PhaseReport) -> String {
    let memory =
        phase.peak_memory.map_or_else(String::new, |peak| format!(", peak memory {}", format_bytes(peak)));
    format!(
        "{}, {} in {} ({}, {}), CPU {}{memory}",
        counted(phase.rows, "row"),
        bytes(phase.bytes),
        seconds(phase.wall),
        format_rate(phase.rows_per_second(), "rows"),
        format_byte_rate(phase.bytes_per_second()),
        seconds(phase.cpu),
    )
}

/// The phases of a run as a table.
pub(crate) fn table_of(phases: &[PhaseReport]) -> String {
    let mut rows = vec![["phase", "seconds", "rows/s", "MB/s", "CPU s", "peak memory"].map(str::to_owned)];
    // Nested phases are for the reports that draw them.
    for phase in phases.iter().filter(|phase| phase.depth == 0) {
        // A phase without rows or bytes has no rate.
        let per_second = |n: u64, rate: f64, unit: f64| match n {
            0 => "-".to_owned(),
            _ => thousands((rate / unit).round() as u64),
        };
        rows.push([
            phase.name.clone(),
            format!("{:.3}", phase.wall.as_secs_f64()),
            per_second(phase.rows, phase.rows_per_second(), 1.0),
            per_second(phase.bytes, phase.bytes_per_second(), 1e6),
            format!("{:.3}", phase.cpu.as_secs_f64()),
            phase.peak_memory.map_or_else(|| "-".to_owned(), format_bytes),
        ]);
    }
    table(&rows)
}

/// Aligns rows in columns; the first row is the header. The first column is aligned left, the others right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let Some((head, rows)) = rows.split_first() else { return String::new() };
    let align = |i| if i == 0 { Align::Left } else { Align::Right };
    let mut table = Table::new(head.iter().enumerate().map(|(i, name)| (name.clone(), align(i))));
    for row in rows {
        table.row(row.iter().cloned());
    }
    table.to_string()
}
