//! Whether the driver kept its own schedule.

use crate::result::file::{DriveResult, DriverReport};

/// The share of operations that may start late because of the driver.
const LATE_SHARE: f64 = 0.01;
/// A lateness, in microseconds, that is too small to matter.
const UNIMPORTANT: u64 = 1000;

/// Why the result does not describe the server; empty if it does.
pub(crate) fn objections(result: &DriveResult) -> Vec<String> {
    let mut objections = Vec::new();
    let DriverReport { lateness, late_by_driver, .. } = &result.driver;
    let (late, latency) = (lateness.percentiles.p99_us, result.total.latency.percentiles.p99_us);
    if result.run.loop_kind == "closed" {
        return objections;
    }
    let share = *late_by_driver as f64 / (result.total.intended as f64).max(1.0);
    let busy = late_by_driver.saturating_sub(lateness.histogram.above(UNIMPORTANT));
    if busy as f64 / (result.total.intended as f64).max(1.0) > LATE_SHARE {
        objections.push(format!(
            "the driver did not keep its schedule: {:.1} % of the operations started more than 1 ms late because it was \
             busy itself{}; lower the rate, or drive from several processes (--part)",
            share * 100.0,
            able(result.driver.capacity),
        ));
    }
    if late > UNIMPORTANT && late * 10 > latency {
        objections.push(format!(
            "the driver woke up too late: its 99th percentile of lateness is {:.1} ms, that of the latency {:.1} ms; the \
             machine is busy with something else",
            late as f64 / 1000.0,
            latency as f64 / 1000.0
        ));
    }
    objections
}

/// What the driver can do, in parentheses.
fn able(capacity: Option<f64>) -> String {
    let operations = |rate| sawmill_profile::format_rate(rate, "ops");
    capacity.map(|rate| format!(" (it makes {} without a server)", operations(rate))).unwrap_or_default()
}
