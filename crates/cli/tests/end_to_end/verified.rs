//! What `load --verify` says when a table holds less, or more, than the rows of its files.

use std::path::{Path, PathBuf};

use crate::cratedb;
use crate::harness::{Ran, sawmill};
use crate::load::Bench;

const WHOLE: &str = "verified: the table holds what the files hold";

/// Five rows, with the numbers from `first` on.
fn five(directory: &Path, name: &str, first: u32) -> PathBuf {
    let path = directory.join(name);
    let rows: String = (first..first + 5).map(|id| format!("{id},{id}\n")).collect();
    std::fs::write(&path, format!("id,code\n{rows}")).unwrap();
    path
}

/// `load forget` of a table.
fn forget(url: &str, table: &str) -> Ran {
    sawmill(["load", "forget", "--to", url, "--table", table])
}

#[test]
fn rows_that_an_earlier_run_rejected_are_missing() {
    let bench = Bench::new();
    let file = five(bench.dir.path(), "a.csv", 1);
    let mut client = bench.client();
    client.batch_execute("create table t (id bigint, code bigint constraint c check (code < 4))").unwrap();
    let rejects = bench.dir.path().join("r.parquet");
    let append = ["--mode", "append"];
    let rejecting = [&append[..], &["--rejects", rejects.to_str().unwrap()]].concat();
    let first = bench.load(&file, "t", &[&rejecting[..], &["--verify"]].concat()).ok();
    assert!(first.out.contains(&format!("{WHOLE} except 2 rejected rows")), "{}", first.out);
    client.batch_execute("alter table t drop constraint c").unwrap();
    let second = bench.load(&file, "t", &[&append[..], &["--verify"]].concat());
    assert!(second.out.contains(&format!("{WHOLE} except 2 rejected rows")), "{}", second.out);
    let error = second.fails(4);
    assert!(error.contains("the table lacks 2 rejected rows of the files"), "{error}");
    let quiet = bench.load(&file, "t", &[&append[..], &["--verify", "-q"]].concat()).fails(4);
    assert!(quiet.contains("the table lacks 2 rejected rows of the files"), "{quiet}");
}

#[test]
fn a_night_that_may_reject_rows_ends_well_only_if_these_alone_were_not_compared() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    five(&folder, "1.csv", 1);
    let table = "create table t (id bigint, code bigint check (code <> 4))";
    bench.client().batch_execute(table).unwrap();
    let rejects = bench.dir.path().join("r.parquet");
    let night = || {
        let options = ["--mode", "append", "--verify", "--rejects", rejects.to_str().unwrap()];
        bench.load(&folder, "t", &options)
    };
    night().ok();
    five(&folder, "2.csv", 6);
    night().ok();
    let idle = night().ok().out;
    assert!(idle.contains("since some rows were rejected") && idle.contains("nothing to do"), "{idle}");
    // Without rejected rows --rejects excuses nothing.
    let file = five(bench.dir.path(), "a.csv", 1);
    let alone = || {
        let options = ["--mode", "append", "--verify", "--rejects", rejects.to_str().unwrap()];
        bench.load(&file, "e", &options)
    };
    bench.client().batch_execute("create table e (id bigint, code bigint)").unwrap();
    std::fs::remove_file(&rejects).unwrap();
    for _ in 0..2 {
        let out = alone().ok().out;
        assert!(out.contains(WHOLE), "{out}");
    }
    bench.client().batch_execute("alter table e alter code type numeric").unwrap();
    let error = alone().fails(1);
    assert!(error.contains("not verified: the table's columns have changed"), "{error}");
}

#[test]
fn rows_that_a_forgotten_load_left_are_named_before_and_after_an_append() {
    let bench = Bench::new();
    let file = five(bench.dir.path(), "a.csv", 1);
    bench.load(&file, "d", &[]).ok();
    bench.client().batch_execute("delete from d where id = 3").unwrap();
    forget(&bench.server.url(), "d").ok();
    let error = bench.load(&file, "d", &[]).fails(1);
    for part in
        ["it has 4 rows, which may be those of the files", "sawmill verify", "append would add all rows"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let append = ["--mode", "append", "--verify"];
    let added = bench.load(&file, "d", &append).ok().out;
    let words = "verified: the table holds 5 rows of the files; not compared with the files: 4 other rows";
    assert!(added.contains(words) && !added.contains(WHOLE), "{added}");
    // Once more on request, and what that means is said.
    let refused = bench.load(&file, "d", &["--again"]).fails(2);
    assert!(refused.contains("also those that the table has"), "{refused}");
    let again = bench.load(&file, "d", &[&append[..], &["--again"]].concat()).ok();
    assert!(
        again.err.contains("a.csv once more") && again.err.contains("will be there twice"),
        "{}",
        again.err
    );
    assert!(again.out.contains("not compared with the files: 9 other rows"), "{}", again.out);
    // Following the advice about missing rows doubles no row.
    bench.client().batch_execute("delete from d where id = 3").unwrap();
    let error = bench.load(&file, "d", &append).fails(4);
    assert!(error.contains("also those that the table still has"), "{error}");
}

#[test]
fn the_first_rows_of_a_file_are_not_taken_for_rows_of_the_whole() {
    let bench = Bench::new();
    let file = five(bench.dir.path(), "a.csv", 1);
    bench.load(&file, "r", &["--rows", "2"]).ok();
    let whole = bench.load(&file, "r", &["--mode", "append", "--verify"]).ok().out;
    assert!(
        whole.contains("holds 5 rows of the files; not compared with the files: 2 other rows"),
        "{whole}"
    );
}

#[test]
fn a_comparison_that_is_not_possible_is_an_error() {
    let bench = Bench::new();
    let file = five(bench.dir.path(), "a.csv", 1);
    bench.load(&file, "e", &["--verify"]).ok();
    bench.client().batch_execute("alter table e alter code type numeric").unwrap();
    for more in [&["--verify"][..], &["--verify", "-q"]] {
        let error = bench.load(&file, "e", more).fails(1);
        assert!(error.contains("not verified: the table's columns have changed"), "{error}");
    }
    bench.load(&file, "e", &[]).ok();
}

#[test]
fn a_column_that_was_dropped_and_added_again_is_an_error_every_night() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    five(&folder, "1.csv", 1);
    let night = || bench.load(&folder, "m", &["--evolve", "--verify", "-q"]);
    night().ok();
    bench.client().batch_execute("alter table m drop code; alter table m add code bigint").unwrap();
    five(&folder, "2.csv", 6);
    for _ in 0..2 {
        let error = night().fails(1);
        assert!(error.contains("column \"code\" of the table is another one"), "{error}");
        assert_eq!(bench.count("select count(*) from m"), 10);
    }
}

#[test]
fn a_table_that_has_the_rows_of_its_files_alone_is_verified_whole() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let first = five(&folder, "1.csv", 1);
    let night = || bench.load(&folder, "w", &["--verify"]).ok().out;
    assert!(night().contains(WHOLE));
    five(&folder, "2.csv", 6);
    for _ in 0..2 {
        let out = night();
        assert!(out.contains(WHOLE) && !out.contains("not compared"), "{out}");
    }
    let one = bench.load(&first, "w", &["--mode", "append", "--verify"]).ok().out;
    assert!(one.contains("holds 5 rows of the files; not compared with the files: 5 other rows"), "{one}");
}

#[test]
fn in_a_table_with_rows_of_others_each_night_verifies_what_it_loads_and_says_so() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    five(&folder, "1.csv", 1);
    bench
        .client()
        .batch_execute("create table n (id bigint, code bigint); insert into n values (0, 0)")
        .unwrap();
    let night = |more: &[&str]| bench.load(&folder, "n", &[&["--mode", "append", "--verify"], more].concat());
    let first = night(&[]).ok().out;
    assert!(first.contains("holds 5 rows of the files; not compared with the files: 1 other row"), "{first}");
    five(&folder, "2.csv", 6);
    let second = night(&["-q"]).ok();
    assert_eq!(second.out, "");
    for part in ["not verified: the files were compared with the records", "verified what this run loaded"] {
        assert!(second.err.contains(part), "{part}: {}", second.err);
    }
    // A night without a new file compares the files with the records, and says so.
    let words = "not verified: the files were compared with the records of their loads, but not with the table, which has \
                 other rows than those on record";
    let idle = night(&[]).ok().out;
    assert!(idle.contains(words), "{idle}");
    let idle = night(&["-q"]).ok();
    assert_eq!(idle.out, "");
    assert!(idle.err.contains(words), "{}", idle.err);
    assert_eq!(bench.count("select count(*) from n"), 11);
    // Rows that are missing are an error, also if another file was loaded.
    five(&folder, "3.csv", 11);
    bench.client().batch_execute("delete from n where id in (0, 1)").unwrap();
    let error = night(&[]).fails(4);
    assert!(error.contains("the table has 9 rows; according to the records 10 were loaded"), "{error}");
    assert_eq!(bench.count("select count(*) from n"), 14);
}

#[test]
fn rows_that_a_forgotten_load_left_in_cratedb_are_named() {
    let bench = cratedb::Bench::standin();
    let file = five(bench.dir.path(), "a.csv", 1);
    bench.load(&file, &[]).ok();
    // CrateDB refuses --locate, so that nothing advises it.
    let other = five(bench.dir.path(), "b.csv", 6);
    let error = sawmill(bench.args("verify", &other, &[])).fails(4);
    assert!(error.contains("--mode replace") && !error.contains("--locate"), "{error}");
    forget(&bench.url, &bench.table).ok();
    let error = bench.load(&file, &[]).fails(1);
    assert!(error.contains("it has 5 rows") && error.contains("sawmill verify"), "{error}");
    let added = bench.load(&file, &["--mode", "append", "--at-least-once", "--verify"]).ok().out;
    assert!(
        added.contains("holds 5 rows of the files; not compared with the files: 5 other rows"),
        "{added}"
    );
    let again = bench.load(&file, &["--mode", "append", "--at-least-once", "--verify", "--again"]).ok();
    assert!(again.err.contains("will be there twice"), "{}", again.err);
    assert!(again.out.contains("not compared with the files: 10 other rows"), "{}", again.out);
}
