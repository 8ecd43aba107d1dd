//! `sawmill drive merge` and `sawmill bench report` on results of load tests.

use std::path::Path;

use sawmill_drive::{
    DriveResult, Durations, FORMAT, LimitResult, OperationResult, OperationSecond, Proof, RunDescription,
    Second, VERSION,
};

use crate::bench::{bench, home, read};
use crate::database::Database;
use crate::harness::{Ran, command};

/// The result of one driving process that ran for ten seconds, with a limit and whether it held.
fn result(number: Option<&str>, values: &[(u64, u64)], (limit, held): (&str, bool)) -> DriveResult {
    let mut histogram = Durations::default();
    values.iter().for_each(|(micros, count)| histogram.record_micros(*micros, *count));
    let second = OperationSecond {
        ok: histogram.count(),
        latency: (&histogram).into(),
        service: (&histogram).into(),
        heat: histogram.coarse(),
        ..OperationSecond::default()
    };
    let operation = OperationResult {
        name: "insert".into(),
        intended: histogram.count(),
        ok: histogram.count(),
        rate: histogram.count() as f64 / 10.0,
        latency: histogram.clone().into(),
        service: histogram.into(),
        ..OperationResult::default()
    };
    DriveResult {
        format: FORMAT.into(),
        version: VERSION,
        began: 1_767_225_600.5,
        run: RunDescription {
            name: "events".into(),
            duration: 10.0,
            operations: vec!["insert".into()],
            part: number.map(str::to_owned),
            ..RunDescription::default()
        },
        valid: true,
        total: OperationResult { name: "all".into(), ..operation.clone() },
        operations: vec![operation],
        seconds: vec![Second {
            at: 10.0,
            length: 10.0,
            operations: [("insert".to_owned(), second)].into(),
            ..Second::default()
        }],
        limits: vec![LimitResult { limit: limit.into(), measured: String::new(), held }],
        ..DriveResult::default()
    }
}

/// Writes a result.
fn part(path: &Path, number: Option<&str>, values: &[(u64, u64)], limit: (&str, bool)) {
    std::fs::write(path, serde_json::to_string(&result(number, values, limit)).unwrap()).unwrap();
}

fn merge(home: &tempfile::TempDir, args: &[&str]) -> Ran {
    let mut command = command([&["drive", "merge"], args].concat());
    Ran::from(command.current_dir(home.path()).output().unwrap())
}

#[test]
fn parts_of_a_load_test_merge_into_the_histogram_of_all_operations() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    part(&at("one.json"), Some("1/2"), &[(100, 990), (5_000, 10)], ("p50 < 20ms", true));
    part(&at("two.json"), Some("2/2"), &[(200, 970), (90_000, 30)], ("p99 < 1s", true));
    let said =
        merge(&home, &["one.json", "two.json", "--json-file", "both.json", "--html", "both.html"]).ok().out;
    assert!(said.contains("limit p99 < 1s: holds"), "{said}");
    let latency = &read(&at("both.json"))["total"]["latency"];
    assert_eq!((&latency["count"], &latency["p50_us"]), (&2000.into(), &200.into()));
    assert_eq!(latency["p99_us"].as_u64().unwrap() / 1000, 90, "30 of 2,000 took 90 ms");
    assert!(std::fs::read_to_string(at("both.html")).unwrap().contains("Percentiles"));

    let error = merge(&home, &["one.json", "one.json"]).fails(1);
    assert!(error.contains("part 1/2 comes twice"), "{error}");
    let error = merge(&home, &["one.json", "gone.json"]).fails(1);
    assert!(error.contains("gone.json"), "{error}");
    part(&at("two.json"), Some("2/2"), &[(90_000, 100)], ("p99 < 20ms", false));
    let error = merge(&home, &["one.json", "two.json", "--json-file", "both.json"]).fails(3);
    assert!(error.contains("p99 < 20ms (90"), "all parts together: {error}");
    std::fs::write(at("data.csv"), "a,b\n").unwrap();
    merge(&home, &["one.json", "two.json", "--json-file", "data.csv"]).fails(2);
    std::os::unix::fs::symlink("target.json", at("link.json")).unwrap();
    part(&at("two.json"), Some("2/2"), &[(200, 970)], ("p99 < 1s", true));
    merge(&home, &["one.json", "two.json", "--json-file", "link.json"]).ok();
    assert!(at("link.json").is_symlink() && at("target.json").is_file());
    std::os::unix::fs::symlink(home.path(), at("here")).unwrap();
    for (outputs, both) in [
        (["--json-file", "new", "--html", "here/new"], "--json-file and --html"),
        (["--json-file", "here/one.json", "--html", "new"], "a part and --json-file"),
    ] {
        let error = merge(&home, &[&["one.json", "two.json"][..], &outputs].concat()).fails(2);
        assert!(error.contains(&format!("{both} name the same file")) && !at("new").exists(), "{error}");
    }
}

#[test]
fn load_tests_stand_side_by_side_in_a_report_and_do_not_mix_with_benchmarks() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    part(&at("before.json"), None, &[(100, 1000)], ("p99 < 1s", true));
    part(&at("after.json"), None, &[(300, 1000)], ("p99 < 1s", true));
    let shown = bench(&home, &["report", "before.json", "after.json", "--html", "h.html"]).ok().out;
    assert!(shown.contains("before: insert") && shown.contains("0.30"), "{shown}");
    let page = std::fs::read_to_string(at("h.html")).unwrap();
    assert!(page.contains("<title>p99 from 100 µs at 100 ops/s (“before”) to 300 µs"), "the verdict");
    std::fs::write(at("bench.json"), r#"{"format":"sawmill-bench","version":1}"#).unwrap();
    let error = bench(&home, &["report", "before.json", "bench.json", "--html", "i.html"]).fails(1);
    assert!(error.contains("bench.json") && error.contains("sawmill-bench"), "{error}");
    assert!(!at("i.html").exists());
    std::fs::write(at("diary"), "precious").unwrap();
    bench(&home, &["report", "before.json", "--html", "diary"]).fails(2);
    assert_eq!(std::fs::read_to_string(at("diary")).unwrap(), "precious");
}

#[test]
fn a_saved_verdict_is_not_believed() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    part(&at("told.json"), None, &[(90_000, 100)], ("p99 < 20ms", true));
    let error = bench(&home, &["report", "told.json", "--html", "t.html"]).fails(1);
    assert!(error.contains("told.json") && error.contains("limits[0].held is true"), "{error}");
    part(&at("told.json"), None, &[(90_000, 100)], ("p99 fast", true));
    let error = bench(&home, &["report", "told.json", "--html", "t.html"]).fails(1);
    assert!(error.contains("told.json") && error.contains("limits[0].limit: no < or >"), "{error}");
    assert!(!at("t.html").exists());
}

#[test]
fn merged_results_end_with_the_worst_of_their_parts() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    let limit = ("p99 < 1s", true);
    part(&at("one.json"), Some("1/2"), &[(100, 1000)], limit);
    let write = |change: fn(&mut DriveResult)| {
        let mut second = result(Some("2/2"), &[(200, 1000)], limit);
        change(&mut second);
        std::fs::write(at("two.json"), serde_json::to_string(&second).unwrap()).unwrap();
        merge(&home, &["one.json", "two.json"])
    };
    write(|_| {}).ok();
    let error = write(|second| second.aborted = Some("errors > 5% after 3 s".into())).fails(3);
    assert!(error.contains("errors > 5% after 3 s"), "{error}");
    let error = write(|second| second.interrupted = true).fails(1);
    assert!(error.contains("interrupted"), "{error}");
    let error = write(|second| {
        second.interrupted = true;
        second.proof = vec![Proof { table: "events".into(), foreign: 1, ..Proof::default() }];
    });
    assert!(error.fails(4).contains("1 row is there that this run did not write"));
    let error = write(|second| second.invalid_because = vec!["the driver slept".into()]).fails(1);
    assert!(error.contains("two.json") && error.contains("valid is true"), "{error}");
    let error = write(|second| {
        let unchecked = Some("column \"totl\" does not exist".into());
        second.proof = vec![Proof { table: "totals".into(), check: true, unchecked, ..Proof::default() }];
    });
    let error = error.fails(1);
    assert!(error.contains("the check could not be carried out: column"), "{error}");
    assert!(error.contains("mend the check") && !error.contains("looked for"), "{error}");
    let error = write(|second| second.run.proves = vec!["table events".into()]).fails(1);
    assert!(error.contains("two.json") && error.contains("run.proves has"), "{error}");
    let error = write(|second| second.run.target = "postgres://other/db".into()).fails(1);
    assert!(error.contains("target differs"), "{error}");
    let error = write(|second| second.run.duration = 0.0).fails(1);
    assert!(error.contains("two.json") && error.contains("run.duration is 0"), "{error}");
}

#[test]
fn a_run_in_which_nothing_ended_well_shows_no_times_and_fails() {
    let (server, home) = (Database::new(), home());
    let plan = "rate = 50\nfor = \"500ms\"\n[[operations]]\nname = \"none\"\nsql = \"SELECT 1 / 0\"\nwrites = \"nothing\"\n";
    std::fs::write(home.path().join("plan.toml"), plan).unwrap();
    let line =
        ["drive", "plan.toml", "--to", &server.url(), "--limit", "failed-max < 1h", "--json-file", "r.json"];
    let ran = Ran::from(command(line).current_dir(home.path()).output().unwrap());
    assert!(!ran.out.contains("0.00") && ran.out.contains("limit failed-max < 1h: holds"), "{}", ran.out);
    let error = ran.fails(1);
    assert!(error.contains("no operation ended well"), "{error}");
    let result = std::fs::read_to_string(home.path().join("r.json")).unwrap();
    assert!(result.contains("--to ...") && !result.contains("postgres://"), "{result}");
}

#[test]
fn a_part_drops_no_table_of_the_others() {
    let line = "drive gen:events --to null --rate 100 --for 1s --part 1/2 --drop";
    let error = Ran::from(command(line.split(' ')).output().unwrap()).fails(2);
    assert!(error.contains("a part would drop the tables of the others"), "{error}");
}

#[test]
fn chaos_that_failed_is_no_survived_chaos() {
    let line = "drive gen:events --to null --rate 100 --for 2s --chaos";
    let args = line.split(' ').chain(["echo gone >&2; exit 7 every 1s"]);
    let error = Ran::from(command(args).output().unwrap()).fails(1);
    assert!(error.contains("the server was not disturbed as planned") && error.contains("gone"), "{error}");
}
