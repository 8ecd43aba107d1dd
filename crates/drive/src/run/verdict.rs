//! The rule that makes a result invalid. `docs/drive.md`, "What the figures mean", has it in words.
//!
//! An operation is spoilt if more than a millisecond and more than a tenth of its latency is the driver's. A result
//! is invalid if it has no operation, or if more than 1 % of its operations are spoilt. In a closed loop, a paused driver
//! starts no operations that could be spoilt, and one that is spoilt takes the time of many. There, a result is also
//! invalid if the driver was paused for more than 1 % of the time, or if its connections waited for a processor in spoilt
//! operations for more than a tenth: clients and a server that share a machine wait for each other.

use std::time::Duration;

use crate::result::file::{DriveResult, DriverReport};

/// The share of the operations, or of the time, that the driver may spoil.
const SPOILT_SHARE: f64 = 0.01;
/// A part of a latency, in nanoseconds, that is too small to matter.
const UNIMPORTANT: u64 = 1_000_000;
/// The part of a latency that may be the driver's is one divided by this.
const PART: u64 = 10;
/// From this share of the driver's capacity on, the rate itself is too much for the driver.
const NEAR_CAPACITY: f64 = 0.3;

/// Whether the driver's part of this latency, in nanoseconds, is too large for it to describe the server.
pub(crate) fn is_spoilt(by_driver: u64, latency: Duration) -> bool {
    by_driver > UNIMPORTANT && u128::from(by_driver) * u128::from(PART) > latency.as_nanos()
}

/// Why the result does not describe the server; empty if it does.
pub(crate) fn objections(result: &DriveResult) -> Vec<String> {
    if result.total.intended == 0 {
        return vec!["no operation was counted".to_owned()];
    }
    let DriverReport { spoilt, paused, waited, .. } = &result.driver;
    let share = *spoilt as f64 / result.total.intended as f64;
    let idle = result.driver.idle().join(", and ");
    if share > SPOILT_SHARE {
        let idle = if idle.is_empty() { idle } else { format!("; {idle}") };
        return vec![format!(
            "in {:.1} % of the operations, more than a tenth of the latency is the driver's{idle}",
            share * 100.0
        )];
    }
    // Pauses count in the planned time, and not while a slow last operation lasts.
    let ran = result.seconds.last().map_or(0.0, |last| last.at - result.run.warm_up);
    let time = ran.min(result.run.duration).max(1e-9);
    let is_idle = paused / time > SPOILT_SHARE || waited * PART as f64 > time;
    if result.run.loop_kind == "closed" && is_idle {
        return vec![format!("{idle}, while clients stood still")];
    }
    Vec::new()
}

const RUN_ALONE: &str =
    "give it processors of its own, a higher CPU quota, or a machine that does nothing else";

/// What makes the next result describe the server; empty if this one does.
pub(crate) fn advice(result: &DriveResult) -> String {
    if result.valid {
        return String::new();
    }
    if result.total.intended == 0 {
        return "raise the rate, or the time (--for)".to_owned();
    }
    let rate = result.total.intended as f64 / result.run.duration.max(1e-9);
    match result.driver.capacity {
        Some(capacity) if result.driver.pauses == 0 && rate > capacity * NEAR_CAPACITY => format!(
            "lower the rate, or drive from several processes (--part): one makes at most {} without a server",
            sawmill_profile::format_rate(capacity, "ops")
        ),
        _ => RUN_ALONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::file::{OperationResult, RunDescription};
    use crate::result::second::Second;

    fn result(loop_kind: &str, driver: DriverReport) -> DriveResult {
        let run = RunDescription { loop_kind: loop_kind.into(), duration: 10.0, ..RunDescription::default() };
        let total = OperationResult { intended: 1000, ..OperationResult::default() };
        let seconds = vec![Second { at: 10.0, ..Second::default() }];
        DriveResult { run, total, driver, seconds, ..DriveResult::default() }
    }

    #[test]
    fn an_operation_is_spoilt_by_a_millisecond_that_is_a_tenth_of_its_latency() {
        let spoilt = |driver: u64, latency: u64| is_spoilt(driver, Duration::from_nanos(latency));
        assert!(spoilt(1_500_000, 10_000_000));
        assert!(!spoilt(900_000, 1_000_000), "less than a millisecond");
        assert!(!spoilt(20_000_000, 900_000_000), "less than a tenth");
    }

    #[test]
    fn a_result_is_invalid_from_one_in_a_hundred_spoilt_operations_on() {
        let of = |spoilt| objections(&result("open", DriverReport { spoilt, ..DriverReport::default() }));
        assert_eq!(of(10), Vec::<String>::new());
        assert!(of(11)[0].starts_with("in 1.1 % of the operations"), "{:?}", of(11));
        let spoilt = result("open", DriverReport { spoilt: 11, ..DriverReport::default() });
        assert_eq!(advice(&spoilt), RUN_ALONE);
        assert_eq!(advice(&DriveResult { valid: true, ..spoilt }), "");
    }

    #[test]
    fn a_result_without_an_operation_says_nothing() {
        let mut result = result("open", DriverReport::default());
        assert!(objections(&result).is_empty());
        result.total.intended = 0;
        assert!(objections(&result)[0].starts_with("no operation was counted"));
    }

    #[test]
    fn advice_to_lower_the_rate_is_given_near_the_drivers_capacity_alone() {
        let of = |capacity| {
            let driver = DriverReport { spoilt: 500, capacity: Some(capacity), ..DriverReport::default() };
            advice(&result("open", driver))
        };
        assert!(of(150.0).contains("lower the rate"), "{}", of(150.0));
        assert!(!of(149_000.0).contains("lower the rate"), "{}", of(149_000.0));
    }

    #[test]
    fn a_closed_loop_is_invalid_if_its_driver_did_not_run_for_a_hundredth_of_the_time() {
        let of = |loop_kind, paused| {
            let driver = DriverReport { pauses: 2, paused, ..DriverReport::default() };
            objections(&result(loop_kind, driver))
        };
        assert!(of("closed", 0.09).is_empty());
        assert!(of("closed", 0.2)[0].starts_with("the driver did not run for 200 ms in 2 pauses"));
        assert!(of("open", 0.2).is_empty(), "what it spoils there is counted");
    }

    #[test]
    fn a_closed_loop_is_invalid_if_its_connections_waited_for_processors_for_a_tenth_of_the_time() {
        let of = |waited| objections(&result("closed", DriverReport { waited, ..DriverReport::default() }));
        assert!(of(0.9).is_empty());
        assert!(of(1.1)[0].starts_with("each connection waited 1.10 s for a processor"), "{:?}", of(1.1));
    }

    #[test]
    fn a_slow_last_operation_does_not_make_pauses_of_a_closed_loop_rarer() {
        let driver = DriverReport { pauses: 2, paused: 0.2, ..DriverReport::default() };
        let mut result = result("closed", driver);
        result.seconds.push(Second { at: 100.0, ..Second::default() });
        assert!(objections(&result)[0].starts_with("the driver did not run for 200 ms in 2 pauses"));
    }
}
