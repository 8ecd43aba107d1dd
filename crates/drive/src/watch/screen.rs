//! The live screen on a terminal: a few lines, redrawn each second.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::time::Duration;

use sawmill_profile::{format_byte_rate, format_bytes, format_duration, format_grouped, format_rate};

use crate::observer::{Observer, Snapshot};
use crate::result::file::{DriveResult, RunDescription, add_counts};
use crate::result::histogram::Durations;
use crate::result::second::{ChaosEvent, Second};

/// Draws the state of the run each second, and leaves the terminal as it was.
pub struct LiveScreen {
    out: Box<dyn Write + Send>,
    width: fn() -> usize,
    drawn: usize,
    recent: VecDeque<Vec<Durations>>,
    rates: VecDeque<f64>,
    slowest: VecDeque<f64>,
    events: Vec<String>,
}

/// Percentiles are over these last seconds.
const RECENT: usize = 5;
/// Seconds of a sparkline.
const SPARK: usize = 60;
/// Maximum number of operations with a separate line.
const MAX_OPERATIONS: usize = 6;

impl LiveScreen {
    fn on(out: impl Write + Send + 'static, width: fn() -> usize) -> Self {
        Self {
            out: Box::new(out),
            width,
            drawn: 0,
            recent: VecDeque::new(),
            rates: VecDeque::new(),
            slowest: VecDeque::new(),
            events: Vec::new(),
        }
    }

    fn draw(&mut self, lines: &[String]) {
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        // Everything below is cleared, because there may be fewer lines now.
        text.push_str("\r\x1b[J");
        let width = (self.width)().max(20);
        for line in lines {
            text.extend(line.chars().take(width - 1));
            text.push('\n');
        }
        self.drawn = lines.len();
        // A closed terminal cannot show an error.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    fn keep(&mut self, snapshot: &Snapshot<'_>) {
        let interval: Vec<Durations> = snapshot.intervals.iter().map(|one| one.latency.clone()).collect();
        let mut all = Durations::default();
        interval.iter().for_each(|one| all.add(one));
        bounded(&mut self.recent, interval, RECENT);
        bounded(&mut self.rates, snapshot.second.achieved, SPARK);
        bounded(&mut self.slowest, all.quantile(0.99) as f64, SPARK);
    }

    /// The latencies of the last seconds: of all operations, and of each.
    fn latencies(&self, operations: usize) -> (Durations, Vec<Durations>) {
        let mut each = vec![Durations::default(); operations];
        for second in &self.recent {
            each.iter_mut().zip(second).for_each(|(sum, one)| sum.add(one));
        }
        let mut all = Durations::default();
        each.iter().for_each(|one| all.add(one));
        (all, each)
    }

    fn lines(&self, snapshot: &Snapshot<'_>) -> Vec<String> {
        let (run, second) = (snapshot.run, snapshot.second);
        let (all, each) = self.latencies(run.operations.len());
        let mut lines = vec![head(run, second)];
        let intended = match run.loop_kind.as_str() {
            "closed" => "closed loop".to_owned(),
            _ => format!("intended {}", format_rate(second.intended, "ops")),
        };
        lines.push(format!(
            "  rate     {intended}, achieved {}, {} in flight, {} waiting, {} late",
            format_rate(second.achieved, "ops"),
            format_grouped(second.in_flight),
            format_grouped(second.backlog),
            format_grouped(second.late),
        ));
        lines.push(format!("  latency  {} (last {} s)", percentiles(&all), self.recent.len()));
        if run.operations.len() > 1 {
            for (name, latency) in run.operations.iter().zip(&each).take(MAX_OPERATIONS) {
                lines.push(format!("    {name}: {}", percentiles(latency)));
            }
        }
        lines.push(format!("  errors   {}", errors(snapshot)));
        lines.extend(server(second));
        lines.push(format!("  rate     {}", sparkline(&self.rates)));
        lines.push(format!("  p99      {}", sparkline(&self.slowest)));
        lines.extend(self.events.last().map(|event| format!("  chaos    {event}")));
        lines
    }
}

impl Default for LiveScreen {
    /// A screen on standard error.
    fn default() -> Self {
        Self::on(std::io::stderr(), terminal_width)
    }
}

impl Observer for LiveScreen {
    fn second(&mut self, snapshot: &Snapshot<'_>) {
        self.keep(snapshot);
        let lines = self.lines(snapshot);
        self.draw(&lines);
    }

    fn chaos(&mut self, event: &ChaosEvent) {
        self.events.push(format!(
            "at {}: {}, took {}",
            clock(event.at),
            event.what,
            micros(event.took * 1e6)
        ));
    }

    fn ended(&mut self, _: &DriveResult) {
        self.draw(&[]);
    }
}

fn bounded<T>(queue: &mut VecDeque<T>, value: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(value);
}

fn head(run: &RunDescription, second: &Second) -> String {
    let warm_up = if second.warm_up { ", warming up" } else { "" };
    let whole = clock(run.warm_up + run.duration);
    let how = match run.loop_kind.as_str() {
        "closed" => format!("closed loop, {} clients", run.connections),
        _ => format!("open loop, {}, {}", run.arrivals, run.shape),
    };
    format!("{}  {} of {whole}{warm_up}  {how}", run.name, clock(second.at))
}

/// A time as minutes and seconds: `2:05`.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    format!("{}:{:02}", whole / 60, whole % 60)
}

/// Microseconds, formatted for reading.
pub(crate) fn micros(value: f64) -> String {
    if value <= 0.0 { "0".to_owned() } else { format_duration(Duration::from_secs_f64(value / 1e6)) }
}

fn percentiles(of: &Durations) -> String {
    if of.count() == 0 {
        return "nothing ended".to_owned();
    }
    let at = |share| micros(of.quantile(share) as f64);
    format!("p50 {}, p99 {}, p99.9 {}", at(0.5), at(0.99), at(0.999))
}

/// The errors so far and in the last second, the warm-up's included there.
fn errors(snapshot: &Snapshot<'_>) -> String {
    let mut kinds = BTreeMap::new();
    snapshot.operations.iter().for_each(|one| add_counts(&mut kinds, &one.errors));
    let now: u64 = snapshot.second.operations.values().flat_map(|one| one.errors.values()).sum();
    let now = if now > 0 { format!(" ({} in the last second)", format_grouped(now)) } else { String::new() };
    if kinds.is_empty() {
        return format!("none{now}");
    }
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{kind} {}", format_grouped(*count))).collect();
    format!("{}{now}", kinds.join(", "))
}

fn server(second: &Second) -> Option<String> {
    let server = second.server.as_ref()?;
    let mut parts = Vec::new();
    parts.extend(server.processors.map(|used| format!("{used:.1} processors")));
    parts.extend(server.memory.map(format_bytes));
    parts.extend(
        server.wal.map(|bytes| format!("WAL {}", format_byte_rate(bytes as f64 / second.length.max(1e-3)))),
    );
    let mut waits: Vec<(&String, &u64)> = server.waits.iter().collect();
    waits.sort_by(|a, b| b.1.cmp(a.1));
    let waits: Vec<String> =
        waits.iter().take(3).map(|(event, count)| format!("{event} ({count})")).collect();
    parts.push(if waits.is_empty() { "no waits".to_owned() } else { format!("waits {}", waits.join(", ")) });
    Some(format!("  server   {}", parts.join(", ")))
}

/// Values as bars of eight heights, from zero to the greatest.
fn sparkline(values: &VecDeque<f64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let share = if greatest > 0.0 { (value / greatest).clamp(0.0, 1.0) } else { 0.0 };
        BARS.get((share * 7.0).round() as usize).copied().unwrap_or('█')
    };
    values.iter().map(bar).collect()
}

/// The terminal's width in columns.
fn terminal_width() -> usize {
    // SAFETY: `winsize` is a plain structure of numbers that ioctl fills, and the pointer is valid.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
    };
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::IntervalHistograms;
    use crate::result::file::{DriverReport, OperationResult};
    use crate::result::second::ServerSample;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_screen_shows_rates_percentiles_errors_and_waits_within_the_terminals_width() {
        let terminal = Terminal::default();
        let mut screen = LiveScreen::on(terminal.clone(), || 60);
        let run = RunDescription {
            name: "events".into(),
            loop_kind: "open".into(),
            arrivals: "constant".into(),
            shape: "1000/s".into(),
            duration: 300.0,
            operations: vec!["insert".into(), "select".into()],
            ..RunDescription::default()
        };
        let operations = [OperationResult {
            errors: BTreeMap::from([("23505".to_owned(), 12)]),
            ..OperationResult::default()
        }];
        let mut intervals = vec![IntervalHistograms::default(), IntervalHistograms::default()];
        intervals[0].latency.record_micros(1_000, 99);
        intervals[0].latency.record_micros(50_000, 1);
        for at in 1..=7 {
            let second = Second {
                at: f64::from(at),
                length: 1.0,
                intended: 1000.0,
                achieved: 100.0 * f64::from(at),
                server: Some(ServerSample {
                    waits: BTreeMap::from([("IO: WALSync".to_owned(), 3)]),
                    ..ServerSample::default()
                }),
                ..Second::default()
            };
            let snapshot = Snapshot {
                run: &run,
                second: &second,
                intervals: &intervals,
                warming: &[],
                operations: &operations,
                totals: &intervals,
                driver: &DriverReport::default(),
            };
            screen.second(&snapshot);
        }
        let text = String::from_utf8(terminal.0.lock().unwrap().clone()).unwrap();
        let last = text.rsplit("\x1b[J").next().unwrap();
        assert!(last.starts_with("events  0:07 of 5:00  open loop, constant, 1000/s\n"), "{last}");
        assert!(last.contains("intended 1.00 k ops/s, achieved 700 ops/s"), "{last}");
        // The terminal has 60 columns, so the end of this line is cut.
        assert!(last.contains("p50 1.00 ms") && last.contains("p99.9 50.0 ms (last 5"), "{last}");
        assert!(last.contains("errors   23505 12") && last.contains("waits IO: WALSync (3)"), "{last}");
        assert!(last.contains("▂▃▄▅▆▇█") || last.contains('█'), "{last}");
        assert!(last.lines().all(|line| line.chars().count() < 60), "{last}");
        assert!(last.contains("select: nothing ended"), "{last}");
    }
}
