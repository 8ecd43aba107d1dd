//! Whether the figures of a stored result agree with each other: a damaged file must not pass for a measurement.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::result::file::{DriveResult, OperationResult, RunDescription};
use crate::result::histogram::Durations;
use crate::result::latency::{Distribution, Percentiles};
use crate::result::second::Second;

/// Greater figures are of no run, and their sums would overflow.
const MAX_FIGURE: f64 = 9_007_199_254_740_992.0;
/// How much a stored mean may differ from the mean of its histogram.
const ROUNDING: f64 = 1e-6;

/// Checks the figures.
///
/// # Errors
/// The first field that contradicts another one, and how.
pub(super) fn check(result: &DriveResult) -> Result<(), String> {
    let run = &result.run;
    // The seed may be any number.
    bounded("run", &RunDescription { seed: 0, ..run.clone() })?;
    bounded("began", &result.began)?;
    bounded("operations", &result.operations)?;
    bounded("total", &result.total)?;
    bounded("chaos", &result.chaos)?;
    bounded("proof", &result.proof)?;
    bounded("driver", &result.driver)?;
    bounded("find_max", &result.find_max)?;
    let names: Vec<&str> = result.operations.iter().map(|one| one.name.as_str()).collect();
    holds(run.operations == names, || {
        format!("run.operations are {:?}, and the names of operations {names:?}", run.operations)
    })?;
    if let Some(part) = &run.part {
        let numbers =
            part.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let fits = numbers.is_some_and(|(number, of): (u64, u64)| (1..=of).contains(&number));
        holds(fits, || format!("run.part is {part:?}"))?;
    }
    holds(!result.valid || result.invalid_because.is_empty(), || {
        "valid is true, and invalid_because not empty".to_owned()
    })?;
    for (place, one) in result.operations.iter().enumerate() {
        operation(&format!("operations[{place}]"), one)?;
    }
    operation("total", &result.total)?;
    total(result)?;
    seconds(&result.seconds, &names)?;
    driver(result)?;
    let Some(found) = &result.find_max else { return Ok(()) };
    at_most("find_max.low", found.low, "find_max.rate", found.rate)?;
    at_most("find_max.rate", found.rate, "find_max.high", found.high)?;
    at_most("find_max.confidence", found.confidence, "a share", 1.0)
}

fn holds(fits: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if fits { Ok(()) } else { Err(what()) }
}

fn equal(field: &str, value: u128, other: &str, expected: u128) -> Result<(), String> {
    holds(value == expected, || format!("{field} is {value}, and {other} {expected}"))
}

fn at_most(field: &str, value: f64, other: &str, most: f64) -> Result<(), String> {
    holds(value <= most, || format!("{field} is {value}, and {other} only {most}"))
}

/// Refuses negative figures, and those that no run reaches.
fn bounded(field: &str, part: &impl Serialize) -> Result<(), String> {
    let part = serde_json::to_value(part).map_err(|error| error.to_string())?;
    in_bounds(&part).map_err(|what| format!("{field}{what}"))
}

fn in_bounds(value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let fits = number.as_f64().is_some_and(|number| (0.0..=MAX_FIGURE).contains(&number));
            holds(fits, || format!(" is {number}"))
        }
        Value::Array(all) => {
            let mut all = all.iter().enumerate();
            all.try_for_each(|(place, one)| in_bounds(one).map_err(|what| format!("[{place}]{what}")))
        }
        Value::Object(all) => {
            all.iter().try_for_each(|(name, one)| in_bounds(one).map_err(|what| format!(".{name}{what}")))
        }
        _ => Ok(()),
    }
}

/// The figures of one operation, or of all.
fn operation(field: &str, one: &OperationResult) -> Result<(), String> {
    let of = |name: &str| format!("{field}.{name}");
    let failed = failed(&one.errors);
    equal(&of("intended"), one.intended.into(), "ok and errors are", u128::from(one.ok) + failed)?;
    for (name, all) in [("latency", &one.latency), ("service", &one.service), ("failures", &one.failures)] {
        distribution(&of(name), all)?;
    }
    for (name, all) in [("latency", &one.latency), ("service", &one.service)] {
        equal(&of(&format!("{name}.count")), all.percentiles.count.into(), "ok is", one.ok.into())?;
    }
    at_most(&of("failures.count"), one.failures.percentiles.count as f64, "errors are", failed as f64)?;
    at_most(&of("late"), one.late as f64, "intended is", one.intended as f64)?;
    at_most(&of("retried"), one.retried as f64, "ok is", one.ok as f64)
}

fn failed(errors: &BTreeMap<String, u64>) -> u128 {
    errors.values().map(|count| u128::from(*count)).sum()
}

/// The figures of a distribution are derived from its histogram.
fn distribution(field: &str, all: &Distribution) -> Result<(), String> {
    let (stored, found) = (&all.percentiles, Percentiles::from(&all.histogram));
    holds((stored.mean_us - found.mean_us).abs() <= ROUNDING * found.mean_us, || {
        format!("{field}.mean_us is {}, and that of its histogram {}", stored.mean_us, found.mean_us)
    })?;
    holds(*stored == Percentiles { mean_us: stored.mean_us, ..found }, || {
        format!("{field} does not fit its histogram: {stored:?} where it has {found:?}")
    })
}

/// A count of an operation, and its name.
type Count = (&'static str, fn(&OperationResult) -> u128);

/// The total is the sum of the operations.
fn total(result: &DriveResult) -> Result<(), String> {
    let DriveResult { total, operations, .. } = result;
    let counts: [Count; 7] = [
        ("intended", |one| one.intended.into()),
        ("ok", |one| one.ok.into()),
        ("rows", |one| one.rows.into()),
        ("retries", |one| one.retries.into()),
        ("retried", |one| one.retried.into()),
        ("late", |one| one.late.into()),
        ("errors", |one| failed(&one.errors)),
    ];
    for (name, count) in counts {
        let sum = operations.iter().map(count).sum();
        equal(&format!("total.{name}"), count(total), "that of all operations", sum)?;
    }
    // The counts have shown that these sums do not overflow.
    let sum = OperationResult::sum(operations.iter());
    holds(total.errors == sum.errors, || "total.errors are not those of all operations".to_owned())?;
    let histogram = |name, stored: &Durations, sum: &Durations| {
        holds(stored == sum, || format!("total.{name}.histogram is not the sum of those of the operations"))
    };
    histogram("latency", &total.latency.histogram, &sum.latency.histogram)?;
    histogram("service", &total.service.histogram, &sum.service.histogram)?;
    histogram("failures", &total.failures.histogram, &sum.failures.histogram)
}

/// Seconds follow each other, and count what their histograms count.
fn seconds(seconds: &[Second], names: &[&str]) -> Result<(), String> {
    let mut before = 0.0;
    for (place, second) in seconds.iter().enumerate() {
        let field = format!("seconds[{place}]");
        bounded(&field, second)?;
        holds(second.at > before && second.length > 0.0, || {
            format!("{field}.at is {} after {before}, its length {}", second.at, second.length)
        })?;
        before = second.at;
        let (causes, late) = (second.late_by_driver + second.late_by_pool, second.late);
        at_most(&format!("{field}.late_by_driver and late_by_pool"), causes as f64, "late is", late as f64)?;
        for (name, one) in &second.operations {
            let field = format!("{field}.operations.{name}");
            holds(names.contains(&name.as_str()), || format!("{field} is not among run.operations"))?;
            let heat = one.heat.iter().map(|(_, count)| u128::from(*count)).sum();
            for (name, all) in [("latency", &one.latency), ("service", &one.service)] {
                let name = format!("{field}.{name}");
                equal(&format!("{name}.count"), all.count.into(), "ok is", one.ok.into())?;
                let figures = all.figures();
                holds(figures.is_sorted(), || format!("{name} has decreasing percentiles: {figures:?}"))?;
            }
            equal(&format!("{field}.heat"), heat, "ok is", one.ok.into())?;
        }
    }
    Ok(())
}

/// Every late operation has one cause.
fn driver(result: &DriveResult) -> Result<(), String> {
    let DriveResult { driver, total, .. } = result;
    distribution("driver.lateness", &driver.lateness)?;
    let causes = driver.late_by_server + driver.late_by_driver + driver.late_by_pool;
    let names = "driver.late_by_server, late_by_driver and late_by_pool";
    equal(names, causes.into(), "total.late is", total.late.into())?;
    let intended = total.intended as f64;
    at_most(
        "driver.lateness.count",
        driver.lateness.percentiles.count as f64,
        "total.intended is",
        intended,
    )?;
    at_most("driver.spoilt", driver.spoilt as f64, "total.intended is", intended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::file::{FORMAT, FindMax, VERSION};
    use crate::result::second::OperationSecond;

    /// A result of two operations, as a run leaves it.
    fn result() -> DriveResult {
        let operation = |name: &str, micros: u64| {
            let mut times = Durations::default();
            times.record_micros(micros, 3);
            times.record_micros(70_001, 1);
            let mut failures = Durations::default();
            failures.record_micros(900, 1);
            OperationResult {
                name: name.into(),
                intended: 6,
                ok: 4,
                errors: [("lost".to_owned(), 1), ("unstarted".to_owned(), 1)].into(),
                late: 2,
                latency: times.clone().into(),
                service: times.into(),
                failures: failures.into(),
                ..OperationResult::default()
            }
        };
        let operations = vec![operation("insert", 150), operation("read", 20_000)];
        let total = OperationResult { name: "all".into(), ..OperationResult::sum(operations.iter()) };
        let times = &operations[0].latency.histogram;
        let second = OperationSecond {
            ok: 4,
            latency: times.into(),
            service: times.into(),
            heat: times.coarse(),
            ..OperationSecond::default()
        };
        let seconds = [1.0, 2.0].map(|at| Second {
            at,
            length: 1.0,
            operations: [("insert".to_owned(), second.clone())].into(),
            ..Second::default()
        });
        let mut result = DriveResult {
            format: FORMAT.into(),
            version: VERSION,
            run: RunDescription {
                part: Some("1/2".into()),
                seed: u64::MAX,
                operations: vec!["insert".into(), "read".into()],
                ..RunDescription::default()
            },
            valid: true,
            total,
            operations,
            seconds: seconds.into(),
            find_max: Some(FindMax { low: 1.0, rate: 2.0, high: 3.0, ..FindMax::default() }),
            ..DriveResult::default()
        };
        result.driver.late_by_pool = 4;
        result
    }

    #[test]
    fn a_result_that_contradicts_itself_is_refused_by_file_and_field() {
        let sound = serde_json::to_value(result()).unwrap();
        assert_eq!(DriveResult::from_json(&sound.to_string(), "a.json").as_ref(), Ok(&result()));
        for (field, value, what) in [
            ("/total/latency/histogram", "[[5,1]]", "total.latency"),
            ("/operations/0/latency/histogram/0/1", "2", "operations[0].latency"),
            ("/operations/0/latency/max_us", "5", "operations[0].latency"),
            ("/operations/1/service/mean_us", "3.5", "operations[1].service.mean_us"),
            ("/operations/0/errors/lost", "7", "operations[0].intended"),
            ("/operations/0/late", "9", "operations[0].late"),
            ("/operations/0/failures/histogram", "[]", "operations[0].failures"),
            ("/operations/0/rate", "-1.0", "operations[0].rate is -1"),
            ("/operations/1/rows", "18446744073709551615", "operations[1].rows is 18446744073709551615"),
            ("/operations/1/rows", "5", "total.rows is 0"),
            ("/operations/1/name", "\"x\"", "run.operations"),
            ("/run/duration", "-3", "run.duration is -3"),
            ("/run/part", "\"3/2\"", "run.part"),
            ("/total/retried", "1", "total.retried"),
            ("/total/errors", r#"{"lost":4}"#, "total.errors"),
            ("/seconds/1/at", "0.5", "seconds[1].at"),
            ("/seconds/0/operations/insert/heat", "[]", "seconds[0].operations.insert.heat"),
            ("/seconds/0/operations/insert/ok", "3", "seconds[0].operations.insert.latency.count"),
            ("/seconds/0/operations/insert/latency/p99_us", "1", "seconds[0].operations.insert.latency"),
            ("/seconds/0/late_by_pool", "1", "seconds[0].late_by_driver"),
            ("/driver/late_by_server", "1", "driver.late_by_server"),
            ("/driver/spoilt", "13", "driver.spoilt"),
            ("/invalid_because", "[\"x\"]", "valid"),
            ("/find_max/rate", "9", "find_max.rate"),
        ] {
            let mut damaged = sound.clone();
            *damaged.pointer_mut(field).unwrap() = serde_json::from_str(value).unwrap();
            let error = DriveResult::from_json(&damaged.to_string(), "a.json").unwrap_err();
            assert!(error.what().contains(what) && error.place() == "a.json", "{field}: {error}");
        }
    }
}
