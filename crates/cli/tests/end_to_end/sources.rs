//! Source files that change: while they are loaded, and between two runs.

use std::fs;
use std::path::Path;

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

/// Starts a load and waits until some of its units are in.
fn begun(bench: &Bench, args: &[String]) -> std::process::Child {
    let child = start(args);
    let mut client = bench.client();
    until("the first unit", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    child
}

#[test]
fn a_file_that_is_cut_off_in_mid_load_is_named_and_the_load_goes_on_when_it_is_back() {
    let bench = Bench::new();
    let file = bench.contacts("1M");
    let bytes = fs::read(&file).unwrap();
    let args = bench.args("load", &file, "c", &["--unit-rows", "5000", "--verify"]);
    let child = begun(&bench, &args);
    let cut = fs::OpenOptions::new().write(true).open(&file).unwrap();
    cut.set_len(bytes.len() as u64 / 20).unwrap();
    let error = wait(child).fails(1);
    assert!(error.contains("the file changed while it was loaded"), "{error}");
    assert!(error.contains("contacts-1M.parquet") && error.contains("bring back the file"), "{error}");
    assert!(!bench.exists("c"));
    fs::write(&file, &bytes).unwrap();
    let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from c"), 1_000_000);
}

#[test]
fn a_file_that_was_replaced_between_two_runs_is_rejected() {
    let bench = Bench::new();
    let file = bench.contacts("1M");
    let args = bench.args("load", &file, "c", &["--unit-rows", "5000"]);
    let child = begun(&bench, &args);
    signal(&child, "KILL");
    wait(child);
    let path = file.to_str().unwrap();
    sawmill(["gen", "contacts", "--rows", "1M", "--seed", "8", "--out", path, "--overwrite"]).ok();
    let error = sawmill(&args).fails(1);
    assert!(error.contains("changed since the load began") && error.contains(path), "{error}");
    assert!(!bench.exists("c"));
}

#[test]
fn a_file_that_is_replaced_while_its_last_rows_are_sent_does_not_count_as_loaded() {
    let bench = Bench::new();
    let file = bench.contacts("300k");
    bench.client().batch_execute("create table c (name text, phones jsonb)").unwrap();
    // The server holds the first insert up, so that the other file is in its place long before the end.
    let mut client = bench.client();
    let mut holding = client.transaction().unwrap();
    holding.batch_execute("lock table c in share row exclusive mode").unwrap();
    let child = start(bench.args("load", &file, "c", &["--mode", "append"]));
    until("the load waits for the table", || {
        bench.count(
            "select count(*) from pg_stat_activity where query like 'COPY%' and wait_event_type = 'Lock' \
             and datname = current_database()",
        ) > 0
    });
    let other = bench.contacts("200k");
    replace(&other, &file);
    holding.commit().unwrap();
    let error = wait(child).fails(1);
    assert!(error.contains("the file changed while it was loaded"), "{error}");
}

fn replace(other: &Path, file: &Path) {
    fs::rename(other, file).unwrap();
}
