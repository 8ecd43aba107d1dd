//! The records of loads: what they say of each file, and which of them can go.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cratedb;
use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::{ADVISORY_LOCKS, Bench};

fn day(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The words of `load status` or `load prune`.
fn words<'a>(what: &'a str, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["load", what, "--to", url][..], more].concat()
}

/// Makes all loads into a table end a hundred days ago.
fn age(bench: &Bench, table: &str) {
    let update = format!(
        "update _sawmill.loads set begun = begun - interval '100 days', completed = completed - interval '100 days' \
         where target = 'public.{table}'"
    );
    bench.client().batch_execute(&update).unwrap();
}

fn tables(loads: &Value) -> Vec<String> {
    let mut tables: Vec<String> =
        loads.as_array().unwrap().iter().map(|load| load["table"].as_str().unwrap().to_owned()).collect();
    tables.sort();
    tables
}

#[test]
fn tables_whose_names_have_dots_share_no_record() {
    let bench = Bench::new();
    let create = "create schema a; create schema \"a.b\"; create table a.\"b.c\" (id int8, v int8); \
                  create table \"a.b\".c (id int8, v int8); create table \"q\"\"t\" (id int8, v int8)";
    bench.client().batch_execute(create).unwrap();
    let file = day(bench.dir.path(), "1.csv", "id,v\n1,5\n2,6\n");
    let names = ["a.\"b.c\"", "\"a.b\".c", "public.\"q\"\"t\""];
    for table in names {
        bench.load(&file, table, &["--mode", "append"]).ok();
    }
    for table in names {
        let said = bench.load(&file, table, &["--mode", "append", "--verify"]).ok().out;
        assert!(said.contains("nothing to do"), "{table}: {said}");
        let of = sawmill(words("status", &bench.server.url(), &["--table", table, "--json"])).ok().json();
        assert_eq!(tables(&of), [table], "{of}");
        assert_eq!(bench.count(&format!("select count(*) from {table}")), 2);
    }
    bench.client().batch_execute("alter table a.\"b.c\" rename to \"d.e\"").unwrap();
    let said = bench.load(&file, "a.\"d.e\"", &["--mode", "append"]).ok().out;
    assert!(said.contains("nothing to do"), "{said}");
    sawmill(bench.args("load", Path::new("forget"), "\"a.b\".c", &[])).ok();
    let left = sawmill(words("status", &bench.server.url(), &["--json"])).ok().json();
    assert_eq!(tables(&left), ["a.\"d.e\"", "public.\"q\"\"t\""]);
}

#[test]
fn the_history_says_of_each_file_what_was_loaded_when_and_how() {
    let bench = Bench::new();
    let url = bench.server.url();
    let file = day(bench.dir.path(), "1.csv", "id,v\n1,5\n2,6\n2,7\n");
    let load = |table: &str| {
        let rejects = bench.dir.path().join(format!("{table}.parquet"));
        let rejects = rejects.to_str().unwrap();
        bench.load(&file, table, &["--primary-key", "id", "--rejects", rejects]).ok()
    };
    load("days");
    day(bench.dir.path(), "2.csv", "id,v,w\n4,7,1\n");
    let second = bench.dir.path().join("2.csv");
    bench.load(&second, "days", &["--mode", "append", "--evolve"]).ok();
    load("gone");
    bench.client().batch_execute("drop table gone").unwrap();

    let loads = sawmill(words("status", &url, &["--history", "--json"])).ok().json();
    let of = |table: &str, mode: &str| {
        let mut loads = loads.as_array().unwrap().iter();
        loads.find(|load| load["table"] == table && load["mode"] == mode).unwrap()
    };
    let first = of("public.days", "create");
    let known = &first["files"][0];
    assert_eq!((&known["bytes"], &known["rows"], &known["rejected"]), (&17.into(), &2.into(), &1.into()));
    assert!(known["hash"].as_str().unwrap().len() > 30, "{known}");
    assert_eq!(known["hash"], of("public.gone", "create")["files"][0]["hash"]);
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert!(first["seconds"].as_f64().unwrap() > 0.0, "{first}");
    let command = first["command"].as_str().unwrap();
    assert!(command.starts_with("sawmill load /") && !command.contains("postgres"), "{command}");
    assert_eq!(of("public.days", "append")["columns"]["added"][0]["name"], "w");
    assert_eq!(
        (&first["table_exists"], &of("public.gone", "create")["table_exists"]),
        (&true.into(), &false.into())
    );

    let text = sawmill(words("status", &url, &["--history"])).ok().out;
    for part in ["public.gone (dropped): mode create", "rejected", "adds column \"w\" bigint", command] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn pruning_removes_what_no_later_load_needs_and_says_why_it_keeps_the_rest() {
    let bench = Bench::new();
    let url = bench.server.url();
    let file = day(bench.dir.path(), "1.csv", "id\n1\n2\n");
    let more = day(bench.dir.path(), "2.csv", "id\n3\n");
    bench.client().batch_execute("create table keyed (id bigint primary key)").unwrap();
    bench.load(&file, "days", &[]).ok();
    bench.load(&file, "gone", &[]).ok();
    bench.load(&more, "gone", &["--mode", "append"]).ok();
    bench.load(&file, "lately", &[]).ok();
    bench.load(&file, "keyed", &["--mode", "insert", "--key", "id"]).ok();
    bench.client().batch_execute("drop table gone; drop table lately").unwrap();
    ["days", "gone", "keyed"].into_iter().for_each(|table| age(&bench, table));

    let prune = |more: &[&str]| {
        let words = words("prune", &url, &[&["--older-than", "90d", "--json"], more].concat());
        sawmill(words).ok().json()
    };
    let planned = prune(&["--dry-run"]);
    assert_eq!(tables(&planned["removed"]), ["public.gone", "public.gone", "public.keyed"]);
    assert_eq!(bench.count("select count(*) from _sawmill.loads"), 5);
    let text = sawmill(words("prune", &url, &["--older-than", "90d", "--dry-run"])).ok().out;
    for part in [
        "would remove the records of 3 loads",
        "keeps 1 load into public.days: the table exists: an append skips the files on record",
        "keeps 1 load into public.lately: is not old enough",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(tables(&prune(&["--table", "keyed"])["removed"]), ["public.keyed"]);

    let mut holder = bench.client();
    let hold = "begin; select from _sawmill.loads for update";
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                   and datname = current_database()";
    let begin = || start(words("prune", &url, &["--older-than", "90d", "--json"]));
    // A run that is killed before its commit removes nothing.
    holder.batch_execute(hold).unwrap();
    let killed = begin();
    until("the run waits", || bench.count(waiting) == 1);
    signal(&killed, "KILL");
    assert_ne!(wait(killed).code, Some(0));
    holder.batch_execute("rollback").unwrap();
    until("its session ends", || bench.count(ADVISORY_LOCKS) == 0);
    assert_eq!(bench.count("select count(*) from _sawmill.loads"), 4);
    // Two at once remove each record once.
    holder.batch_execute(hold).unwrap();
    let both = [begin(), begin()];
    until("both wait", || bench.count(waiting) == 2);
    holder.batch_execute("rollback").unwrap();
    let both = both.map(|run| tables(&wait(run).ok().json()["removed"]));
    assert_eq!(both.concat(), ["public.gone", "public.gone"]);
    assert_eq!(bench.count("select count(*) from _sawmill.loads"), 2);
    assert!(bench.load(&file, "days", &["--mode", "append"]).ok().out.contains("nothing to do"));
    assert_eq!(bench.count("select count(*) from days"), 2);
}

#[test]
fn cratedb_keeps_a_history_too() {
    let bench = cratedb::Bench::standin();
    let file = day(bench.dir.path(), "1.csv", "id,v\n1,5\n2,6\n");
    let load = || bench.load(&file, &["--row-key"]).ok();
    load();
    let history = |more: &[&str]| sawmill(words("status", &bench.url, &[&["--history"], more].concat())).ok();
    let loads = history(&["--json"]).json();
    assert_eq!((&loads[0]["files"][0]["bytes"], &loads[0]["files"][0]["rows"]), (&13.into(), &2.into()));
    assert_eq!(
        (&loads[0]["version"], &loads[0]["table_exists"]),
        (&env!("CARGO_PKG_VERSION").into(), &true.into())
    );
    assert!(loads[0]["seconds"].as_f64().is_some(), "{loads}");

    let prune = |more: &[&str]| {
        let words = words("prune", &bench.url, &[&["--older-than", "0s", "--json"], more].concat());
        sawmill(words).ok().json()
    };
    assert_eq!(prune(&[])["kept"][0]["why"], "table_exists");
    assert!(load().out.contains("nothing to do"));
    bench.sql(&format!("DROP TABLE doc.{}", bench.table));
    assert!(history(&[]).out.contains("(dropped)"));
    assert_eq!(tables(&prune(&["--dry-run"])["removed"]).len(), 1);
    assert_eq!(tables(&prune(&[])["removed"]).len(), 1);
    assert_eq!(history(&["--json"]).json(), Value::Array(Vec::new()));
}

#[test]
fn records_that_are_left_out_are_counted_by_the_report_and_by_the_history() {
    let bench = Bench::new();
    let file = day(bench.dir.path(), "1.csv", "id,v\n1,a\n2,b,c\n3,d\n");
    let rejects = bench.dir.path().join("left_out.csv");
    let more = ["--rejects", rejects.to_str().unwrap()];
    let report = bench.load(&file, "days", &more).ok().out;
    assert!(report.contains("1 record cannot be read and is left out"), "{report}");
    let again = bench.load(&file, "days", &[&more[..], &["--json"]].concat()).ok().json();
    assert_eq!(again["records_left_out"], 1);
    let whole = day(bench.dir.path(), "2.csv", "id,v\n4,a\n");
    let report = bench.load(&whole, "days", &["--mode", "append", "--json"]).ok().json();
    assert_eq!(report["records_left_out"], 0);

    let loads = sawmill(words("status", &bench.server.url(), &["--history", "--json"])).ok().json();
    let rejected =
        |load: usize| (loads[load]["rejected"].as_u64(), loads[load]["files"][0]["rejected"].as_u64());
    assert_eq!((rejected(0), rejected(1)), ((Some(0), Some(0)), (Some(1), Some(1))), "{loads}");
}

#[test]
fn loads_are_listed_and_pruned_under_the_names_of_their_modes() {
    let bench = Bench::new();
    let url = bench.server.url();
    bench.client().batch_execute("create table days (id smallint primary key, v smallint)").unwrap();
    let file = day(bench.dir.path(), "1.csv", "id,v\n1,5\n2,6\n");
    for (table, mode, newest) in
        [("days", "insert", &[][..]), ("days", "upsert", &["--newest", "v"]), ("versions", "history", &[])]
    {
        let merge = [&["--mode", mode, "--key", "id", "--verify"][..], newest].concat();
        let verified = bench.load(&file, table, &merge).ok().out;
        assert!(verified.contains("verified"), "{verified}");
        let again = bench.load(&file, table, &merge).ok().out;
        assert!(again.contains(&format!("mode {mode} verifies only while it merges")), "{again}");
        let listed = sawmill(words("status", &url, &["--table", table])).ok().out;
        assert!(listed.contains(mode), "{listed}");
    }
    let loads = sawmill(words("status", &url, &["--json", "--patience", "20s"])).ok().json();
    let modes: Vec<_> = loads.as_array().unwrap().iter().map(|load| load["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["history", "upsert", "insert"]);
    age(&bench, "days");
    let pruned = sawmill(words("prune", &url, &["--older-than", "90d"])).ok().out;
    assert!(pruned.contains("mode insert") && pruned.contains("2 loads"), "{pruned}");
    let forgotten = sawmill(words("forget", &url, &["--table", "versions", "--patience", "20s"])).ok().out;
    assert!(forgotten.contains("forgot 1 load"), "{forgotten}");
}

#[test]
fn rows_of_files_that_are_in_order_together_are_not_counted_with_the_first() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", "at\n2024-01-02\n");
    day(&folder, "2.csv", "at\n2024-01-01\n2024-01-03\n");
    let url = bench.server.url();
    bench.load(&folder, "days", &["--sort-by", "at"]).ok();
    let loads = sawmill(words("status", &url, &["--json"])).ok().json();
    assert_eq!(loads[0]["rows"], 3);
    for file in loads[0]["files"].as_array().unwrap() {
        assert!(file["rows"].is_null() && file["rejected"].is_null(), "{file}");
    }
    for more in [&[][..], &["--history"]] {
        let text = sawmill(words("status", &url, more)).ok().out;
        let of_file = text.lines().find(|line| line.contains("1.csv")).unwrap();
        assert!(of_file.split_whitespace().any(|cell| cell == "-"), "{text}");
    }
}

#[test]
fn a_merge_whose_rows_would_replace_newer_ones_stays_on_record() {
    let bench = Bench::new();
    let url = bench.server.url();
    bench.client().batch_execute("create table rows (id bigint primary key, v bigint)").unwrap();
    let first = day(bench.dir.path(), "1.csv", "id,v\n1,10\n");
    let second = day(bench.dir.path(), "2.csv", "id,v\n1,20\n");
    for (mode, table) in [("history", "versions"), ("upsert", "rows")] {
        let merge = ["--mode", mode, "--key", "id"];
        [&first, &second].into_iter().for_each(|file| drop(bench.load(file, table, &merge).ok()));
        age(&bench, table);
        let pruned = sawmill(words("prune", &url, &["--older-than", "90d"])).ok().out;
        assert!(pruned.contains("would overwrite newer rows"), "{pruned}");
        assert!(bench.load(&first, table, &merge).ok().out.contains("nothing to do"));
    }
    assert_eq!(bench.count("select v from versions where current"), 20);
    assert_eq!(bench.count("select v from rows"), 20);
}
