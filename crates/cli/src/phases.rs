//! Figures as people read and write them, and the tables they stand in.

use std::time::Duration;

use sawmill_profile::PhaseReport;

/// A count of rows as a user writes it: `1000`, `10k`, `1M`, `1.5B`, `1_000_000`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no count: give a whole number, or one with k, M, B or T behind it");
    let text = text.trim();
    let (digits, unit) = match text.char_indices().find(|(_, c)| c.is_ascii_alphabetic()) {
        Some((at, _)) => text.split_at(at),
        None => (text, ""),
    };
    let scale: u64 = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "b" | "B" | "g" | "G" => 1_000_000_000,
        "t" | "T" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let digits = digits.trim().replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || digits.ends_with('.') {
        return Err(wrong());
    }
    let mut value = whole.parse::<u64>().ok().and_then(|w| w.checked_mul(scale)).ok_or_else(wrong)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        // A fraction of a row is no row.
        if place % 10 != 0 && digit != b'0' {
            return Err(wrong());
        }
        place /= 10;
        value = value.checked_add(u64::from(digit - b'0') * place).ok_or_else(wrong)?;
    }
    Ok(value)
}

/// Scales a figure to its SI prefix: 1,500,000 is 1.5 and "M".
fn scaled(value: f64) -> (f64, &'static str) {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = value;
    let mut prefix = 0;
    // What would print as 1000 is the next prefix's 1.
    while value.abs() >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    (value, PREFIXES[prefix])
}

/// Three digits of a figure that is below a thousand.
fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes, in powers of 1000: `24.3 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (value, prefix) = scaled(bytes as f64);
    format!("{} {prefix}B", three_digits(value))
}

/// A rate: `20.0 M`.
fn rate(value: f64) -> String {
    let (value, prefix) = scaled(value);
    format!("{} {prefix}", three_digits(value)).trim_end().to_owned()
}

/// A count with its thousands set apart: `1,000,000`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time: `1.23 s`, `4.5 ms`, `12.0 µs`.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 0.9995 => format!("{} s", if s < 100.0 { three_digits(s) } else { format!("{s:.0}") }),
        s if s >= 0.000_999_5 => format!("{} ms", three_digits(s * 1e3)),
        s => format!("{} µs", three_digits(s * 1e6)),
    }
}

/// A phase in one line.
pub(crate) fn summary(phase: &PhaseReport) -> String {
    let memory = phase.peak_memory.map_or_else(String::new, |peak| format!(", peak memory {}", bytes(peak)));
    format!(
        "{} rows, {} in {} ({} rows/s, {}B/s), CPU {}{memory}",
        thousands(phase.rows),
        bytes(phase.bytes),
        seconds(phase.wall),
        rate(phase.rows_per_second()),
        rate_with_prefix(phase.bytes_per_second()),
        seconds(phase.cpu),
    )
}

/// A rate whose unit follows: `480 M` before `B/s`.
fn rate_with_prefix(value: f64) -> String {
    let (value, prefix) = scaled(value);
    format!("{} {prefix}", three_digits(value))
}

/// The phases of a run as a table.
pub(crate) fn table_of(phases: &[PhaseReport]) -> String {
    let mut rows = vec![["phase", "seconds", "rows/s", "MB/s", "CPU s", "peak memory"].map(str::to_owned)];
    for phase in phases {
        // A phase that moves no rows or bytes has no rate of them.
        let per_second = |n: u64, rate: String| if n == 0 { "-".to_owned() } else { rate };
        rows.push([
            phase.name.clone(),
            format!("{:.3}", phase.wall.as_secs_f64()),
            per_second(phase.rows, rate(phase.rows_per_second())),
            per_second(phase.bytes, format!("{:.1}", phase.bytes_per_second() / 1e6)),
            format!("{:.3}", phase.cpu.as_secs_f64()),
            phase.peak_memory.map_or_else(|| "-".to_owned(), bytes),
        ]);
    }
    table(&rows)
}

/// Rows of equal length as aligned columns: the first to the left, the others to the right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            match i {
                0 => out.extend([cell, space.as_str()]),
                _ => out.extend(["  ", space.as_str(), cell]),
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_exactly_or_refused() {
        let good = [("0", 0), ("1000", 1000), ("10k", 10_000), ("1M", 1_000_000), ("1.5B", 1_500_000_000)];
        for (text, value) in good {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        assert_eq!(count("1_000"), Ok(1000));
        assert_eq!(count("0.001k"), Ok(1));
        assert_eq!(count("1.50 k"), Ok(1500));
        for bad in [
            "",
            "M",
            "-1",
            "1.5",
            "0.0001k",
            "1x",
            "1MB",
            "1.",
            ".5M",
            "1e6",
            "99999999999999999999",
            "18446744T",
        ] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [0, 999, 1000, 24_300_000, 999_999].map(bytes),
            ["0 B", "999 B", "1.00 kB", "24.3 MB", "1.00 MB"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let time = |s| seconds(Duration::from_secs_f64(s));
        assert_eq!([1.234, 0.0123, 0.000_012_3, 250.0].map(time), ["1.23 s", "12.3 ms", "12.3 µs", "250 s"]);
    }

    #[test]
    fn columns_of_a_table_line_up() {
        let rows = [["file", "rows"], ["a", "1,000"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "file   rows\na     1,000\n");
    }
}
