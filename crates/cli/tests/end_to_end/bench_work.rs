//! `sawmill bench --against`: sides that did not do the same work are an error, not a figure.

use serde_json::Value;

use crate::bench::{GEN, bench, contacts, home};
use crate::database::Database;
use crate::harness::names;

/// This command as another program.
fn ourselves() -> &'static str {
    env!("CARGO_BIN_EXE_sawmill")
}

#[test]
fn rows_that_a_program_leaves_in_its_directory_are_counted() {
    let home = home();
    let against =
        |rows| format!("sh -c '{} gen contacts --rows {rows} --out $SAWMILL_BENCH_OUT'", ourselves());
    let once = ["--runs", "1", "--json"];
    let same = bench(&home, &[&GEN[..], &["--against", &against(2000)], &once].concat()).ok().json();
    let theirs = &same["cases"][0]["sides"][1]["runs"][0];
    assert_eq!(theirs["rows"], 2000);
    assert!(theirs["bytes"].as_u64().unwrap() > 10_000);
    let error = bench(&home, &[&GEN[..], &["--against", &against(1999)], &once].concat()).fails(1);
    assert!(error.contains("did not do the same work: 2000 rows and 1999 rows"), "{error}");
    assert_eq!(names(home.path()), [""; 0], "the directories are gone");
}

#[test]
fn a_program_can_report_its_work_and_its_version_in_its_last_line() {
    let home = home();
    let reporting = |line: &str| format!("maker=sh -c 'echo making; echo \"{}\"'", line.replace('"', "\\\""));
    let run = |line: &str| {
        bench(&home, &[&GEN[..], &["--runs", "1", "--json", "--against", &reporting(line)]].concat())
    };
    let json = run(r#"{"rows": 2000, "versions": {"maker": "1.2"}}"#).ok().json();
    assert_eq!(json["cases"][0]["sides"][1]["name"], "maker");
    assert_eq!(json["versions"]["maker"], "1.2");
    assert!(run(r#"{"rows": 7}"#).fails(1).contains("2000 rows and 7 rows"));
}

#[test]
fn footers_that_another_program_counts_differently_are_an_error() {
    let home = home();
    let files = contacts(&home);
    let against = r#"sh -c 'echo "{\"checksum\": \"1 files, 1000 rows, 1 row groups\"}"'"#;
    let error = bench(&home, &["footer", &files, "--against", against]).fails(1);
    assert!(error.contains("2 files, 2000 rows, 2 row groups"), "{error}");
}

#[test]
fn a_program_gets_an_empty_table_whose_rows_are_counted_and_compared() {
    let home = home();
    let files = contacts(&home);
    let server = Database::new();
    let url = server.url();
    let loader = |files: &str| {
        let to = "--to $SAWMILL_BENCH_URL --table $SAWMILL_BENCH_TABLE --mode append";
        format!("loader=sh -c '{} load {files} {to}'", ourselves())
    };
    let load = ["load", &files, "--to", &url, "--runs", "2", "--json"];
    let json = bench(&home, &[&load[..], &["--against", &loader(&files)]].concat()).ok().json();
    let sides = &json["cases"][0]["sides"];
    let first = &sides[1]["runs"][0];
    assert_eq!(first["rows"], 2000);
    assert!(json["versions"]["PostgreSQL"].is_string());
    // The content of the first run was compared, which was the one before those that count.
    assert_eq!(first["checksum"], Value::Null);
    for run in sides.as_array().unwrap().iter().flat_map(|side| side["runs"].as_array().unwrap()) {
        assert!(run["stored"].as_u64().unwrap() > 100_000, "what is in the table of 2,000 rows: {run}");
    }
    let report = bench(&home, &[&load[..5], &["1", "--against", &loader(&files)]].concat()).ok().out;
    let sizes = report.lines().nth(2).unwrap().contains("kB");
    assert!(report.lines().next().unwrap().contains("stored") && sizes, "{report}");
    let half = loader(&format!("{files}/contacts_0.parquet"));
    let half_of = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap().path();
    let half = half.replace(&format!("{files}/contacts_0.parquet"), &half_of.display().to_string());
    let error = bench(&home, &[&load[..], &["--against", &half]].concat()).fails(1);
    assert!(error.contains("2000 rows and 1000 rows"), "{error}");
    let error = bench(&home, &[&load[..], &["--against", "true"]].concat()).fails(1);
    assert!(error.contains("2000 rows and 0 rows"), "a program that did nothing has no figure: {error}");
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let left = "select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')";
    assert_eq!(client.query_one(left, &[]).unwrap().get::<_, i64>(0), 0, "the tables are gone");
}

#[test]
fn beside_another_program_ours_is_timed_from_the_start_of_its_process_to_its_end_too() {
    let home = home();
    let other = format!("sh -c '{} gen contacts --rows 2000 --out $SAWMILL_BENCH_OUT'", ourselves());
    let sweep = ["--threads", "1,2", "--runs", "2", "--json"];
    let json = bench(&home, &[&GEN[..], &["--against", &other], &sweep].concat()).ok().json();
    for (case, threads) in json["cases"].as_array().unwrap().iter().zip(["1", "2"]) {
        assert_eq!(case["parameters"]["threads"], threads);
        let (ours, theirs) = (&case["sides"][0], &case["sides"][1]);
        let whole = ours["runs"].as_array().unwrap().iter().map(|run| run["wall"].as_f64().unwrap());
        let inside = ours["phases"][0]["wall"].as_f64().unwrap();
        assert!(whole.fold(f64::INFINITY, f64::min) > 0.0005 && inside > 0.0, "{ours}");
        assert!(ours["wall"]["max"].as_f64().unwrap() > inside, "the start of the process counts: {ours}");
        for side in [ours, theirs] {
            let run = &side["runs"][0];
            assert_eq!((run["rows"].as_u64(), run["bytes"].is_u64()), (Some(2000), true), "{run}");
        }
        assert_eq!(ours["runs"][0]["bytes"], theirs["runs"][0]["bytes"], "the same files");
        assert!(!ours["timeline"]["samples"].as_array().unwrap().is_empty());
    }
    assert_eq!(names(home.path()), [""; 0], "the directories are gone");
}

#[test]
fn a_load_of_ours_in_a_process_of_its_own_leaves_no_table_behind() {
    let home = home();
    let files = contacts(&home);
    let server = Database::new();
    let url = server.url();
    let to = "--to $SAWMILL_BENCH_URL --table $SAWMILL_BENCH_TABLE --mode append";
    let loader = format!("loader=sh -c '{} load {files} {to}'", ourselves());
    for more in
        [&["--strategy", "staged", "--partition-by", "hash(name, 3)"][..], &["--table", "unlogged"], &[]]
    {
        let load = ["load", &files, "--to", &url, "--runs", "1", "--json", "--against", &loader];
        let json = bench(&home, &[&load[..], more].concat()).ok().json();
        let run = &json["cases"][0]["sides"][0]["runs"][0];
        assert_eq!(run["rows"], 2000);
        assert!(run["checksum"].is_string());
        assert!(run["stored"].as_u64().unwrap() > 100_000, "{run}");
        assert_eq!(json["cases"][0]["sides"][0]["timeline"]["watched"][0], "PostgreSQL");
    }
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let tables =
        "select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')";
    let left: i64 = client.query_one(&format!("{tables} and schemaname <> '_sawmill'"), &[]).unwrap().get(0);
    assert_eq!(left, 0);
}
