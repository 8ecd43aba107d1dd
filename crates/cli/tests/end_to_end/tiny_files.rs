//! Thousands of tiny files: several of them are one transaction, and everything that is promised holds for
//! each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

/// A directory of files of ten orders each, with ids from 1 on.
fn orders(bench: &Bench, files: u32) -> PathBuf {
    let path = bench.dir.path().join("orders");
    let (files, rows) = (files.to_string(), (files * 10).to_string());
    sawmill(["gen", "orders", "--rows", &rows, "--files", &files, "--out", path.to_str().unwrap()]).ok();
    path
}

/// The `n`-th of the files by name.
fn file(directory: &Path, n: usize) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    files.sort();
    files.swap_remove(n)
}

/// Transactions in which units were recorded.
const TRANSACTIONS: &str = "select count(distinct xmin::text) from _sawmill.units";

fn assert_whole(bench: &Bench, table: &str, rows: i64) {
    for counted in ["count(*)", "count(distinct id)"] {
        assert_eq!(bench.count(&format!("select {counted} from {table}")), rows, "{counted} of {table}");
    }
}

#[test]
fn several_files_are_one_transaction_and_each_has_its_record() {
    let bench = Bench::new();
    let files = orders(&bench, 1000);
    let columns = ["--columns", "id,status,ordered_at", "--connections", "2", "--verify"];
    let rejected = bench.dir.path().join("refused.parquet");
    for (table, more) in [
        ("direct", &[][..]),
        ("staged", &["--strategy", "staged", "--partition-by", "hash(id, 4)"]),
        ("rejecting", &["--rejects", rejected.to_str().unwrap()]),
        ("some", &["--where", "id > 500 or id < 100"]),
        ("few", &["--rows", "5005"]),
    ] {
        let json = bench.load(&files, &format!("t_{table}"), &[&columns[..], more, &["--json"]].concat());
        let json = json.ok().json();
        let rows = bench.count(&format!("select count(*) from t_{table}"));
        assert_eq!(json["report"]["rows"], rows, "{table}");
        let units = bench.count("select count(*) from _sawmill.units where file >= 0");
        assert_eq!(json["report"]["units"], units, "{table}");
        let transactions = bench.count(TRANSACTIONS);
        assert!(transactions <= 30, "{table}: {units} units in {transactions} transactions");
        assert!(
            bench
                .load(&files, &format!("t_{table}"), &[&columns[..], more].concat())
                .ok()
                .out
                .contains("nothing to do")
        );
        sawmill(["load", "forget", "--to", &bench.server.url(), "--table", &format!("t_{table}")]).ok();
    }
    assert_whole(&bench, "t_direct", 10_000);
    assert_whole(&bench, "t_few", 5005);
    bench.load(&files, "nested", &["--nested", "tables", "--verify"]).ok();
    assert_whole(&bench, "nested", 10_000);
    let transactions = bench.count(TRANSACTIONS);
    assert!(transactions <= 100, "{transactions} transactions");
}

#[test]
fn a_load_that_is_killed_among_tiny_files_is_finished_exactly_once() {
    let bench = Bench::new();
    let files = orders(&bench, 2000);
    let rejected = bench.dir.path().join("refused.parquet");
    for (table, more) in [("direct", &[][..]), ("rejecting", &["--rejects", rejected.to_str().unwrap()])] {
        let args = ["--columns", "id,status", "--unit-rows", "100", "--connections", "2", "--verify"];
        let args = bench.args("load", &files, table, &[&args[..], more].concat());
        let child = start(&args);
        let mut client = bench.client();
        until("the first transactions", || {
            let units = client.query_one("select count(*) from _sawmill.units", &[]);
            units.is_ok_and(|row| row.get::<_, i64>(0) > 100)
        });
        signal(&child, "KILL");
        wait(child);
        let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
        let resumed = json["report"]["units_resumed"].as_u64().unwrap();
        assert!(resumed >= 100, "{table}: {json}");
        assert_eq!((&json["report"]["rows"], &json["report"]["units"]), (&20_000.into(), &2000.into()));
        assert_eq!(json["report"]["verified"]["target"], json["report"]["content"]);
        assert_whole(&bench, table, 20_000);
        sawmill(["load", "forget", "--to", &bench.server.url(), "--table", table]).ok();
    }
}

#[test]
fn a_corrupt_file_among_tiny_ones_is_named_and_the_rest_is_loaded_when_it_is_mended() {
    let bench = Bench::new();
    let files = orders(&bench, 600);
    let bad = file(&files, 300);
    let whole = fs::read(&bad).unwrap();
    let mut broken = whole.clone();
    broken[4..200].fill(0xff);
    fs::write(&bad, &broken).unwrap();
    let more = ["--columns", "id,status", "--unit-rows", "100", "--verify"];
    let error = bench.load(&files, "t", &more).fails(1);
    assert!(error.contains(bad.to_str().unwrap()), "{error}");
    let recorded = bench.count("select count(*) from _sawmill.units");
    assert!((1..600).contains(&recorded), "{recorded} units");
    assert_eq!(bench.count("select count(*) from t__sawmill_loading"), recorded * 10);
    fs::write(&bad, &whole).unwrap();
    let json = bench.load(&files, "t", &[&more[..], &["--json"]].concat()).ok().json();
    assert_eq!(json["report"]["units_resumed"], recorded);
    assert_whole(&bench, "t", 6000);
}

#[test]
fn a_file_that_changed_after_it_was_loaded_is_named() {
    let bench = Bench::new();
    let files = orders(&bench, 600);
    let args = bench.args("load", &files, "t", &["--columns", "id,status", "--unit-rows", "100"]);
    let child = start(&args);
    let mut client = bench.client();
    until("the first transactions", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 50)
    });
    signal(&child, "KILL");
    wait(child);
    let loaded: i32 = client.query_one("select max(file) from _sawmill.units", &[]).unwrap().get(0);
    let changed = file(&files, loaded as usize);
    let whole = fs::read(&changed).unwrap();
    fs::copy(file(&files, 599), &changed).unwrap();
    let error = sawmill(&args).fails(1);
    assert!(error.contains(changed.to_str().unwrap()), "{error}");
    fs::write(&changed, &whole).unwrap();
    sawmill(&args).ok();
    assert_whole(&bench, "t", 6000);
}

#[test]
fn a_row_that_the_server_refuses_is_located_and_rejected_if_asked_for() {
    let bench = Bench::new();
    let files = orders(&bench, 300);
    bench
        .client()
        .batch_execute(
            "create table t (id bigint check (id <> 1234), status text); create table s (like t including all)",
        )
        .unwrap();
    let more = ["--mode", "append", "--columns", "id,status", "--connections", "1"];
    // Ids count from 1: the 1,234th row is the fourth of file 123.
    let place = format!("{}, row group 0, row 3", file(&files, 123).display());
    let error = bench.load(&files, "t", &more).fails(1);
    assert!(error.contains(&place), "{place}: {error}");
    let rejected = bench.dir.path().join("refused.parquet");
    let rejecting = [&more[..], &["--rejects", rejected.to_str().unwrap(), "--json"]].concat();
    let json = bench.load(&files, "s", &rejecting).ok().json();
    assert_eq!((&json["report"]["rows"], &json["report"]["rows_rejected"]), (&2999.into(), &1.into()));
    assert_whole(&bench, "s", 2999);
    bench.load(&rejected, "refused", &["--columns", "id"]).ok();
    assert_eq!(bench.count("select id from refused"), 1234);
}
