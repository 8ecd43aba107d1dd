//! `--partition-by` for PostgreSQL: planned, loaded on both ways, verified.

use std::path::PathBuf;

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

const COLUMNS: &str = "id,customer_id,status,ordered_at,shipped_at";

fn orders(bench: &Bench, rows: &str) -> PathBuf {
    let path = bench.dir.path().join(format!("orders-{rows}.parquet"));
    let columns = ["gen", "orders", "--rows", rows, "--row-group-rows", "20k", "--out"];
    sawmill(columns.into_iter().chain([path.to_str().unwrap()])).ok();
    path
}

#[test]
fn partitions_are_planned_loaded_and_verified_on_both_ways() {
    let bench = Bench::new();
    let file = orders(&bench, "100k");
    let by = ["--columns", COLUMNS, "--partition-by", "list(status)"];
    let plan = bench.load(&file, "o", &[&by[..], &["--explain", "--json"]].concat()).ok().json();
    let partitions = plan["partitions"]["partitions"].as_array().unwrap();
    let named: Vec<&str> = partitions.iter().map(|partition| partition["table"].as_str().unwrap()).collect();
    assert_eq!(named, ["o_open", "o_paid", "o_returned", "o_shipped"]);
    assert!(plan["way"].as_str().unwrap().starts_with("direct"), "every row group has rows of all: {plan}");
    let text = bench.load(&file, "o", &[&by[..], &["--explain"]].concat()).ok().out;
    assert!(text.contains("0 of 5 row groups lie in one partition"), "{text}");
    assert!(text.contains("PARTITION OF \"o\" FOR VALUES IN ('open')"), "{text}");
    let rehearsed = bench.load(&file, "o", &[&by[..], &["--dry-run"]].concat()).ok().out;
    assert!(rehearsed.contains("o_returned") && rehearsed.contains("nothing was changed"), "{rehearsed}");
    assert!(!bench.exists("o") && !bench.exists("_sawmill.loads"));
    for strategy in ["direct", "staged"] {
        let more = [&by[..], &["--strategy", strategy, "--mode", "replace", "--verify"]].concat();
        let said = bench.load(&file, "o", &more).ok().out;
        assert!(said.contains(&format!("{strategy}: ")), "{said}");
        for partition in partitions {
            let table = partition["table"].as_str().unwrap();
            let rows = bench.count(&format!("select count(*) from {table}"));
            assert_eq!(partition["rows"], rows, "{table}");
        }
        sawmill(bench.args("verify", &file, "o", &["--columns", COLUMNS])).ok();
    }
}

#[test]
fn generated_rows_and_rows_that_are_picked_have_the_partitions_they_need() {
    let bench = Bench::new();
    let generated = PathBuf::from("gen:orders?rows=50k");
    let by = ["--columns", COLUMNS, "--partition-by", "day(ordered_at)", "--verify"];
    bench.load(&generated, "g", &by).ok();
    let days = bench.count("select count(distinct ordered_at::date) from g");
    assert_eq!(bench.count("select count(*) from pg_inherits where inhparent = 'g'::regclass"), days);
    let file = orders(&bench, "100k");
    let picked = [&by[..], &["--where", "id between 30001 and 30500", "--strategy", "staged"]].concat();
    bench.load(&file, "p", &picked).ok();
    assert_eq!(bench.count("select count(*) from p"), 500);
    let days = bench.count("select count(distinct ordered_at::date) from p");
    assert_eq!(bench.count("select count(*) from pg_inherits where inhparent = 'p'::regclass"), days);
}

#[test]
fn a_killed_load_of_partitions_is_finished_by_the_same_command() {
    let bench = Bench::new();
    let file = orders(&bench, "400k");
    for (table, strategy, finished) in [("d", "direct", 3), ("s", "staged", 1)] {
        let more = [
            "--columns",
            COLUMNS,
            "--partition-by",
            "list(status)",
            "--strategy",
            strategy,
            "--unit-rows",
            "2000",
            "--verify",
            "--connections",
            "2",
        ];
        let args = bench.args("load", &file, table, &more);
        let child = start(&args);
        let mut client = bench.client();
        until("the first units", || {
            let units = format!(
                "select count(*) from _sawmill.units join _sawmill.loads using (load_id) where target = 'public.{table}'"
            );
            client.query_one(&units, &[]).is_ok_and(|row| row.get::<_, i64>(0) >= finished)
        });
        signal(&child, "KILL");
        wait(child);
        assert!(!bench.exists(table));
        let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
        assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
        assert_eq!(bench.count(&format!("select count(distinct id) from {table}")), 400_000);
        assert_eq!(bench.count(&format!("select count(*) from {table}")), 400_000);
    }
}

#[test]
fn a_table_that_cannot_be_partitioned_is_an_error_before_anything_is_sent() {
    let bench = Bench::new();
    let file = orders(&bench, "1000");
    let refused = |by: &str, more: &[&str]| {
        bench.load(&file, "t", &[&["--columns", COLUMNS, "--partition-by", by], more].concat()).fails(2)
    };
    assert!(refused("week(ordered_at)", &[]).contains("month(COLUMN)"));
    assert!(refused("month(nothing)", &[]).contains("the columns are id, customer_id"));
    assert!(refused("month(id)", &[]).contains("neither a date nor a timestamp"));
    assert!(refused("month(ordered_at)", &["--primary-key", "id"]).contains("must contain its column"));
    assert!(refused("list(status)", &["--mode", "append"]).contains("new table"));
    assert!(refused("list(status)", &["--nested", "tables"]).contains("several tables"));
    assert!(!bench.exists("t"));
}
