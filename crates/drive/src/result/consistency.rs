//! Whether the figures of a stored result agree with each other: a damaged file must not pass for a measurement.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::plan::limit::Limit;
use crate::result::file::{DriveResult, FindMax, LimitResult, OperationResult, RunDescription};
use crate::result::histogram::Durations;
use crate::result::latency::{Distribution, Percentiles};
use crate::result::proof::Proof;
use crate::result::second::Second;
use crate::run::find_max::summarise;
use crate::run::verdict::objections;

/// No run reaches greater figures, and their sums would overflow.
const MAX_FIGURE: f64 = 9_007_199_254_740_992.0;
/// How much a stored figure may differ from the value computed from other figures.
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
    holds(run.duration > 0.0, || "run.duration is 0".to_owned())?;
    let ended_early = result.interrupted || result.aborted.is_some();
    holds(ended_early || !result.seconds.is_empty(), || "seconds is empty".to_owned())?;
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
    for (place, one) in result.operations.iter().enumerate() {
        operation(&format!("operations[{place}]"), one)?;
    }
    operation("total", &result.total)?;
    total(result)?;
    seconds(&result.seconds, &names)?;
    sums(result)?;
    rates(result, ended_early)?;
    driver(result)?;
    validity(result)?;
    for (place, one) in result.proof.iter().enumerate() {
        proof(&format!("proof[{place}]"), one)?;
    }
    for place in &run.proves {
        let is_there = result.proof.iter().any(|one| one.place() == *place);
        holds(is_there, || format!("run.proves has {place:?}, and proof has not"))?;
    }
    result.find_max.as_ref().map_or(Ok(()), |found| find_max(found, result.valid))
}

/// Judges the limits by the figures, whatever the file says.
///
/// # Errors
/// A limit that cannot be read, or a stored verdict that differs.
pub(super) fn judge(result: &mut DriveResult) -> Result<(), String> {
    let judged = |(place, stored): (usize, &LimitResult)| -> Result<LimitResult, String> {
        let field = format!("limits[{place}]");
        let limit: Limit = stored.limit.parse().map_err(|what: String| format!("{field}.limit: {what}"))?;
        let is_known = |name: &str| result.run.operations.iter().any(|known| known == name);
        holds(limit.operation().is_none_or(is_known), || {
            format!("{field}.limit is {:?}, and run.operations {:?}", stored.limit, result.run.operations)
        })?;
        let found = limit.judge(result);
        holds(found.held == stored.held, || {
            format!(
                "{field}.held is {}, and the figure of {:?} is {}",
                stored.held, found.limit, found.measured
            )
        })?;
        Ok(found)
    };
    result.limits = result.limits.iter().enumerate().map(judged).collect::<Result<_, _>>()?;
    Ok(())
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

/// Refuses a figure that differs from its computed value.
fn close(field: &str, value: f64, other: &str, expected: f64) -> Result<(), String> {
    holds(is_close(value, expected), || format!("{field} is {value}, and {other} {expected}"))
}

fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= ROUNDING * value.abs().max(expected.abs())
}

/// Refuses negative figures and figures that no run reaches.
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
    close(&format!("{field}.mean_us"), stored.mean_us, "that of its histogram", found.mean_us)?;
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

/// The seconds contain every operation of the whole run, and also the warm-up's.
fn sums(result: &DriveResult) -> Result<(), String> {
    for (place, one) in result.operations.iter().enumerate() {
        let (mut ok, mut rows, mut errors) = (0, 0, 0);
        for second in result.seconds.iter().filter_map(|second| second.operations.get(&one.name)) {
            ok += u128::from(second.ok);
            rows += u128::from(second.rows);
            errors += failed(&second.errors);
        }
        let counts = [
            ("ok", u128::from(one.ok), ok),
            ("rows", one.rows.into(), rows),
            ("errors", failed(&one.errors), errors),
        ];
        for (name, whole, seconds) in counts {
            let fits = if result.run.warm_up > 0.0 { whole <= seconds } else { whole == seconds };
            holds(fits, || format!("operations[{place}].{name} is {whole}, and its seconds have {seconds}"))?;
        }
    }
    Ok(())
}

/// A rate counts the operations that ended well over the counted time: the planned duration, or longer if the last
/// operation ended later. Each driving process has its own counted time.
fn rates(result: &DriveResult, ended_early: bool) -> Result<(), String> {
    let run = &result.run;
    let ran = result.seconds.last().map_or(0.0, |last| last.at - run.warm_up);
    let longest = ran.max(run.duration);
    let operations = result.operations.iter().enumerate();
    let operations = operations.map(|(place, one)| (format!("operations[{place}].rate"), one));
    for (field, one) in operations.chain([("total.rate".to_owned(), &result.total)]) {
        let ok = one.ok as f64;
        let greatest = if ended_early && one.ok > 0 { f64::INFINITY } else { ok / run.duration };
        let fits = one.rate >= ok / longest * (1.0 - ROUNDING) && one.rate <= greatest * (1.0 + ROUNDING);
        holds(fits, || format!("{field} is {}, and ok {ok} in {} s", one.rate, run.duration))?;
    }
    let sum = result.operations.iter().map(|one| one.rate).sum();
    close("total.rate", result.total.rate, "that of all operations", sum)
}

/// A result is valid only if nothing speaks against it.
fn validity(result: &DriveResult) -> Result<(), String> {
    let DriveResult { valid, invalid_because, .. } = result;
    holds(*valid == invalid_because.is_empty(), || {
        format!("valid is {valid}, and invalid_because {invalid_because:?}")
    })?;
    let found = objections(result);
    holds(!valid || found.is_empty(), || format!("valid is true, but {}", found.join("; ")))
}

/// Every acknowledged row was found or lost, or is wrong. Parts of a run that did not look contribute no rows.
fn proof(field: &str, one: &Proof) -> Result<(), String> {
    let sum = |counts: &[u64]| counts.iter().map(|count| u128::from(*count)).sum::<u128>();
    let least = sum(&[one.found, one.lost]);
    let most = least + sum(&[one.different, one.lost_updates, one.unsent_updates, one.not_checked]);
    holds((least..=most).contains(&one.acknowledged.into()), || {
        format!(
            "{field}.acknowledged is {}, and found, lost and wrong are {least} to {most}",
            one.acknowledged
        )
    })?;
    let written = sum(&[one.acknowledged, one.failed, one.unknown]);
    at_most(
        &format!("{field}.acknowledged, failed and unknown"),
        written as f64,
        "written is",
        one.written as f64,
    )?;
    at_most(&format!("{field}.unknown_found"), one.unknown_found as f64, "unknown is", one.unknown as f64)
}

/// The summary follows from the searches, and each search found a rate that held. Only an invalid result has no rate:
/// the driver spoilt every search.
fn find_max(found: &FindMax, valid: bool) -> Result<(), String> {
    holds(!found.found.is_empty() || !valid, || "find_max.found is empty".to_owned())?;
    let mut again = FindMax { rate: 0.0, low: 0.0, high: 0.0, confidence: 0.0, ..found.clone() };
    summarise(&mut again);
    for (name, stored, computed) in [
        ("rate", found.rate, again.rate),
        ("low", found.low, again.low),
        ("high", found.high, again.high),
        ("confidence", found.confidence, again.confidence),
    ] {
        close(&format!("find_max.{name}"), stored, "that of find_max.found", computed)?;
    }
    if let Some(place) = found.trials.iter().position(|trial| trial.held && !trial.valid) {
        return Err(format!("find_max.trials[{place}] held, and is not valid"));
    }
    let held = |rate: f64| found.trials.iter().any(|trial| trial.held && is_close(trial.rate, rate));
    let untried = found.found.iter().copied().find(|rate| *rate > 0.0 && !held(*rate));
    untried.map_or(Ok(()), |rate| Err(format!("find_max.found has {rate}, and no trial of it held")))
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
    use crate::result::file::{FORMAT, Trial, VERSION};
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
                rate: 2.0,
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
        let second = |operation: &OperationResult, share: u64, kind: &str| {
            // The first second has three of the four, the other one the slowest.
            let mut here = Durations::default();
            let buckets = operation.latency.histogram.buckets().filter(|(_, count)| *count == share);
            buckets.for_each(|(micros, count)| here.record_micros(micros, count));
            OperationSecond {
                ok: share,
                errors: [(kind.to_owned(), 1)].into(),
                latency: (&here).into(),
                service: (&here).into(),
                heat: here.coarse(),
                ..OperationSecond::default()
            }
        };
        let seconds = [(1.0, 3, "lost"), (2.0, 1, "unstarted")].map(|(at, share, kind)| Second {
            at,
            length: 1.0,
            operations: operations.iter().map(|one| (one.name.clone(), second(one, share, kind))).collect(),
            ..Second::default()
        });
        let mut result = DriveResult {
            format: FORMAT.into(),
            version: VERSION,
            run: RunDescription {
                part: Some("1/2".into()),
                seed: u64::MAX,
                duration: 2.0,
                operations: vec!["insert".into(), "read".into()],
                proves: vec!["table orders".into()],
                ..RunDescription::default()
            },
            valid: true,
            total,
            operations,
            seconds: seconds.into(),
            find_max: Some(FindMax {
                found: vec![1.0, 2.0, 3.0],
                low: 1.0,
                rate: 2.0,
                high: 3.0,
                confidence: 0.75,
                trials: [1.0, 2.0, 3.0]
                    .map(|rate| Trial { rate, held: true, valid: true, ..Trial::default() })
                    .into(),
                ..FindMax::default()
            }),
            proof: vec![Proof {
                table: "orders".into(),
                written: 9,
                acknowledged: 7,
                found: 6,
                lost: 1,
                unknown: 2,
                ..Proof::default()
            }],
            ..DriveResult::default()
        };
        result.driver.late_by_pool = 4;
        let limits = ["insert.p50 < 1ms", "p50 < 1ms", "errors <= 40%", "rate >= 4"];
        result.limits = limits.map(|text| text.parse::<Limit>().unwrap().judge(&result)).into();
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
            ("/seconds/0/operations/insert/ok", "2", "seconds[0].operations.insert.latency.count"),
            ("/seconds/0/operations/insert/latency/p99_us", "1", "seconds[0].operations.insert.latency"),
            ("/seconds/0/late_by_pool", "1", "seconds[0].late_by_driver"),
            ("/driver/late_by_server", "1", "driver.late_by_server"),
            ("/driver/spoilt", "13", "driver.spoilt"),
            ("/invalid_because", "[\"x\"]", "valid"),
            ("/find_max/rate", "9", "find_max.rate"),
            ("/find_max/found", "[]", "find_max.found is empty"),
            ("/find_max/trials/1/held", "false", "find_max.found has 2"),
            ("/find_max/trials/0/valid", "false", "find_max.trials[0]"),
            ("/find_max/confidence", "0.95", "find_max.confidence is 0.95"),
            ("/run/duration", "0", "run.duration is 0"),
            ("/seconds", "[]", "seconds is empty"),
            ("/seconds/0/operations/read/errors", "{}", "operations[1].errors is 2, and its seconds have 1"),
            ("/operations/0/rate", "3.0", "operations[0].rate is 3"),
            ("/total/rate", "3.9", "total.rate is 3.9"),
            ("/valid", "false", "valid is false"),
            ("/driver/spoilt", "1", "valid is true, but in 8.3 % of the operations"),
            ("/driver/spoilt", "12", "valid is true, but in 100.0 % of the operations"),
            ("/limits/0/held", "false", "limits[0].held is false"),
            ("/limits/1/held", "true", "limits[1].held is true"),
            ("/limits/2/limit", "\"errors fewer\"", "limits[2].limit: no < or >"),
            ("/limits/2/limit", "\"delete.p50 < 1s\"", "limits[2].limit is"),
            ("/proof/0/lost", "0", "proof[0].acknowledged is 7"),
            ("/proof/0/lost", "5", "proof[0].acknowledged is 7, and found, lost and wrong are 11 to 11"),
            ("/proof", "[]", "run.proves has \"table orders\", and proof has not"),
            ("/proof/0/table", "\"other\"", "run.proves has"),
            ("/proof/0/written", "8", "proof[0].acknowledged, failed and unknown"),
            ("/proof/0/unknown_found", "3", "proof[0].unknown_found"),
        ] {
            let mut damaged = sound.clone();
            *damaged.pointer_mut(field).unwrap() = serde_json::from_str(value).unwrap();
            let error = DriveResult::from_json(&damaged.to_string(), "a.json").unwrap_err();
            assert!(error.what().contains(what) && error.place() == "a.json", "{field}: {error}");
        }
    }

    #[test]
    fn what_a_limit_measured_is_computed_and_not_believed() {
        let mut told = result();
        told.limits[0].measured = "1 ns".into();
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(DriveResult::from_json(&text, "a.json").unwrap(), result());
    }
}
