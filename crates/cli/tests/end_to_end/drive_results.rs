//! `sawmill drive merge` and `sawmill bench report` on results of load tests.

use std::path::Path;

use sawmill_drive::{DriveResult, Durations, FORMAT, LimitResult, OperationResult, RunDescription, VERSION};

use crate::bench::{bench, home, read};
use crate::harness::{Ran, command};

/// Writes the result of one driving process.
fn part(path: &Path, number: Option<&str>, values: &[(u64, u64)], limit: &str) {
    let mut histogram = Durations::default();
    values.iter().for_each(|(micros, count)| histogram.record_micros(*micros, *count));
    let operation = OperationResult {
        name: "insert".into(),
        intended: histogram.count(),
        ok: histogram.count(),
        latency: histogram.clone().into(),
        service: histogram.into(),
        ..OperationResult::default()
    };
    let result = DriveResult {
        format: FORMAT.into(),
        version: VERSION,
        run: RunDescription {
            name: "events".into(),
            operations: vec!["insert".into()],
            part: number.map(str::to_owned),
            ..RunDescription::default()
        },
        valid: true,
        total: OperationResult { name: "all".into(), ..operation.clone() },
        operations: vec![operation],
        limits: vec![LimitResult { limit: limit.into(), measured: "1 ms".into(), held: true }],
        ..DriveResult::default()
    };
    std::fs::write(path, serde_json::to_string(&result).unwrap()).unwrap();
}

fn merge(home: &tempfile::TempDir, args: &[&str]) -> Ran {
    let mut command = command([&["drive", "merge"], args].concat());
    Ran::from(command.current_dir(home.path()).output().unwrap())
}

#[test]
fn parts_of_a_load_test_merge_into_the_histogram_of_all_operations() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    part(&at("one.json"), Some("1/2"), &[(100, 990), (5_000, 10)], "p50 < 20ms");
    part(&at("two.json"), Some("2/2"), &[(200, 970), (90_000, 30)], "p99 < 1s");
    merge(&home, &["one.json", "two.json", "--json-file", "both.json", "--html", "both.html"]).ok();
    let latency = &read(&at("both.json"))["total"]["latency"];
    assert_eq!((&latency["count"], &latency["p50_us"]), (&2000.into(), &200.into()));
    assert_eq!(latency["p99_us"].as_u64().unwrap() / 1000, 90, "30 of 2,000 took 90 ms");
    assert!(std::fs::read_to_string(at("both.html")).unwrap().contains("Percentiles"));

    let error = merge(&home, &["one.json", "one.json"]).fails(1);
    assert!(error.contains("part 1/2 comes twice"), "{error}");
    let error = merge(&home, &["one.json", "gone.json"]).fails(1);
    assert!(error.contains("gone.json"), "{error}");
    part(&at("two.json"), Some("2/2"), &[(90_000, 100)], "p99 < 20ms");
    let error = merge(&home, &["one.json", "two.json", "--json-file", "both.json"]).fails(3);
    assert!(error.contains("p99 < 20ms (90"), "all parts together: {error}");
    std::fs::write(at("data.csv"), "a,b\n").unwrap();
    merge(&home, &["one.json", "two.json", "--json-file", "data.csv"]).fails(2);
}

#[test]
fn load_tests_stand_side_by_side_in_a_report_and_do_not_mix_with_benchmarks() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    part(&at("before.json"), None, &[(100, 1000)], "p99 < 1s");
    part(&at("after.json"), None, &[(300, 1000)], "p99 < 1s");
    let shown = bench(&home, &["report", "before.json", "after.json", "--html", "h.html"]).ok().out;
    assert!(shown.contains("before") && shown.contains("300 µs"), "{shown}");
    let page = std::fs::read_to_string(at("h.html")).unwrap();
    assert!(page.contains("<title>“before” has the lowest p99, 100 µs"), "the verdict");
    std::fs::write(at("bench.json"), r#"{"format":"sawmill-bench","version":1}"#).unwrap();
    let error = bench(&home, &["report", "before.json", "bench.json", "--html", "i.html"]).fails(1);
    assert!(error.contains("bench.json") && error.contains("sawmill-bench"), "{error}");
    assert!(!at("i.html").exists());
}
