//! Columns of a table of any type take the text that the type itself reads.

use std::path::PathBuf;

use crate::harness::{Ran, sawmill};
use crate::load::Bench;

/// A file of lines of JSON with these texts in column `v`.
fn texts(bench: &Bench, name: &str, texts: &[&str]) -> PathBuf {
    let path = bench.dir.path().join(name);
    let line = |(id, text): (usize, &&str)| serde_json::json!({ "id": id, "v": text }).to_string() + "\n";
    std::fs::write(&path, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    path
}

fn append(bench: &Bench, file: &std::path::Path, more: &[&str]) -> Ran {
    bench.load(file, "t", &[&["--mode", "append", "--types", "v=text"], more].concat())
}

/// The column's values as the server writes them.
fn values(bench: &Bench) -> Vec<String> {
    let rows = bench.client().query("select coalesce(v::text, 'null') from t order by id", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn text_becomes_a_value_of_any_type_and_is_verified() {
    let bench = Bench::new();
    let mut client = bench.client();
    client
        .batch_execute(
            "create type pair as (a int, b text); create domain small as pair check ((value).a < 10); \
             create type floats as range (subtype = float4)",
        )
        .unwrap();
    for (of, given, stored) in [
        ("int4range", "[1,5]", "[1,6)"),
        ("int4multirange", "{[1,2],[2,5)}", "{[1,5)}"),
        ("floats", "[1.5,2.5]", "[1.5,2.5]"),
        ("macaddr", "08-00-2B-01-02-03", "08:00:2b:01:02:03"),
        ("tsvector", "b a", "'a' 'b'"),
        ("tsquery", "a & b", "'a' & 'b'"),
        ("jsonpath", "$.a", "$.\"a\""),
        ("money", "1000.5", "$1,000.50"),
        ("\"char\"", "x", "x"),
        ("\"char\"[]", "{x,y}", "{x,y}"),
        ("pg_lsn", "16/B374D848", "16/B374D848"),
        ("pair", "(1,\"x y\")", "(1,\"x y\")"),
        ("pair[]", "{\"(1,x)\",NULL}", "{\"(1,x)\",NULL}"),
        ("small", "(1,x)", "(1,x)"),
        ("timestamp(3)", "2024-01-01 00:00:00.123", "2024-01-01 00:00:00.123"),
        ("macaddr[]", "{08:00:2b:01:02:03}", "{08:00:2b:01:02:03}"),
    ] {
        client.batch_execute(&format!("drop table if exists t; create table t (id int, v {of})")).unwrap();
        let file = texts(&bench, &format!("{of}.ndjson"), &[given, given]);
        append(&bench, &file, &["--verify"]).ok();
        assert_eq!(values(&bench), [stored, stored], "{of}");
        sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).ok();
        client.batch_execute("update t set v = null where id = 1").unwrap();
        sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).fails(4);
    }
}

#[test]
fn types_of_extensions_are_read_by_the_server() {
    let bench = Bench::new();
    let mut client = bench.client();
    for (of, given, stored) in [
        ("hstore", "b=>NULL, a=>1", "\"a\"=>\"1\", \"b\"=>NULL"),
        ("ltree", "a.b.c", "a.b.c"),
        ("citext", "X", "X"),
        ("cube", "(1, 2)", "(1, 2)"),
    ] {
        let known = format!("select count(*) from pg_available_extensions where name = '{of}'");
        if bench.count(&known) == 0 {
            eprintln!("skipped: the server has no extension {of}");
            continue;
        }
        let create = format!(
            "create extension {of}; drop table if exists t; create table t (id int primary key, v {of})"
        );
        client.batch_execute(&create).unwrap();
        append(&bench, &texts(&bench, &format!("{of}.ndjson"), &[given]), &["--verify"]).ok();
        assert_eq!(values(&bench), [stored], "{of}");
        let changed = texts(&bench, &format!("{of}2.ndjson"), &[given, given]);
        bench.load(&changed, "t", &["--mode", "upsert", "--key", "id", "--types", "v=text"]).ok();
        assert_eq!(values(&bench), [stored, stored], "{of}");
    }
}

#[test]
fn text_that_is_no_value_of_the_type_is_named_or_rejected() {
    let bench = Bench::new();
    let made = "create type prices as range (subtype = money); create type priced as (v money, n int); \
                create type rounded as (v numeric(5,1), at timestamp(0)); create type outer_rounded as (v rounded); \
                create domain below as rounded; create domain tenth as numeric(5,1)";
    bench.client().batch_execute(made).unwrap();
    let known = "select count(*) from pg_available_extensions where name = 'hstore'";
    let has_hstore = bench.count(known) > 0;
    if has_hstore {
        bench.client().batch_execute("create extension hstore").unwrap();
    }
    for (of, wrong, why) in [
        ("int4range", "[5,1]", "lower bound must be less than or equal"),
        ("money", "1.555", "the server would store $1.56 instead"),
        ("bit(3)", "1010", "the server would store 101 instead"),
        (
            "timestamp(3)",
            "2024-01-01 00:00:00.1234",
            "the server would store 2024-01-01 00:00:00.123 instead",
        ),
        ("tsrange", "[2024-01-01 00:00:00.1234567,)", "instead"),
        ("tsvector", "'a':20000", "'a':16383 instead"),
        ("money[]", "{12.345}", "{$12.35} instead"),
        ("prices", "[1.001,2.009]", "[$1.00,$2.01] instead"),
        ("priced", "(12.345,)", "instead"),
        ("rounded", "(1.25,)", "(1.3,) instead"),
        ("rounded[]", "{\"(1.25,)\"}", "instead"),
        ("outer_rounded", "(\"(1.25,)\")", "instead"),
        ("below", "(,\"2024-01-01 00:00:00.7\")", "instead"),
        ("tenth[]", "{1.25}", "the column stores 1"),
        ("hstore", "a=>1, a=>3", "instead"),
        ("hstore[]", "{\"a=>1,a=>3\"}", "instead"),
    ] {
        if of.starts_with("hstore") && !has_hstore {
            continue;
        }
        let table = format!("drop table if exists t; create table t (id int, v {of})");
        bench.client().batch_execute(&table).unwrap();
        let mut given = vec!["empty"; 100];
        match of {
            "money" => given.fill("1"),
            "bit(3)" => given.fill("101"),
            "timestamp(3)" => given.fill("2024-01-01"),
            "tsvector" => given.fill("'a':2"),
            "hstore" => given.fill("a=>1, b=>\"=>\""),
            "outer_rounded" => given.fill("(\"(1.2,)\")"),
            "priced" | "rounded" | "below" => given.fill("(,)"),
            of if of.ends_with("[]") => given.fill("{}"),
            _ => {}
        }
        given[70] = wrong;
        let file = texts(&bench, &format!("{of}.ndjson"), &given);
        let error = append(&bench, &file, &[]).fails(1);
        assert!(error.contains(why) && error.contains("line 71") && error.contains("\"v\""), "{of}: {error}");
        assert_eq!(bench.count("select count(*) from t"), 0);
        let rejects = bench.dir.path().join(format!("{of}.parquet"));
        let ran = append(&bench, &file, &["--rejects", rejects.to_str().unwrap(), "--verify"]).ok();
        assert!(ran.out.contains("1 row"), "{}", ran.out);
        assert_eq!(bench.count("select count(*) from t where num_nulls(v) = 0"), 99);
    }
}

#[test]
fn text_without_an_offset_is_a_local_time_of_the_zone() {
    let bench = Bench::new();
    bench.client().batch_execute("create table t (id int, v timestamptz)").unwrap();
    let file = texts(&bench, "a.ndjson", &["2024-07-01T12:00:00Z", "2024-07-01 12:00"]);
    let error = append(&bench, &file, &[]).fails(1);
    assert!(error.contains("column \"v\"") && error.contains("--timezone"), "{error}");
    let zone = ["--timezone", "Europe/Vienna"];
    let plan = append(&bench, &file, &[&zone[..], &["--explain"]].concat()).ok().out;
    assert!(plan.contains("to timestamp with time zone, read from its text"), "{plan}");
    assert!(!plan.contains("CREATE TABLE"), "{plan}");
    append(&bench, &file, &[&zone[..], &["--verify"]].concat()).ok();
    let csv = bench.dir.path().join("b.csv");
    std::fs::write(&csv, "id,v\n3,2024-10-27 02:30\n").unwrap();
    bench.load(&csv, "t", &[&["--mode", "append", "--types", "table", "--verify"], &zone[..]].concat()).ok();
    let stored = ["2024-07-01 12:00:00+00", "2024-07-01 10:00:00+00", "2024-10-27 01:30:00+00"];
    assert_eq!(values(&bench), stored);
    append(&bench, &file, &["--timezone", "Europe/Wien"]).fails(2);
}
