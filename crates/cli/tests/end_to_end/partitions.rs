//! `--partition-by` for PostgreSQL: planned, loaded by both routes, verified.

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

/// Writes one night's rows to a text file.
fn night(bench: &Bench, name: &str, rows: &str) -> PathBuf {
    let path = bench.dir.path().join(name);
    std::fs::write(&path, format!("id,at,country\n{rows}")).unwrap();
    path
}

const FEBRUARY: &str = "FOR VALUES FROM ('2024-02-01 00:00:00') TO ('2024-03-01 00:00:00')";

#[test]
fn an_append_creates_the_partitions_that_a_loaded_table_lacks() {
    let bench = Bench::new();
    let january = night(&bench, "1.csv", "1,2024-01-05 10:00:00,de\n2,2024-01-31 23:59:59,at\n");
    let february = night(&bench, "2.csv", "3,2024-01-31 10:00:00,de\n4,2024-02-01 00:00:00,at\n");
    bench.load(&january, "t", &["--partition-by", "month(at)"]).ok();
    let append = ["--mode", "append"];
    let line = format!("creates partition public.t_2024_02 {FEBRUARY}");
    for plan in ["--explain", "--dry-run"] {
        let said = bench.load(&february, "t", &[&append[..], &[plan]].concat()).ok().out;
        assert!(said.contains(&line), "{plan}: {said}");
        assert!(!bench.exists("t_2024_02"));
    }
    let said = bench.load(&february, "t", &["--mode", "append", "--verify"]).ok().out;
    assert!(said.contains(&line) && said.contains("verified"), "{said}");
    assert_eq!(bench.count("select count(*) from t_2024_02"), 1);
    // Rows without a time go to the default partition; the next month still gets a new partition.
    for (name, rows) in [("3.csv", "5,,de\n"), ("4.csv", "6,2024-03-31 00:00:00,de\n")] {
        bench.load(&night(&bench, name, rows), "t", &["--mode", "append", "--verify"]).ok();
    }
    assert_eq!(bench.count("select count(*) from t_default"), 1);
    assert_eq!(bench.count("select count(*) from t_2024_03"), 1);
    assert_eq!(bench.count("select count(*) from t"), 6);

    bench.load(&january, "by_country", &["--partition-by", "list(country)"]).ok();
    let other = night(&bench, "5.csv", "7,2024-01-05 10:00:00,fr\n8,2024-01-05 10:00:00,de\n");
    let said = bench.load(&other, "by_country", &["--mode", "append", "--verify"]).ok().out;
    assert!(said.contains("creates partition public.by_country_fr FOR VALUES IN ('fr')"), "{said}");
    assert_eq!(bench.count("select count(*) from by_country_fr"), 1);
}

#[test]
fn partitions_that_another_table_lacks_are_named_before_a_row_is_sent() {
    let bench = Bench::new();
    let tables = "create table t (id bigint, at timestamp, country text) partition by range (at); \
                  create table t_2024_01 partition of t for values from ('2024-01-01') to ('2024-02-01'); \
                  create table weeks (id bigint, at timestamp, country text) partition by range (at); \
                  create table week_1 partition of weeks for values from ('2024-01-01') to ('2024-01-08')";
    bench.client().batch_execute(tables).unwrap();
    let rows = "1,2024-01-31 10:00:00,de\n2,2024-02-01 00:00:00,at\n";
    let file = night(&bench, "1.csv", rows);
    let statement = format!("CREATE TABLE \"public\".\"t_2024_02\" PARTITION OF \"public\".\"t\" {FEBRUARY}");
    for more in [&["--explain"][..], &["--dry-run"], &[]] {
        let error = bench.load(&file, "t", &[&["--mode", "append"], more].concat()).fails(1);
        for part in ["it lacks partition public.t_2024_02", &statement] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    assert_eq!(bench.count("select count(*) from t"), 0);
    bench.client().batch_execute(&statement).unwrap();
    bench.load(&file, "t", &["--mode", "append", "--verify"]).ok();
    assert_eq!(bench.count("select count(*) from t"), 2);
    // A default partition takes the rows of a new month, as always.
    bench.client().batch_execute("create table t_other partition of t default").unwrap();
    let march = night(&bench, "2.csv", "3,2024-03-31 10:00:00,de\n");
    bench.load(&march, "t", &["--mode", "append", "--verify"]).ok();
    assert_eq!(bench.count("select count(*) from t_other"), 1);
    // Where the bounds show no rule, the server refuses the row.
    let error = bench.load(&file, "weeks", &["--mode", "append"]).fails(1);
    assert!(error.contains("create a partition for the row"), "{error}");
}

#[test]
fn partitions_of_a_list_are_compared_only_where_the_server_writes_their_values_alike() {
    let bench = Bench::new();
    let tables = "create table texts (id int, v text) partition by list (v); \
                   create table texts_1 partition of texts for values in ('it''s'); \
                   create table texts_2 partition of texts for values in (E'a\\\\b'); \
                   create table texts_3 partition of texts for values in ('its'); \
                   create table prices (id int, v numeric(10,2)) partition by list (v); \
                   create table prices_1 partition of prices for values in (1); \
                   create table chars (id int, v char(5)) partition by list (v); \
                   create table chars_1 partition of chars for values in ('de'); \
                   create table nulls (id int, v text) partition by list (v); \
                   create table nulls_1 partition of nulls for values in (null)";
    bench.client().batch_execute(tables).unwrap();
    let load = |table: &str, rows: &str| {
        let file = bench.dir.path().join(format!("{table}.csv"));
        std::fs::write(&file, format!("id,v\n{rows}")).unwrap();
        bench.load(&file, table, &["--mode", "append", "--verify"])
    };
    for (table, rows) in [("texts", "1,it's\n2,a\\b\n3,its\n"), ("prices", "1,1\n"), ("chars", "1,de\n")] {
        load(table, rows).ok();
    }
    // The text NULL is not a missing value.
    let error = load("nulls", "1,NULL\n").fails(1);
    assert!(error.contains("it lacks partition") && error.contains("FOR VALUES IN ('NULL')"), "{error}");
}

#[test]
fn a_table_may_have_more_partitions_than_a_load_creates() {
    let bench = Bench::new();
    let tables = "create table t (id int, at timestamp) partition by range (at); \
                  do $$ begin for day in 0..1099 loop execute format( \
                    'create table t_%s partition of t for values from (%L) to (%L)', day, \
                    date '2022-01-01' + day, date '2022-01-01' + day + 1); end loop; end $$";
    bench.client().batch_execute(tables).unwrap();
    let rows = |days: std::ops::Range<u32>| -> String {
        let day = |day: u32| {
            format!("{day},{}-{:02}-{:02} 10:00:00\n", 2022 + day / 336, day / 28 % 12 + 1, day % 28 + 1)
        };
        days.map(day).collect()
    };
    // The first 28 days of 36 months are 1008.
    let file = bench.dir.path().join("days.csv");
    std::fs::write(&file, format!("id,at\n{}", rows(0..1008))).unwrap();
    bench.load(&file, "t", &["--mode", "append"]).ok();
    assert_eq!(bench.count("select count(*) from t"), 1008);
}
