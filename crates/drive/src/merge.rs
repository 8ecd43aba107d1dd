//! Merges the results of several driving processes into one.
//!
//! Adds histograms of the whole run count by count, which is exact. Histograms of single seconds are stored in
//! coarse buckets. Percentiles of a merged second are therefore upper bounds, up to a fifth too high.

use std::collections::BTreeMap;

use sawmill_profile::Error;

use crate::plan::limit::Limit;
use crate::report::NamedResult;
use crate::result::file::{
    DriveResult, DriverReport, LimitResult, OperationResult, RunDescription, add_counts,
};
use crate::result::histogram::Durations;
use crate::result::latency::{Distribution, Percentiles};
use crate::result::proof::Proof;
use crate::result::second::{OperationSecond, Second, ServerSample};

/// Merges the results of the parts of one load test.
///
/// # Errors
/// The list is empty; the results have different plans or targets; they did not run together; a result is not a part of
/// a run; a part is missing or occurs twice; or a result is a search for the highest rate.
pub fn merge(parts: &[NamedResult]) -> Result<DriveResult, Error> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(Error::failed("there are no results to merge", "", "pass the results of all parts"));
    };
    rest.iter().try_for_each(|other| same_plan(first, other))?;
    all_parts(parts)?;
    ran_together(parts)?;
    if let Some(search) = parts.iter().find(|part| part.result.find_max.is_some()) {
        let what = "a search for the highest rate cannot be merged";
        return Err(Error::failed(what, &search.name, "merge runs at a fixed rate"));
    }
    let results: Vec<&DriveResult> = parts.iter().map(|part| &part.result).collect();
    let operations: Vec<OperationResult> = (0..first.result.operations.len())
        .map(|place| OperationResult::sum(results.iter().filter_map(|result| result.operations.get(place))))
        .collect();
    let invalid_because = parts.iter().flat_map(|NamedResult { name, result }| {
        result.invalid_because.iter().map(move |reason| format!("{name}: {reason}"))
    });
    let mut merged = DriveResult {
        started: results.iter().map(|result| result.started.clone()).min().unwrap_or_default(),
        began: results.iter().map(|result| result.began).fold(f64::INFINITY, f64::min),
        command: results.iter().map(|result| result.command.as_str()).collect::<Vec<_>>().join("; "),
        versions: results.iter().flat_map(|result| result.versions.clone()).collect(),
        run: RunDescription {
            connections: results.iter().map(|result| result.run.connections).sum(),
            part: None,
            ..first.result.run.clone()
        },
        valid: results.iter().all(|result| result.valid),
        invalid_because: invalid_because.collect(),
        interrupted: results.iter().any(|result| result.interrupted),
        aborted: results.iter().find_map(|result| result.aborted.clone()),
        total: OperationResult::sum(results.iter().map(|result| &result.total)),
        operations,
        seconds: seconds(&results),
        chaos: results.iter().flat_map(|result| result.chaos.clone()).collect(),
        limits: Vec::new(),
        proof: proof(parts),
        driver: driver(&results),
        find_max: None,
        ..first.result.clone()
    };
    merged.chaos.sort_by(|a, b| a.at.total_cmp(&b.at));
    merged.limits = limits(parts, &merged)?;
    Ok(merged)
}

/// The limits of the parts, compared with the merged figures.
fn limits(parts: &[NamedResult], merged: &DriveResult) -> Result<Vec<LimitResult>, Error> {
    let mut limits: Vec<LimitResult> = Vec::new();
    for part in parts {
        for LimitResult { limit, .. } in &part.result.limits {
            if limits.iter().any(|known| known.limit == *limit) {
                continue;
            }
            let unknown = |what: String| Error::failed(what, &part.name, "merge with the sawmill that drove");
            limits.push(limit.parse::<Limit>().map_err(unknown)?.judge(merged));
        }
    }
    Ok(limits)
}

fn same_plan(first: &NamedResult, other: &NamedResult) -> Result<(), Error> {
    let (a, b) = (&first.result.run, &other.result.run);
    let differs = [
        ("plan", (&a.name, &a.plan) != (&b.name, &b.plan)),
        ("target", a.target != b.target),
        ("isolation level", a.isolation != b.isolation),
        ("seed", a.seed != b.seed),
        ("rate", a.shape != b.shape),
        (
            "operations",
            a.operations != b.operations || first.result.operations.len() != other.result.operations.len(),
        ),
        ("loop", a.loop_kind != b.loop_kind),
        ("arrivals", a.arrivals != b.arrivals),
        ("warm-up", a.warm_up != b.warm_up),
        ("length", a.duration != b.duration),
    ];
    let differs: Vec<&str> = differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if differs.is_empty() {
        return Ok(());
    }
    Err(Error::failed(
        format!("the results are not of one load test: {} differs", differs.join(", ")),
        format!("{} and {}", first.name, other.name),
        "merge the parts of one run: the same plan with --part 1/n to n/n",
    ))
}

/// Checks that each part of a run occurs once.
fn all_parts(parts: &[NamedResult]) -> Result<(), Error> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for part in parts {
        let Some(number) = part.result.run.part.as_deref() else {
            let what = "the result is of a whole run, not of a part";
            return Err(Error::failed(what, &part.name, "pass the results of --part 1/n to n/n of one run"));
        };
        if let Some(before) = seen.insert(number, &part.name) {
            let what = format!("part {number} comes twice");
            return Err(Error::failed(what, format!("{before} and {}", part.name), "pass each part once"));
        }
    }
    let Some(of) = seen.keys().next().and_then(|number| number.split_once('/')).map(|(_, of)| of) else {
        return Ok(());
    };
    if seen.keys().any(|number| !number.ends_with(&format!("/{of}"))) {
        return Err(Error::failed(
            "the results are parts of different divisions",
            "",
            "merge the parts of one run",
        ));
    }
    let missing: Vec<String> = (1..=of.parse::<u64>().unwrap_or(0))
        .map(|number| format!("{number}/{of}"))
        .filter(|number| !seen.contains_key(number.as_str()))
        // A damaged result may say that there are billions.
        .take(MAX_SHOWN)
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        missing => {
            let what = format!("part {} is missing", missing.join(", "));
            Err(Error::failed(what, "", "pass the results of all parts"))
        }
    }
}

/// The most parts that a message names.
const MAX_SHOWN: usize = 10;

/// How far apart parts of one run may begin, in seconds: their machines' clocks may differ by that much.
const TOGETHER: f64 = 1.0;

/// Checks that no result occurs twice, and that all ran together: rates from different times do not add up.
fn ran_together(parts: &[NamedResult]) -> Result<(), Error> {
    let length = |one: &NamedResult| one.result.seconds.last().map_or(0.0, |last| last.at);
    for (place, part) in parts.iter().enumerate() {
        if part.result.began <= 0.0 {
            let what = "the result does not say when it began";
            return Err(Error::failed(what, &part.name, "drive again with this sawmill"));
        }
        for other in parts.get(..place).unwrap_or_default() {
            let (a, b) = (&other.result, &part.result);
            // Two processes never measure the same times.
            if (&a.total, &a.seconds) == (&b.total, &b.seconds) {
                let place = format!("{} and {}", other.name, part.name);
                return Err(Error::failed("one result comes twice", place, "pass each once"));
            }
            let seconds = b.began - a.began;
            if seconds.abs() > length(other).min(length(part)).min(TOGETHER) {
                let later = if seconds > 0.0 { "after" } else { "before" };
                let when = format!("{:.1} s {later}", seconds.abs());
                let what = format!("{} began {when} {}", part.name, other.name);
                return Err(Error::failed(what, "", "start all parts at one time: --start-at SECONDS"));
            }
        }
    }
    Ok(())
}

/// A second, and the index of the part that measured it.
type OfPart<'a> = (usize, &'a Second);

/// The merged seconds by number: the parts began together.
fn seconds(results: &[&DriveResult]) -> Vec<Second> {
    let mut by_number: BTreeMap<u64, Vec<OfPart<'_>>> = BTreeMap::new();
    for (part, result) in results.iter().enumerate() {
        for second in &result.seconds {
            by_number.entry(second.at.max(0.0).round() as u64).or_default().push((part, second));
        }
    }
    by_number.into_values().map(|all| second(&all)).collect()
}

/// Sums the seconds with one number. If a part has two of them, such as a short last one, their rates are averaged.
fn second(all: &[OfPart<'_>]) -> Second {
    let mut sum = Second::default();
    let mut operations: BTreeMap<String, Vec<&OperationSecond>> = BTreeMap::new();
    for (place, (part, one)) in all.iter().enumerate() {
        let same = all.iter().filter(|(other, _)| other == part);
        let length: f64 = same.map(|(_, second)| second.length).sum();
        sum.at = sum.at.max(one.at);
        sum.length = sum.length.max(length);
        sum.warm_up |= one.warm_up;
        sum.intended += one.intended * one.length / length;
        sum.achieved += one.achieved * one.length / length;
        sum.late += one.late;
        sum.late_by_driver += one.late_by_driver;
        sum.late_by_pool += one.late_by_pool;
        if all.iter().skip(place + 1).all(|(other, _)| other != part) {
            sum.in_flight += one.in_flight;
            sum.backlog += one.backlog;
        }
        for (name, operation) in &one.operations {
            operations.entry(name.clone()).or_default().push(operation);
        }
    }
    sum.operations = operations.into_iter().map(|(name, all)| (name, operation_second(&all))).collect();
    sum.server = server(all);
    sum
}

/// All parts watch one server: takes the sample with the most figures.
fn server(all: &[OfPart<'_>]) -> Option<ServerSample> {
    let known = |server: &&ServerSample| {
        [server.processors.is_some(), server.memory.is_some(), server.wal.is_some(), server.active.is_some()]
            .into_iter()
            .filter(|known| *known)
            .count()
    };
    all.iter().filter_map(|(_, second)| second.server.as_ref()).max_by_key(known).cloned()
}

fn operation_second(all: &[&OperationSecond]) -> OperationSecond {
    let mut sum = OperationSecond::default();
    let mut heat: BTreeMap<u64, u64> = BTreeMap::new();
    for one in all {
        sum.ok += one.ok;
        sum.rows += one.rows;
        sum.retries += one.retries;
        add_counts(&mut sum.errors, &one.errors);
        for (value, count) in &one.heat {
            *heat.entry(*value).or_default() += count;
        }
    }
    let latencies: Vec<&Percentiles> = all.iter().map(|one| &one.latency).collect();
    let services: Vec<&Percentiles> = all.iter().map(|one| &one.service).collect();
    sum.heat = heat.into_iter().collect();
    sum.latency = of_heat(&latencies, &sum.heat);
    // Service times have no coarse buckets; the greatest percentile of a part is an upper bound.
    sum.service = greatest(&services);
    sum
}

/// The percentiles of coarse counts; number, mean and greatest value are exact.
fn of_heat(all: &[&Percentiles], heat: &[(u64, u64)]) -> Percentiles {
    let mut coarse = Durations::default();
    heat.iter().for_each(|(value, count)| coarse.record_micros(*value, *count));
    let exact = greatest(all);
    let at = |share: f64| coarse.quantile(share).min(exact.max_us);
    Percentiles { p50_us: at(0.5), p90_us: at(0.9), p99_us: at(0.99), p999_us: at(0.999), ..exact }
}

fn greatest(all: &[&Percentiles]) -> Percentiles {
    let count: u64 = all.iter().map(|one| one.count).sum();
    let sum: f64 = all.iter().filter(|one| one.count > 0).map(|one| one.mean_us * one.count as f64).sum();
    let most = |pick: fn(&Percentiles) -> u64| all.iter().map(|one| pick(one)).max().unwrap_or(0);
    Percentiles {
        count,
        mean_us: if count == 0 { 0.0 } else { sum / count as f64 },
        p50_us: most(|one| one.p50_us),
        p90_us: most(|one| one.p90_us),
        p99_us: most(|one| one.p99_us),
        p999_us: most(|one| one.p999_us),
        max_us: most(|one| one.max_us),
    }
}

/// Sums by table: each part has checked its own rows. A table counts as unchecked if any part did not look at it.
fn proof(parts: &[NamedResult]) -> Vec<Proof> {
    let is_of = |one: &Proof, other: &Proof| (one.check, &one.table) == (other.check, &other.table);
    let mut all: Vec<Proof> = Vec::new();
    for one in parts.iter().flat_map(|part| &part.result.proof) {
        match all.iter_mut().find(|sum| is_of(sum, one)) {
            Some(sum) => sum.add(one),
            None => all.push(one.clone()),
        }
    }
    for sum in &mut all {
        let blind = parts.iter().find(|part| !part.result.proof.iter().any(|one| is_of(one, sum)));
        if let Some(part) = blind {
            let what = if sum.check { "did not carry it out" } else { "did not look for its rows" };
            sum.unchecked.get_or_insert_with(|| format!("{} {what}", part.name));
        }
    }
    all
}

fn driver(results: &[&DriveResult]) -> DriverReport {
    let mut lateness = Durations::default();
    results.iter().for_each(|result| lateness.add(&result.driver.lateness.histogram));
    let cpu: f64 = results.iter().map(|result| result.driver.cpu).sum();
    let operations: u64 = results.iter().map(|result| result.total.intended).sum();
    let capacities: Option<Vec<f64>> = results.iter().map(|result| result.driver.capacity).collect();
    let count = |of: fn(&DriverReport) -> u64| results.iter().map(|result| of(&result.driver)).sum();
    let drivers = results.iter().map(|result| &result.driver);
    let worst = drivers.max_by(|a, b| a.paused.total_cmp(&b.paused));
    DriverReport {
        cpu,
        cpu_us_per_operation: cpu * 1e6 / (operations as f64).max(1.0),
        lateness: Distribution::from(lateness),
        late_by_server: count(|driver| driver.late_by_server),
        late_by_driver: count(|driver| driver.late_by_driver),
        late_by_pool: count(|driver| driver.late_by_pool),
        spoilt: count(|driver| driver.spoilt),
        pauses: worst.map_or(0, |driver| driver.pauses),
        paused: worst.map_or(0.0, |driver| driver.paused),
        waited: results.iter().map(|result| result.driver.waited).fold(0.0, f64::max),
        capacity: capacities.map(|all| all.iter().sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part `number` of a run; `values` has the latencies of its operations, and how many operations took each.
    fn part(number: &str, values: &[(u64, u64)]) -> NamedResult {
        let mut histogram = Durations::default();
        values.iter().for_each(|(value, count)| histogram.record_micros(*value, *count));
        let heat = histogram.coarse();
        let operation = OperationResult {
            name: "insert".into(),
            ok: histogram.count(),
            rate: 100.0,
            errors: BTreeMap::from([("23505".to_owned(), 2)]),
            latency: histogram.clone().into(),
            ..OperationResult::default()
        };
        let one = OperationSecond { ok: 1, latency: (&histogram).into(), heat, ..OperationSecond::default() };
        let run = RunDescription {
            name: "events".into(),
            operations: vec!["insert".into()],
            part: Some(number.to_owned()),
            connections: 8,
            ..RunDescription::default()
        };
        let second = Second {
            at: 1.0,
            length: 1.0,
            achieved: 100.0,
            operations: BTreeMap::from([("insert".to_owned(), one)]),
            ..Second::default()
        };
        let result = DriveResult {
            format: crate::FORMAT.into(),
            version: crate::VERSION,
            began: 1000.0,
            run,
            valid: true,
            total: OperationResult { name: "all".into(), ..operation.clone() },
            operations: vec![operation],
            seconds: vec![second],
            proof: vec![Proof { table: "events".into(), acknowledged: 5, found: 5, ..Proof::default() }],
            ..DriveResult::default()
        };
        NamedResult { name: format!("{}.json", number.replace('/', "-of-")), result }
    }

    #[test]
    fn histograms_of_parts_merge_exactly_and_counts_add_up() {
        let (a, b) = (part("1/2", &[(100, 90), (5_000, 10)]), part("2/2", &[(250, 880), (90_000, 20)]));
        let merged = merge(&[a, b]).unwrap();
        let mut all = Durations::default();
        [(100, 90), (5_000, 10), (250, 880), (90_000, 20)]
            .iter()
            .for_each(|(v, n)| all.record_micros(*v, *n));
        let total = &merged.total;
        assert_eq!(total.latency.histogram.buckets().collect::<Vec<_>>(), all.buckets().collect::<Vec<_>>());
        assert_eq!(total.latency.percentiles, Percentiles::from(&all));
        assert_eq!((total.ok, total.rate, total.errors["23505"]), (1000, 200.0, 4));
        assert_eq!((merged.run.connections, merged.run.part), (16, None));
        assert_eq!((merged.proof[0].acknowledged, merged.proof.len()), (10, 1));
        let second = &merged.seconds[0].operations["insert"];
        assert_eq!(
            (merged.seconds.len(), merged.seconds[0].achieved, second.latency.count),
            (1, 200.0, 1000)
        );
        let (exact, coarse) = (all.quantile(0.99) as f64, second.latency.p99_us as f64);
        assert!(coarse >= exact * 0.999 && coarse <= exact * 1.2, "{coarse} of {exact}");
    }

    #[test]
    fn limits_are_judged_by_all_parts_together() {
        let limit = |text: &str, held| LimitResult { limit: text.into(), measured: "x".into(), held };
        let (mut a, mut b) = (part("1/2", &[(100, 990)]), part("2/2", &[(90_000, 10), (50, 9_000)]));
        a.result.limits = vec![limit("rate > 150", false), limit("insert.p99 < 1 ms", true)];
        b.result.limits = vec![limit("rate > 150", false), limit("p99.99 < 1 ms", true)];
        for one in [&mut a, &mut b] {
            one.result.total.intended = one.result.total.ok;
            one.result.operations[0].intended = one.result.total.ok;
        }
        let merged = merge(&[a, b]).unwrap();
        let judged: Vec<(&str, bool)> =
            merged.limits.iter().map(|limit| (limit.limit.as_str(), limit.held)).collect();
        // Each part had half of the rate, and one of them all of the slow operations.
        assert_eq!(judged, [("rate > 150", true), ("insert.p99 < 1 ms", true), ("p99.99 < 1 ms", false)]);
    }

    #[test]
    fn parts_that_do_not_belong_together_are_rejected() {
        let of = |number: &str| part(number, &[(1, number.bytes().next().map_or(1, u64::from))]);
        let what = |parts: &[NamedResult]| merge(parts).unwrap_err().what();
        assert_eq!(what(&[]), "there are no results to merge");
        assert_eq!(what(&[of("1/2"), of("1/2")]), "part 1/2 comes twice");
        assert_eq!(what(&[of("1/3"), of("3/3")]), "part 2/3 is missing");
        let billions = what(&[of("1/18446744073709551615")]);
        assert!(billions.starts_with("part 2/18446744073709551615, 3/18446744073709551615"), "{billions}");
        assert_eq!(what(&[of("1/2"), of("2/3")]), "the results are parts of different divisions");
        let mut whole = of("2/2");
        whole.result.run.part = None;
        assert_eq!(what(&[of("1/2"), whole]), "the result is of a whole run, not of a part");
        type Change = fn(&mut RunDescription);
        let changes: [(&str, Change); 8] = [
            ("plan", |run| run.name = "trips".into()),
            ("plan", |run| run.plan = "0123".into()),
            ("target", |run| run.target = "postgres://other/db".into()),
            ("isolation level", |run| run.isolation = Some("serializable".into())),
            ("seed", |run| run.seed = 43),
            ("rate", |run| run.shape = "500/s".into()),
            ("length", |run| run.duration = 30.0),
            ("warm-up", |run| run.warm_up = 1.0),
        ];
        for (name, change) in changes {
            let mut other = of("2/2");
            change(&mut other.result.run);
            assert_eq!(
                what(&[of("1/2"), other]),
                format!("the results are not of one load test: {name} differs")
            );
        }
        assert!(merge(&[of("1/2"), of("2/2")]).is_ok());
    }

    #[test]
    fn parts_that_did_not_run_together_are_rejected() {
        let (first, mut second) = (part("1/2", &[(1, 1)]), part("2/2", &[(1, 2)]));
        let merged =
            |second: &NamedResult| merge(&[first.clone(), second.clone()]).map_err(|error| error.what());
        let what = |second: &NamedResult| merged(second).unwrap_err();
        second.result.began = 1005.0;
        assert_eq!(what(&second), "2-of-2.json began 5.0 s after 1-of-2.json");
        second.result.began = 999.6;
        assert_eq!(merged(&second).unwrap().began, 999.6);
        second.result.seconds[0].at = 0.3;
        assert_eq!(what(&second), "2-of-2.json began 0.4 s before 1-of-2.json", "it had ended then");
        second.result.began = 0.0;
        assert_eq!(what(&second), "the result does not say when it began");
        let mut copy = first.clone();
        copy.result.run.part = Some("2/2".into());
        assert_eq!(what(&copy), "one result comes twice");
    }

    #[test]
    fn rows_that_one_part_did_not_look_for_are_not_checked() {
        let (first, mut second) = (part("1/2", &[(1, 1)]), part("2/2", &[(1, 2)]));
        second.result.proof.clear();
        let merged = merge(&[first.clone(), second.clone()]).unwrap();
        assert_eq!(merged.proof[0].unchecked.as_deref(), Some("2-of-2.json did not look for its rows"));
        assert!(!merged.proof[0].holds());
        second.result.proof =
            vec![Proof { table: "events".into(), check: true, broken: 3, ..Proof::default() }];
        let merged = merge(&[first, second]).unwrap();
        let broken: Vec<u64> = merged.proof.iter().map(|proof| proof.broken).collect();
        assert_eq!(broken, [0, 3], "a check is no table");
    }

    #[test]
    fn a_second_that_a_part_has_in_two_pieces_has_their_mean_rate() {
        let (mut a, b) = (part("1/2", &[(1, 1)]), part("2/2", &[(1, 2)]));
        let short = Second { at: 1.25, length: 0.25, achieved: 20.0, in_flight: 3, ..Second::default() };
        a.result.seconds[0].in_flight = 8;
        a.result.seconds.push(short);
        let merged = merge(&[a, b]).unwrap();
        let [second] = merged.seconds.as_slice() else { panic!("{:?}", merged.seconds) };
        // 100 operations in a second and 5 in a quarter, beside 100 a second.
        assert!((second.achieved - 184.0).abs() < 1e-9, "{}", second.achieved);
        assert_eq!((second.at, second.length, second.in_flight), (1.25, 1.25, 3));
    }

    #[test]
    fn pauses_are_of_the_driver_that_was_paused_longest() {
        let (mut a, mut b) = (part("1/2", &[(1, 1)]), part("2/2", &[(1, 2)]));
        (a.result.driver.pauses, a.result.driver.paused) = (5, 0.1);
        (b.result.driver.pauses, b.result.driver.paused) = (2, 0.3);
        let driver = merge(&[a, b]).unwrap().driver;
        assert_eq!((driver.pauses, driver.paused), (2, 0.3));
    }
}
