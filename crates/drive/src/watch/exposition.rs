//! The state of a run in Prometheus' text format.

use std::fmt::{Display, Write as _};

use crate::observer::{IntervalHistograms, Snapshot};
use crate::result::file::OperationResult;
use crate::result::histogram::Durations;

/// Sums over the seconds, because a snapshot has only the last second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) wal: u64,
    pub(crate) checkpoints: u64,
    pub(crate) chaos: u64,
}

/// Upper bounds of the buckets of histograms, in microseconds: 1, 2.5, 5 from 100 µs to 100 s.
fn bounds() -> impl Iterator<Item = u64> {
    (2..8u32)
        .flat_map(|power| [10u64, 25, 50].map(|factor| factor * 10u64.pow(power) / 10))
        .chain([100_000_000])
}

/// Metrics under construction.
#[derive(Default)]
struct Metrics(String);

impl Metrics {
    /// Begins a family: its name, type and help text.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP sawmill_drive_{name} {help}\n# TYPE sawmill_drive_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "sawmill_drive_{name}{labels} {value}");
    }

    /// A family of one sample without labels.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histogram(&mut self, name: &str, operation: &str, of: &Durations) {
        let bucket = format!("{name}_bucket");
        let count = of.count();
        for bound in bounds() {
            let le = format!("{}", bound as f64 / 1e6);
            self.sample(&bucket, &[("operation", operation), ("le", &le)], count - of.above(bound));
        }
        self.sample(&bucket, &[("operation", operation), ("le", "+Inf")], count);
        let sum = if count == 0 { 0.0 } else { of.mean() * count as f64 / 1e6 };
        self.sample(&format!("{name}_sum"), &[("operation", operation)], sum);
        self.sample(&format!("{name}_count"), &[("operation", operation)], count);
    }
}

/// A label's value: backslashes, quotes and line ends are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole text for a scrape.
pub(crate) fn exposition(snapshot: &Snapshot<'_>, sums: &Sums) -> String {
    let mut metrics = Metrics::default();
    let (run, second) = (snapshot.run, snapshot.second);
    metrics.family("info", "gauge", "What is run; the value is always 1.");
    let labels = [
        ("name", run.name.as_str()),
        ("loop", &run.loop_kind),
        ("arrivals", &run.arrivals),
        ("shape", &run.shape),
        ("part", run.part.as_deref().unwrap_or_default()),
    ];
    metrics.sample("info", &labels, 1);
    let gauges = [
        ("elapsed_seconds", "Time since the start of the run.", second.at),
        ("warm_up", "1 during the warm-up, which no counter or histogram has.", second.warm_up.into()),
        ("connections", "Connections to the server.", run.connections as f64),
        ("intended_rate", "Operations scheduled in the last second, a second.", second.intended),
        ("achieved_rate", "Operations that ended well in the last second, a second.", second.achieved),
        ("in_flight", "Operations that are being executed.", second.in_flight as f64),
        ("backlog", "Operations that are due and wait for a connection.", second.backlog as f64),
    ];
    gauges.into_iter().for_each(|(name, help, value)| metrics.one(name, "gauge", help, value));
    metrics.family("late_total", "counter", "Operations that started more than 1 ms late, by cause.");
    metrics.sample("late_total", &[("cause", "server")], snapshot.driver.late_by_server);
    metrics.sample("late_total", &[("cause", "driver")], snapshot.driver.late_by_driver);
    metrics.sample("late_total", &[("cause", "pool")], snapshot.driver.late_by_pool);
    metrics.one("chaos_events_total", "counter", "What was done to the server.", sums.chaos);
    operations(&mut metrics, snapshot);
    server(&mut metrics, snapshot, sums);
    metrics.0
}

/// Name, help text and source of a family with a sample of each operation.
type Family<F> = (&'static str, &'static str, F);
type Counted = fn(&OperationResult) -> u64;
type Measured = fn(&IntervalHistograms) -> &Durations;

fn operations(metrics: &mut Metrics, snapshot: &Snapshot<'_>) {
    let operations = snapshot.operations;
    let counters: [Family<Counted>; 3] = [
        ("operations_total", "Operations that ended well.", |one| one.ok),
        ("rows_total", "Rows that operations which ended well wrote or read.", |one| one.rows),
        ("retries_total", "Attempts beyond the first.", |one| one.retries),
    ];
    for (name, help, count) in counters {
        metrics.family(name, "counter", help);
        operations.iter().for_each(|one| metrics.sample(name, &[("operation", &one.name)], count(one)));
    }
    metrics.family("errors_total", "counter", "Operations that failed, by kind: an SQLSTATE, timeout, lost.");
    for one in operations {
        for (kind, count) in &one.errors {
            metrics.sample("errors_total", &[("operation", &one.name), ("kind", kind)], count);
        }
    }
    let histograms: [Family<Measured>; 3] = [
        ("latency_seconds", "From the intended start to the end, if it ended well.", |of| &of.latency),
        ("service_seconds", "From the actual start to the end, if it ended well.", |of| &of.service),
        ("failed_seconds", "From the intended start to the end, if it was sent and failed.", |of| {
            &of.failures
        }),
    ];
    for (name, help, histogram) in histograms {
        metrics.family(name, "histogram", help);
        for (operation, totals) in snapshot.run.operations.iter().zip(snapshot.totals) {
            metrics.histogram(name, operation, histogram(totals));
        }
    }
    let help = "Percentiles of the latency in the last second.";
    metrics.family("last_second_latency_seconds", "gauge", help);
    for (name, interval) in snapshot.run.operations.iter().zip(snapshot.intervals) {
        for (text, quantile) in [("0.5", 0.5), ("0.99", 0.99), ("0.999", 0.999)] {
            let value = interval.latency.quantile(quantile) as f64 / 1e6;
            let labels = [("operation", name.as_str()), ("percentile", text)];
            metrics.sample("last_second_latency_seconds", &labels, value);
        }
    }
}

fn server(metrics: &mut Metrics, snapshot: &Snapshot<'_>, sums: &Sums) {
    let Some(server) = &snapshot.second.server else { return };
    if let Some(processors) = server.processors {
        metrics.one("server_processors", "gauge", "Processors that the server used.", processors);
    }
    if let Some(memory) = server.memory {
        metrics.one("server_resident_bytes", "gauge", "Resident memory of the server.", memory);
    }
    if server.wal.is_some() {
        metrics.one(
            "server_wal_bytes_total",
            "counter",
            "Write-ahead log written since the start.",
            sums.wal,
        );
    }
    if server.checkpoints.is_some() {
        metrics.one("server_checkpoints_total", "counter", "Checkpoints since the start.", sums.checkpoints);
    }
    if let Some(active) = server.active {
        metrics.one("server_active_sessions", "gauge", "Sessions that execute a statement.", active);
    }
    metrics.family("server_waiting_sessions", "gauge", "Sessions that wait, by event.");
    for (event, count) in &server.waits {
        metrics.sample("server_waiting_sessions", &[("event", event)], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::IntervalHistograms;
    use crate::result::file::{DriverReport, OperationResult, RunDescription};
    use crate::result::second::Second;

    #[test]
    fn buckets_are_cumulative_and_labels_are_escaped() {
        let mut totals = IntervalHistograms::default();
        totals.latency.record_micros(90, 3);
        totals.latency.record_micros(2_000, 2);
        totals.latency.record_micros(200_000_000, 1);
        let run = RunDescription {
            name: "a \"b\"\n".into(),
            operations: vec!["insert".into()],
            ..RunDescription::default()
        };
        let operation = OperationResult { name: "insert".into(), ok: 6, ..OperationResult::default() };
        let (totals, second) = ([totals], Second { backlog: 12, ..Second::default() });
        let operations = [operation];
        let snapshot = Snapshot {
            run: &run,
            second: &second,
            intervals: &totals,
            warming: &[],
            operations: &operations,
            totals: &totals,
            driver: &DriverReport { late_by_pool: 7, ..DriverReport::default() },
        };
        let text = exposition(&snapshot, &Sums::default());
        for line in [
            "sawmill_drive_info{name=\"a \\\"b\\\"\\n\",loop=\"\",arrivals=\"\",shape=\"\",part=\"\"} 1",
            "sawmill_drive_latency_seconds_bucket{operation=\"insert\",le=\"0.0001\"} 3",
            "sawmill_drive_latency_seconds_bucket{operation=\"insert\",le=\"0.0025\"} 5",
            "sawmill_drive_latency_seconds_bucket{operation=\"insert\",le=\"100\"} 5",
            "sawmill_drive_latency_seconds_bucket{operation=\"insert\",le=\"+Inf\"} 6",
            "sawmill_drive_operations_total{operation=\"insert\"} 6",
            "# TYPE sawmill_drive_latency_seconds histogram",
            "sawmill_drive_late_total{cause=\"pool\"} 7",
            "sawmill_drive_backlog 12",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
        }
    }
}
