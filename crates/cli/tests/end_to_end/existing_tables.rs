//! Existing tables: others read them, and they have more columns than the files.

use crate::harness::{has_spoken, sawmill, start, until, wait};
use crate::load::Bench;

#[test]
fn a_replacement_reports_whom_it_waits_for_and_fails_after_the_timeout() {
    let bench = Bench::new();
    let file = bench.contacts("500");
    bench.load(&file, "contacts", &[]).ok();
    let mut reader = bench.client();
    let process: i32 = reader.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    reader.batch_execute("BEGIN; SELECT count(*) FROM contacts").unwrap();

    let limited = bench.load(&file, "contacts", &["--mode", "replace", "--again", "--lock-timeout", "500ms"]);
    assert_eq!(limited.code, Some(1));
    for part in [&format!("process {process}"), "--lock-timeout", "SELECT count(*) FROM contacts"] {
        assert!(limited.err.contains(part), "{}", limited.err);
    }
    let args = bench.args("load", &file, "contacts", &["--mode", "replace", "--again"]);
    let waiting = start(args);
    let blocked = "SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid \
                   WHERE NOT granted AND mode = 'AccessExclusiveLock' AND datname = current_database()";
    until("the load waits", || bench.count(blocked) > 0);
    until("the load names the lock", || has_spoken(&waiting));
    reader.batch_execute("COMMIT").unwrap();
    let ended = wait(waiting);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains(&format!("waiting for a lock: process {process}")), "{}", ended.err);
    let wrong = bench.load(&file, "contacts", &["--mode", "replace", "--lock-timeout", "soon"]);
    assert!(wrong.code != Some(0) && wrong.err.contains("lock_timeout"), "{}", wrong.err);
}

#[test]
fn a_table_with_more_columns_is_verified_in_those_of_the_files_and_the_others_are_named() {
    let bench = Bench::new();
    let file = bench.contacts("500");
    bench.load(&file, "contacts", &[]).ok();
    bench.client().batch_execute("ALTER TABLE contacts ADD remark text").unwrap();
    let whole = sawmill(bench.args("verify", &file, "contacts", &[]));
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    assert!(whole.out.contains("the same in these columns"), "{}", whole.out);
    assert!(whole.out.contains("not compared: columns remark of the table"), "{}", whole.out);
    let columns = sawmill(bench.args("verify", &file, "contacts", &["--columns", "name"]));
    assert_eq!(columns.code, Some(0), "{}", columns.err);
    assert!(columns.out.contains("not compared: columns phones, remark of the table"), "{}", columns.out);
    let again = bench.load(&file, "contacts", &["--mode", "append", "--again", "--verify"]);
    assert!(
        again.out.contains("columns of the table that the files lack: \"remark\" (null)"),
        "{}",
        again.out
    );
}

#[test]
fn the_error_of_a_load_names_the_columns_that_it_has_added_and_how_corrected_files_are_loaded() {
    let bench = Bench::new();
    bench.client().batch_execute("create table days (id bigint check (id < 100))").unwrap();
    let file = bench.dir.path().join("rows.csv");
    let load = || bench.load(&file, "days", &["--mode", "append", "--evolve"]);
    std::fs::write(&file, "id,w\n1,5\n2,6\n300,7\n").unwrap();
    let error = load().fails(1);
    for part in ["the table keeps what the load has added: \"w\" bigint", "ALTER TABLE ... DROP COLUMN \"w\""]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    std::fs::write(&file, "id,w\n1,2024-01-01\n2,2024-01-02\n3,2024-01-03\n").unwrap();
    bench.client().batch_execute("alter table days drop column w").unwrap();
    load().ok();
    assert_eq!(bench.count("select count(*) from days where w >= date '2024-01-01'"), 3);
}

#[test]
fn a_late_value_that_does_not_fit_leaves_the_added_columns_which_each_run_names() {
    let bench = Bench::new();
    bench.client().batch_execute("create table days (n integer)").unwrap();
    let file = bench.dir.path().join("rows.csv");
    let load = |more: &[&str]| {
        let options = ["--mode", "append", "--schema-change", "add", "--connections", "1"];
        bench.load(&file, "days", &[&options[..], more].concat())
    };
    let good: String = (0..300_000).map(|n| format!("{n},{n}\n")).collect();
    std::fs::write(&file, format!("n,w\n{good}x,1\n")).unwrap();
    for _ in 0..2 {
        let error = load(&[]).fails(1);
        for part in ["\"x\"", "line 300002", "the table keeps what the load has added: \"w\" bigint"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let rejects = bench.dir.path().join("rejects.parquet");
    load(&["--rejects", rejects.to_str().unwrap()]).ok();
    assert_eq!(bench.count("select count(w) from days"), 300_000);
    // Columns that fit neither before nor after a change leave the table as it is.
    std::fs::write(&file, "n,w,v\n2024-01-01,1,2\n").unwrap();
    let table = "create table other (n boolean)";
    bench.client().batch_execute(table).unwrap();
    bench.load(&file, "other", &["--mode", "append", "--schema-change", "add"]).fails(1);
    let columns = "select count(*) from information_schema.columns where table_name = 'other'";
    assert_eq!(bench.count(columns), 1);
}
