//! `--nested jsonb|native|tables`: the same records in three layouts, and the queries of the documentation
//! that put them together again.

use std::path::Path;

use postgres::{Client, NoTls};

use crate::database::Database;
use crate::harness::{Ran, sawmill, signal, start, until, wait};

fn args(verb: &str, server: &Database, file: &str, table: &str, more: &[&str]) -> Vec<String> {
    let url = server.url();
    let fixed = [verb, file, "--to", &url, "--table", table];
    fixed.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
}

fn load(server: &Database, file: &str, table: &str, more: &[&str]) -> Ran {
    sawmill(args("load", server, file, table, more))
}

fn client(server: &Database) -> Client {
    Client::connect(&server.url(), NoTls).unwrap()
}

/// The query that the documentation gives for a layout.
fn documented(layout: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loading-reference.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once(&format!("<!-- the rows again: {layout} -->\n```sql\n")).unwrap();
    after.split_once(";\n```").unwrap().0.to_owned()
}

#[test]
fn the_documented_queries_put_the_same_records_together_from_each_layout() {
    let server = Database::new();
    let mut client = client(&server);
    let mut records = Vec::new();
    for (layout, more) in [
        ("jsonb", &[][..]),
        ("native", &["--nested", "native"]),
        ("tables", &["--nested", "tables", "--foreign-keys"]),
    ] {
        client.batch_execute(&format!("CREATE SCHEMA {layout}; SET search_path = {layout}")).unwrap();
        let table = format!("{layout}.contacts");
        let more = [more, &["--verify", "--unit-rows", "1000"]].concat();
        load(&server, "gen:contacts?rows=5k", &table, &more).ok();
        let query = documented(layout);
        let all = format!("SELECT string_agg(r::text, E'\\n' ORDER BY r::text) FROM ({query}) AS r");
        records.push(client.query_one(&all, &[]).unwrap().get::<_, String>(0));
    }
    assert_eq!(records[0].lines().count(), 5000);
    assert!(records[0].contains(",)") && records[0].contains("Mobile"), "with and without phones");
    assert!(records.iter().all(|other| *other == records[0]));
}

#[test]
fn the_built_in_datasets_load_and_verify_in_every_layout() {
    let server = Database::new();
    for dataset in ["orders", "events", "devices", "deep"] {
        let file = format!("gen:{dataset}?rows=3k");
        load(&server, &file, &format!("{dataset}_j"), &["--verify"]).ok();
        let native = format!("{dataset}_n");
        let loaded = load(&server, &file, &native, &["--verify", "--nested", "native"]);
        match dataset {
            // Its matrix has lines of different lengths.
            "deep" => assert!(loaded.fails(1).contains("rectangular")),
            _ => {
                loaded.ok();
                sawmill(args("verify", &server, &file, &native, &[])).ok();
            }
        }
        let tables = ["--nested", "tables"];
        let out =
            load(&server, &file, &format!("{dataset}_t"), &[&tables[..], &["--verify"]].concat()).ok().out;
        assert!(out.lines().filter(|line| line.contains("verified")).count() > 0, "{out}");
        let verified = sawmill(args("verify", &server, &file, &format!("{dataset}_t"), &tables)).ok().out;
        assert!(!verified.contains("differ"), "{verified}");
        // Converted to jsonb, native values equal the loader's own jsonb, except for maps, which are objects in the
        // latter.
        if !matches!(dataset, "orders" | "devices") {
            continue;
        }
        let sql = format!(
            "SELECT count(*) FROM (SELECT to_jsonb(n) FROM {dataset}_n n \
             EXCEPT ALL SELECT to_jsonb(j) FROM {dataset}_j j) AS only_native"
        );
        assert_eq!(client(&server).query_one(&sql, &[]).unwrap().get::<_, i64>(0), 0, "{dataset}");
    }
}

#[test]
fn a_killed_load_into_several_tables_is_finished_by_the_same_command() {
    let server = Database::new();
    let args = args(
        "load",
        &server,
        "gen:contacts?rows=400k",
        "c",
        &["--nested", "tables", "--foreign-keys", "--unit-rows", "10k", "--verify"],
    );
    for units in [5, 45, 70] {
        let child = start(&args);
        let mut client = client(&server);
        until("some units", || {
            let there = client.query_one("select count(*) from _sawmill.units", &[]);
            there.is_ok_and(|row| row.get::<_, i64>(0) > units)
        });
        signal(&child, "KILL");
        assert_eq!(wait(child).code, None);
        let seen = "select to_regclass('c') is null and to_regclass('c_phones') is null";
        assert!(client.query_one(seen, &[]).unwrap().get::<_, bool>(0));
    }
    let ran = sawmill(&args).ok();
    assert!(ran.out.contains("public.c_phones") && ran.out.contains("resumed"), "{}", ran.out);
    let exact = "select count(*) = 400000 and count(distinct _row) = 400000 and \
                 sum(phones_count) = (select count(*) from c_phones) from c";
    assert!(client(&server).query_one(exact, &[]).unwrap().get::<_, bool>(0));
    assert!(sawmill(&args).ok().out.contains("was complete"));
}

#[test]
fn a_dry_run_of_several_tables_reports_the_plan_and_changes_nothing() {
    let server = Database::new();
    let (file, more) = ("gen:contacts?rows=3k", ["--nested", "tables", "--unlogged", "--foreign-keys"]);
    let rehearse = || load(&server, file, "c", &[&more[..], &["--dry-run"]].concat()).ok().out;
    let told = rehearse();
    assert!(told.contains("public.c_phones: a new load") && told.contains("nothing was changed"), "{told}");
    let made = "SELECT count(*) FROM pg_class WHERE relname ~ '^c(_phones)?(_|$)' OR relname = 'loads'";
    assert_eq!(client(&server).query_one(made, &[]).unwrap().get::<_, i64>(0), 0);
    let loaded = load(&server, file, "c", &[&more[..], &["--json"]].concat()).ok().out;
    let loaded: serde_json::Value = serde_json::from_str(&loaded).unwrap();
    let rows: u64 = (0..2).map(|at| loaded["tables"][at]["rows_loaded"].as_u64().unwrap()).sum();
    assert_eq!(loaded["phase"]["rows"].as_u64(), Some(rows));
    assert!(rehearse().contains("public.c: complete already"));
    let unlogged =
        "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relname IN ('c', 'c_phones')";
    assert_eq!(client(&server).query_one(unlogged, &[]).unwrap().get::<_, i64>(0), 2);
    // A dry run rejects what a load would reject.
    client(&server).batch_execute("DROP SCHEMA _sawmill CASCADE").unwrap();
    let error = load(&server, file, "c", &[&more[..], &["--dry-run"]].concat()).fails(1);
    assert!(error.contains("tables already exist: public.c, public.c_phones"), "{error}");
}

#[test]
fn the_table_of_a_list_does_not_replace_a_table_of_others() {
    let server = Database::new();
    client(&server).batch_execute("create table c_phones (note text)").unwrap();
    let replace = ["--nested", "tables", "--mode", "replace"];
    let error = load(&server, "gen:contacts?rows=10", "c", &replace).fails(1);
    assert!(
        error.contains("table public.c_phones") && error.contains("that Sawmill has not made"),
        "{error}"
    );
    client(&server).batch_execute("drop table c_phones").unwrap();
    load(&server, "gen:contacts?rows=10", "c", &replace).ok();
    // A load replaces Sawmill's own tables, even after their load was forgotten.
    sawmill(["load", "forget", "--to", &server.url(), "--table", "c"]).ok();
    load(&server, "gen:contacts?rows=20", "c", &replace).ok();
    client(&server).batch_execute("create view v as table c_phones").unwrap();
    let error = load(&server, "gen:contacts?rows=10", "c", &replace).fails(1);
    assert!(error.contains("view v") && error.contains("drop these first"), "{error}");
    assert!(!error.contains("truncate"), "{error}");
}

#[test]
fn layouts_that_the_target_does_not_have_are_rejected() {
    let server = Database::new();
    let file = "gen:contacts?rows=10";
    let error = load(&server, file, "c", &["--nested", "tables", "--mode", "append"]).fails(2);
    assert!(error.contains("--mode create or replace"), "{error}");
    let error = load(&server, file, "c", &["--foreign-keys"]).fails(2);
    assert!(error.contains("--nested tables"), "{error}");
    let crate_db = ["load", file, "--to", "crate://localhost:1", "--table", "c", "--nested", "native"];
    assert!(sawmill(crate_db).fails(2).contains("CrateDB"));
}
