//! Columns that change in the modes that merge rows by their keys.

use std::path::PathBuf;

use crate::harness::Ran;
use crate::load::Bench;

/// A file of lines of JSON.
fn lines(bench: &Bench, name: &str, lines: &[&str]) -> PathBuf {
    let path = bench.dir.path().join(name);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

fn merge(bench: &Bench, file: &std::path::Path, mode: &str, more: &[&str]) -> Ran {
    bench.load(file, "t", &[&["--mode", mode, "--key", "id"], more].concat())
}

/// The rows, as the server writes them, in the order of their text.
fn rows(bench: &Bench, columns: &str) -> Vec<String> {
    let query = format!("select concat_ws('|', {columns}) from t order by 1");
    bench.client().query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn merges_add_and_widen_columns_as_appends_do() {
    let bench = Bench::new();
    let first = lines(&bench, "a.ndjson", &[r#"{"id":1,"v":"a"}"#, r#"{"id":2,"v":"b"}"#]);
    let wider =
        lines(&bench, "b.ndjson", &[r#"{"id":2,"v":"c","w":3000000000}"#, r#"{"id":3,"v":"d","w":1}"#]);
    let fewer = lines(&bench, "c.ndjson", &[r#"{"id":3,"w":4}"#]);
    let all = "id, coalesce(v, '-'), coalesce(w::text, '-')";
    for (mode, merged, then) in [
        ("upsert", ["1|a|-", "2|c|3000000000", "3|d|1"], ["1|a|-", "2|c|3000000000", "3|d|4"]),
        ("insert", ["1|a|-", "2|b|-", "3|d|1"], ["1|a|-", "2|b|-", "3|d|1"]),
    ] {
        let table = "drop table if exists t; create table t (id bigint primary key, v varchar(1))";
        bench.client().batch_execute(table).unwrap();
        merge(&bench, &first, mode, &["--verify"]).ok();
        let refused = merge(&bench, &wider, mode, &[]).fails(1);
        assert!(refused.contains("--schema-change add"), "{refused}");
        merge(&bench, &wider, mode, &["--schema-change", "ignore", "--dry-run"]).ok();
        let plan = merge(&bench, &wider, mode, &["--evolve", "--explain"]).ok().out;
        assert!(plan.contains("adds column \"w\" bigint"), "{plan}");
        let ran = merge(&bench, &wider, mode, &["--evolve", "--verify"]).ok();
        assert!(ran.out.contains("adds column \"w\" bigint"), "{}", ran.out);
        assert_eq!(rows(&bench, all), merged, "{mode}");
        // The columns that no file has keep the values of known rows.
        merge(&bench, &fewer, mode, &["--evolve", "--verify"]).ok();
        assert_eq!(rows(&bench, all), then, "{mode}");
    }
    bench
        .client()
        .batch_execute("truncate t; alter table t alter v type varchar(1), alter w type int")
        .unwrap();
    let refused = merge(&bench, &wider, "upsert", &["--evolve"]).fails(1);
    assert!(refused.contains("--rewrite"), "{refused}");
    let long = lines(&bench, "d.ndjson", &[r#"{"id":9,"v":"long","w":1}"#]);
    merge(&bench, &wider, "upsert", &[long.to_str().unwrap(), "--evolve", "--rewrite", "--verify"]).ok();
    assert_eq!(rows(&bench, all), ["2|c|3000000000", "3|d|1", "9|long|1"]);
}

#[test]
fn versions_and_deletes_follow_the_files() {
    let bench = Bench::new();
    let first = lines(&bench, "a.ndjson", &[r#"{"id":1,"v":"a"}"#]);
    let next = lines(&bench, "b.ndjson", &[r#"{"id":1,"v":"a","w":1.5}"#, r#"{"id":2,"v":"b","w":2.5}"#]);
    merge(&bench, &first, "history", &["--evolve", "--verify"]).ok();
    merge(&bench, &next, "history", &["--evolve", "--verify"]).ok();
    let versions = "id, v, coalesce(w::text, '-'), current, valid_to is null";
    assert_eq!(rows(&bench, versions), ["1|a|-|f|f", "1|a|1.5|t|t", "2|b|2.5|t|t"]);
    let marked = lines(
        &bench,
        "c.ndjson",
        &[r#"{"id":1,"v":"a","op":"D","x":1}"#, r#"{"id":3,"v":"c","op":"I","x":2}"#],
    );
    let table = "drop table t; create table t (id bigint primary key, v text); insert into t values (1, 'a')";
    bench.client().batch_execute(table).unwrap();
    let delete = ["--delete-where", "op = 'D'", "--evolve", "--verify"];
    merge(&bench, &marked, "upsert", &delete).ok();
    assert_eq!(rows(&bench, "id, v, x"), ["3|c|2"]);
    assert_eq!(
        bench.count("select count(*) from pg_attribute where attrelid = 't'::regclass and attname = 'op'"),
        0
    );
}
