//! `--where`: the rows that a server picks by the same condition, also after a load was killed.

use std::path::PathBuf;

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

fn orders(bench: &Bench, rows: &str) -> PathBuf {
    let path = bench.dir.path().join(format!("orders-{rows}.parquet"));
    let columns = ["gen", "orders", "--rows", rows, "--row-group-rows", "50k", "--out"];
    sawmill(columns.into_iter().chain([path.to_str().unwrap()])).ok();
    path
}

const COLUMNS: &str = "id,customer_id,status,priority,ordered_at,shipped_at";

#[test]
fn the_rows_that_the_server_picks_by_the_same_condition_are_loaded() {
    let bench = Bench::new();
    let file = orders(&bench, "200k");
    bench.load(&file, "everything", &["--columns", COLUMNS]).ok();
    for (at, condition) in [
        "id > 120000 and status <> 'open' and ordered_at >= '2024-01-20'",
        "priority is null or not (customer_id between 10 and 20000) and status like '%ed'",
        "shipped_at < '2024-01-03 12:00:00+02' and priority not in ('normal', 'express')",
        "id < 0",
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("picked_{at}");
        let more = ["--columns", COLUMNS, "--where", condition, "--verify", "--json", "--unit-rows", "7000"];
        let json = bench.load(&file, &table, &more).ok().json();
        let picked = bench.count(&format!("select count(*) from {table}"));
        assert_eq!(json["report"]["rows"], picked);
        let expected = format!("select * from everything where {condition}");
        for (one, other) in
            [(format!("table {table}"), &expected), (expected.clone(), &format!("table {table}"))]
        {
            let difference = bench.count(&format!("select count(*) from ({one} except all {other}) as d"));
            assert_eq!(difference, 0, "{condition}: {one} except {other}");
        }
        let verify = bench.args("verify", &file, &table, &["--columns", COLUMNS, "--where", condition]);
        sawmill(verify).ok();
    }
    let other = bench.args("verify", &file, "picked_0", &["--columns", COLUMNS, "--where", "id > 5"]);
    assert!(sawmill(other).fails(4).contains("rows instead of"));
}

#[test]
fn a_killed_load_of_some_rows_is_finished_by_the_same_command_and_by_no_other() {
    let bench = Bench::new();
    let file = orders(&bench, "600k");
    let condition = "status = 'shipped' and id >= 60000";
    let more = ["--columns", COLUMNS, "--where", condition, "--unit-rows", "2000", "--verify"];
    let args = bench.args("load", &file, "shipped", &more);
    let child = start(&args);
    let mut client = bench.client();
    until("the first unit", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    signal(&child, "KILL");
    wait(child);
    let other = ["--columns", COLUMNS, "--where", "status = 'shipped'"];
    let error = bench.load(&file, "shipped", &other).fails(1);
    assert!(error.contains("forget"), "another condition is another load: {error}");
    let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    bench.load(&file, "everything", &["--columns", COLUMNS]).ok();
    let expected = bench.count(&format!("select count(*) from everything where {condition}"));
    assert_eq!(json["report"]["rows"], expected);
    assert_eq!(bench.count("select count(distinct id) from shipped"), expected);
}

#[test]
fn what_statistics_spare_is_explained_and_a_limit_counts_rows_that_pass() {
    let bench = Bench::new();
    let file = orders(&bench, "200k");
    let explain = ["--where", "id > 160000 and id <= 190000", "--explain"];
    let json = bench.load(&file, "t", &[&explain[..], &["--json"]].concat()).ok().json();
    assert_eq!((&json["rows"], &json["pruned"]["row_groups"]), (&30_000.into(), &4.into()));
    assert_eq!(json["pruned"]["row_groups_pruned"], 3);
    assert!(json["pruned"]["pages_pruned"].as_u64().unwrap() > 0, "{json}");
    let text = bench.load(&file, "t", &explain).ok().out;
    assert!(
        text.contains("of 4 row groups, 3 without matching rows and 0 with matching rows only"),
        "{text}"
    );
    let limit = ["--columns", "id", "--where", "id > 160000", "--rows", "1000"];
    bench.load(&file, "few", &limit).ok();
    assert_eq!(
        bench.count("select sum(id)::bigint from few where id between 160001 and 161000"),
        160_500_500
    );
}

#[test]
fn the_first_rows_of_a_file_with_other_content_than_before_are_refused() {
    let bench = Bench::new();
    bench.client().batch_execute("create table whole (id bigint); create table part (id bigint)").unwrap();
    let file = bench.dir.path().join("ids.csv");
    let first = ["--mode", "append", "--rows", "1"];
    for (table, before) in [("whole", &first[..2]), ("part", &first[..])] {
        std::fs::write(&file, "id\n1\n2\n").unwrap();
        bench.load(&file, table, before).ok();
        let count = format!("select count(*) from {table}");
        let rows = bench.count(&count);
        std::fs::write(&file, "id\n3\n4\n5\n").unwrap();
        let error = bench.load(&file, table, &first).fails(1);
        for part in ["ids.csv", "with other content", "--changed append"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(bench.count(&count), rows);
        bench.load(&file, table, &[&first[..], &["--changed", "append"]].concat()).ok();
        assert_eq!(bench.count(&count), rows + 1);
        assert!(bench.load(&file, table, &first).ok().out.contains("nothing to do"));
    }
}

#[test]
fn an_invalid_condition_is_rejected_before_anything_is_sent() {
    let bench = Bench::new();
    let file = orders(&bench, "1000");
    let refused = |condition: &str| bench.load(&file, "t", &["--where", condition]).fails(2);
    assert!(refused("id >").contains("expected a number"));
    assert!(refused("nothing = 1").contains("the columns are id, customer_id"));
    assert!(refused("id = 'x'").contains("column \"id\" is Int64: expected a number, found 'x'"));
    assert!(refused("items is null").contains("cannot be in a condition"));
    let generated = PathBuf::from("gen:orders?rows=10");
    assert!(bench.load(&generated, "t", &["--where", "id = 1"]).fails(2).contains("generated"));
    assert!(!bench.exists("t"));
}

#[test]
fn files_can_be_named_by_a_list() {
    let bench = Bench::new();
    let (first, second) = (orders(&bench, "1000"), orders(&bench, "700"));
    let list = bench.dir.path().join("names.txt");
    std::fs::write(&list, format!("{}\n\n{}\r\n", first.display(), second.display())).unwrap();
    let named = PathBuf::from(format!("@{}", list.display()));
    bench.load(&named, "listed", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from listed"), 1700);
    let mut command = crate::harness::command(bench.args("verify", &PathBuf::from("@-"), "listed", &[]));
    let ran = command.stdin(std::fs::File::open(&list).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::fs::write(&list, "\n").unwrap();
    assert!(bench.load(&named, "listed", &[]).fails(1).contains("names no file"));
    let missing = PathBuf::from("@/nowhere/names.txt");
    assert!(bench.load(&missing, "listed", &[]).fails(1).contains("/nowhere/names.txt"));
}

#[test]
fn enumerations_are_made_of_files_and_of_generated_rows_alike() {
    let bench = Bench::new();
    let file = orders(&bench, "2000");
    let generated = PathBuf::from("gen:orders?rows=2000");
    let more = ["--columns", COLUMNS, "--enums", "enum", "--verify"];
    bench.load(&file, "stored", &more).ok();
    bench.load(&generated, "made", &more).ok();
    let labels = |table: &str| -> String {
        let sql = format!("select enum_range(null::{table}_priority)::text");
        bench.client().query_one(&sql, &[]).unwrap().get(0)
    };
    assert_eq!(labels("stored"), "{express,normal,overnight}");
    assert_eq!(labels("made"), labels("stored"));
    sawmill(bench.args("verify", &file, "made", &["--columns", COLUMNS])).ok();
    let ddl = bench.load(&file, "t", &["--columns", "priority", "--enums", "enum", "--ddl"]).ok().out;
    assert!(
        ddl.starts_with("CREATE TYPE \"t_priority\" AS ENUM ('express', 'normal', 'overnight');"),
        "{ddl}"
    );
    let refused = ["load", "x.parquet", "--to", "crate://localhost", "--table", "t", "--enums", "enum"];
    assert!(sawmill(refused).fails(2).contains("CrateDB has no enumerations"));
}

/// The state of a process that is not waited for yet, and the seconds for which a processor ran it.
fn processor_time(process: u32) -> (String, f64) {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
    (fields[0].to_owned(), (ticks(11) + ticks(12)) / 100.0)
}

#[test]
fn a_count_that_is_interrupted_ends_at_once_and_leaves_nothing() {
    let bench = Bench::new();
    let file = orders(&bench, "3M");
    let condition =
        "status like '%p%d%' or status like '%a%i%' or priority like '%o%g%t%' or status like '%e%u%n%'";
    let args = bench.args("load", &file, "t", &["--columns", COLUMNS, "--where", condition]);
    let child = start(&args);
    let tasks = format!("/proc/{}/task", child.id());
    until("the count", || {
        let threads = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
        names.into_iter().any(|name| name.starts_with("counter"))
    });
    signal(&child, "INT");
    let (_, before) = processor_time(child.id());
    let mut after = before;
    until("the end", || {
        let (state, now) = processor_time(child.id());
        after = now;
        state == "Z"
    });
    wait(child).fails(130);
    assert!(after - before < 2.0, "{} s of a processor", after - before);
    assert_eq!(bench.count("select count(*) from pg_namespace where nspname = '_sawmill'"), 0);
    assert!(!bench.exists("t") && !bench.exists("t__sawmill_loading"));
}

#[test]
fn the_table_and_the_rejected_rows_are_compared_with_the_files() {
    let bench = Bench::new();
    let file = orders(&bench, "5000");
    bench
        .client()
        .batch_execute("create table t (id smallint, status text check (status <> 'returned'))")
        .unwrap();
    let rejects = bench.dir.path().join("rejects.parquet");
    let rejects = rejects.to_str().unwrap();
    let columns = ["--columns", "id,status", "--rejects", rejects];
    let json = bench.load(&file, "t", &[&columns[..], &["--mode", "append", "--json"]].concat()).ok().json();
    let rejected = json["report"]["rows_rejected"].as_u64().unwrap();
    assert!(rejected > 0);
    let json = sawmill(bench.args("verify", &file, "t", &[&columns[..], &["--json"]].concat())).ok().json();
    assert_eq!(json["put_aside"], rejected);
    bench.client().batch_execute("update t set id = 77 where id = (select max(id) from t)").unwrap();
    let error = sawmill(bench.args("verify", &file, "t", &columns)).fails(4);
    assert!(error.contains("columns id"), "{error}");
    let crate_db = ["verify", "x.parquet", "--to", "crate://localhost", "--table", "t", "--rejects", rejects];
    assert!(sawmill(crate_db).fails(2).contains("not available for CrateDB"));
}

#[test]
fn a_file_of_rejected_rows_that_promises_another_format_is_refused_before_connecting() {
    let refused = |to: &str, file: &str| {
        sawmill(["load", "x.parquet", "--to", to, "--table", "t", "--at-least-once", "--rejects", file])
            .fails(2)
    };
    for file in ["out.csv", "out.ndjson"] {
        let to = ["load", "x.parquet", "--to", "postgres://localhost/x", "--table", "t", "--rejects", file];
        let error = sawmill(to).fails(2);
        assert!(
            error.contains("PostgreSQL rejects are written as Parquet") && error.contains("out.parquet"),
            "{error}"
        );
    }
    for file in ["out.csv", "out.parquet", "out.json"] {
        let error = refused("crate://localhost", file);
        assert!(
            error.contains("CrateDB rejects are written as NDJSON") && error.contains("out.ndjson"),
            "{error}"
        );
    }
    // The name fits NDJSON, so the next error is about the missing source.
    let written = ["load", "x.parquet", "--to", "crate://127.0.0.1:1", "--table", "t", "--at-least-once"];
    assert!(sawmill([&written[..], &["--rejects", "out.JSONL"]].concat()).err.contains("x.parquet"));
}

#[test]
fn an_address_of_another_database_is_answered_with_the_schemes_that_are_supported() {
    let error = sawmill(["load", "x.parquet", "--to", "mysql://localhost/x", "--table", "t"]).fails(2);
    for scheme in ["postgres://", "postgresql://", "crate://", "crates://"] {
        assert!(error.contains(scheme), "{error}");
    }
}

#[test]
fn a_new_name_that_cratedb_does_not_take_is_answered_with_the_rename_that_helps() {
    let bench = Bench::new();
    let file = orders(&bench, "100");
    let to = ["--to", "crate://127.0.0.1:1", "--table", "t", "--row-key", "--rename", "id=_id"];
    let error = sawmill([&["load", file.to_str().unwrap()][..], &to].concat()).fails(2);
    assert!(error.contains("\"_id\" is a system column") && error.contains("--rename 'id=id'"), "{error}");
}

#[test]
fn mode_truncate_says_that_it_needs_a_table() {
    let bench = Bench::new();
    let error = bench.load(&orders(&bench, "100"), "t", &["--mode", "truncate"]).fails(1);
    assert!(
        error.contains("the table does not exist: mode truncate") && !error.contains("append"),
        "{error}"
    );
}
