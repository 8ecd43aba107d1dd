//! `sawmill bench`: figures of whole runs, compared, kept and judged.

use std::path::Path;

use postgres::{Client, NoTls};
use sawmill_localpg::LocalPg;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Ran, command, names, sawmill, signal, until, wait};

/// `sawmill bench` in a directory that holds its temporary files and results.
pub fn bench(home: &TempDir, args: &[&str]) -> Ran {
    let mut command = command([&["bench"], args].concat());
    command.current_dir(home.path()).env("TMPDIR", home.path()).env_remove("SAWMILL_PG_DIR");
    Ran::from(command.output().unwrap())
}

pub fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Two small files.
pub fn contacts(home: &TempDir) -> String {
    contacts_of(home, "2000")
}

pub fn contacts_of(home: &TempDir, rows: &str) -> String {
    let directory = home.path().join("contacts").display().to_string();
    sawmill(["gen", "contacts", "--rows", rows, "--files", "2", "--out", &directory]).ok();
    directory
}

pub fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub const GEN: [&str; 4] = ["gen", "contacts", "--rows", "2000"];

#[test]
fn runs_of_gen_are_a_table_json_and_a_page_and_leave_no_files() {
    let home = home();
    let ran =
        bench(&home, &[&GEN[..], &["--json-file", "r.json", "--html", "r.html", "--runs", "3"]].concat());
    let table = ran.ok().out;
    assert!(table.contains("sawmill") && table.contains("rows/s"), "{table}");
    assert_eq!(names(home.path()), ["r.html", "r.json"]);
    let side = &read(&home.path().join("r.json"))["cases"][0]["sides"][0];
    let runs = side["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &side["warmup"]), (3, &Value::from(1)));
    for run in runs {
        assert_eq!(run["rows"], 2000);
        let cpu = run["user"].as_f64().unwrap() + run["system"].as_f64().unwrap();
        assert!(run["wall"].as_f64().unwrap() > 0.0 && cpu > 0.0, "{run}");
        assert!(run["bytes"].as_u64().unwrap() > 10_000 && !run["peak_memory"].is_null(), "{run}");
    }
    assert_eq!(side["phases"][0]["name"], "generate");
    let page = std::fs::read_to_string(home.path().join("r.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_directory_that_is_named_holds_nothing_more_afterwards() {
    let home = home();
    std::fs::create_dir(home.path().join("here")).unwrap();
    for out in ["here", "here/one.parquet", "/dev/null"] {
        bench(&home, &[&GEN[..], &["--runs", "1", "--out", out]].concat()).ok();
    }
    assert_eq!(names(&home.path().join("here")), [""; 0]);
    assert_eq!(names(home.path()), ["here"]);
    bench(&home, &[&GEN[..], &["--out", "-"]].concat()).fails(2);
}

#[test]
fn another_program_runs_in_turn_and_its_failure_is_an_error() {
    let home = home();
    let against = "sh -c 'echo run >> turns; sleep 0.05'";
    let args = [&GEN[..], &["--runs", "3", "--warmup", "2", "--against", against, "--json"]].concat();
    let json = bench(&home, &args).ok().json();
    let case = &json["cases"][0];
    assert_eq!(case["sides"][1]["name"], "sh");
    assert!(case["sides"][1]["wall"]["min"].as_f64().unwrap() >= 0.05);
    assert_eq!(case["comparisons"][0]["with"], "sh");
    assert_eq!(case["comparisons"][0]["ratios"].as_array().unwrap().len(), 3);
    assert_eq!(std::fs::read_to_string(home.path().join("turns")).unwrap().lines().count(), 5);
    let error = bench(&home, &[&GEN[..], &["--against", "sh -c 'echo why >&2; exit 7'"]].concat()).fails(1);
    assert!(error.contains("exit code 7") && error.contains("why"), "{error}");
    assert_eq!(names(home.path()), ["turns"], "no files of the run before");
}

#[test]
fn slower_than_allowed_is_exit_code_3_with_the_results_all_the_same() {
    let home = home();
    // Generating many rows takes longer than doing nothing.
    let long = ["gen", "contacts", "--rows", "200k", "--out", "/dev/null", "--warmup", "0"];
    let slow = ["--against", "true", "--fail-if-slower", "5%", "--json-file", "r.json"];
    let error = bench(&home, &[&long[..], &slow].concat()).fails(3);
    assert!(error.contains("slower by more than 5%") && error.contains("gen with true"), "{error}");
    assert!(home.path().join("r.json").exists());
    let fast = ["--against", "sleep 1", "--fail-if-slower", "5%", "--runs", "2"];
    bench(&home, &[&GEN[..], &fast].concat()).ok();
    let error = bench(&home, &[&GEN[..], &["--fail-if-slower", "5%"]].concat()).fails(2);
    assert!(error.contains("--baseline"), "{error}");
    let one = ["--against", "true", "--fail-if-slower", "5%", "--runs", "1"];
    assert!(bench(&home, &[&GEN[..], &one].concat()).fails(2).contains("too few runs"));
}

#[test]
fn a_saved_result_is_a_baseline_for_the_same_work_only() {
    let home = home();
    bench(&home, &[&GEN[..], &["--json-file", "before.json"]].concat()).ok();
    let table = bench(&home, &[&GEN[..], &["--baseline", "before.json"]].concat()).ok().out;
    assert!(table.contains("(saved) before.json"), "{table}");
    let many = ["--baseline", "before.json", "--fail-if-slower", "100000%"];
    bench(&home, &[&GEN[..], &many].concat()).ok();
    let error = bench(&home, &["gen", "contacts", "--rows", "3000", "--baseline", "before.json"]).fails(2);
    assert!(error.contains("2000 rows") && error.contains("3000 rows"), "{error}");
    let error =
        bench(&home, &[&GEN[..], &["--threads", "1,2", "--baseline", "before.json"]].concat()).fails(2);
    assert!(error.contains("threads=1"), "{error}");
    let error = bench(&home, &[&GEN[..], &["--baseline", "other.json"]].concat()).fails(1);
    assert!(error.contains("other.json"), "{error}");
    let error = bench(&home, &[&GEN[..], &["--save", "before"]].concat()).fails(2);
    assert!(error.contains("--json-file") && error.contains("--baseline"), "{error}");
}

#[test]
fn a_sweep_has_a_case_for_each_combination_and_a_table_for_each_parameter() {
    let home = home();
    let sweep = ["--threads", "1,2", "--files=1..3+2", "--runs", "1", "--json-file", "r.json"];
    let table = bench(&home, &[&GEN[..], &sweep].concat()).ok().out;
    assert!(table.contains("speed-up") && table.contains("gen files=3"), "{table}");
    let file = read(&home.path().join("r.json"));
    let parameters: Vec<String> =
        file["cases"].as_array().unwrap().iter().map(|case| case["parameters"].to_string()).collect();
    let expected = [("1", "1"), ("3", "1"), ("1", "2"), ("3", "2")];
    let expected = expected.map(|(files, threads)| format!(r#"{{"files":"{files}","threads":"{threads}"}}"#));
    assert_eq!(parameters, expected);
    let error = bench(&home, &[&GEN[..], &["--threads", "4..1"]].concat()).fails(2);
    assert!(error.contains("--threads 4..1"), "{error}");
}

#[test]
fn footers_are_measured_and_views_are_rejected() {
    let home = home();
    let files = contacts(&home);
    let args = ["footer", &files, "--runs", "2", "--tail-hint", "8,65536", "--json"];
    let json = bench(&home, &args).ok().json();
    let run = &json["cases"][1]["sides"][0]["runs"][1];
    assert_eq!(run["checksum"], "2 files, 2000 rows, 2 row groups");
    assert!(run["rows"].is_null() && run["bytes"].as_u64().unwrap() > 500, "{run}");
    bench(&home, &["footer", &files, "--schema"]).fails(2);
    bench(&home, &["footer", "no-such-file"]).fails(1);
}

#[test]
fn loads_go_into_tables_that_are_gone_afterwards() {
    let home = home();
    let files = contacts(&home);
    let server = LocalPg::start().unwrap();
    let url = server.url();
    let args = ["load", &files, "--to", &url, "--connections", "1,2", "--runs", "2", "--json"];
    let json = bench(&home, &args).ok().json();
    let cases = json["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    assert_eq!(cases[0]["sides"][0]["runs"][0]["rows"], 2000);
    assert_eq!(cases[0]["sides"][0]["runs"][0]["checksum"], cases[1]["sides"][0]["runs"][1]["checksum"]);
    assert!(!json.to_string().contains(&url), "the address is not on record");
    let left = "select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')";
    let left: i64 = Client::connect(&url, NoTls).unwrap().query_one(left, &[]).unwrap().get(0);
    assert_eq!(left, 0);
}

#[test]
fn loads_have_a_server_of_their_own_and_other_programs_its_address() {
    let home = home();
    let files = contacts(&home);
    let against = r#"sh -c 'echo $SAWMILL_BENCH_URL > url; echo "{\"rows\": 2000}"'"#;
    let args = ["load", &files, "--runs", "1", "--warmup", "0", "--against", against, "--json"];
    let json = bench(&home, &args).ok().json();
    assert!(json["versions"]["PostgreSQL"].is_string(), "{json}");
    let url = std::fs::read_to_string(home.path().join("url")).unwrap();
    assert!(url.starts_with("postgres"), "{url}");
    assert_eq!(names(home.path()), ["contacts", "url"]);
}

#[test]
fn a_report_draws_the_history_of_several_results() {
    let home = home();
    for name in ["a.json", "b.json"] {
        bench(&home, &[&GEN[..], &["--runs", "2", "--json-file", name]].concat()).ok();
    }
    bench(&home, &["report", "a.json", "b.json", "--html", "h.html"]).ok();
    assert!(std::fs::read_to_string(home.path().join("h.html")).unwrap().contains("<svg"));
    std::fs::write(home.path().join("c.json"), "{}").unwrap();
    let error = bench(&home, &["report", "c.json", "--html", "c.html"]).fails(1);
    assert!(error.contains("c.json"), "{error}");
}

#[test]
fn ctrl_c_ends_a_benchmark_and_leaves_nothing() {
    let home = home();
    let mut bench = command(["bench", "gen", "contacts", "--rows", "1B"]);
    bench
        .env("TMPDIR", home.path())
        .env_remove("SAWMILL_PG_DIR")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = bench.spawn().unwrap();
    until("the first run", || !names(home.path()).is_empty());
    signal(&child, "INT");
    wait(child).fails(130);
    assert_eq!(names(home.path()), [""; 0]);
}
