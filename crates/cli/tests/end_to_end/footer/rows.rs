//! `footer head` and `cat`: rows as JSON, and files from standard input.

use std::fs::{self, File};

use serde_json::Value;

use super::{contacts, view};
use crate::harness::{Ran, command, sawmill};
use crate::parquet_files::{many_types, raw_footer};

fn rows(ran: Ran) -> Vec<Value> {
    ran.ok().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The generator leaves out fields that are null; `head` states them.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.into_iter().filter(|(_, value)| !value.is_null());
            there.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        value => value,
    }
}

#[test]
fn head_prints_the_rows_that_the_generator_made() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "3000", "3");
    let expected = rows(sawmill(["gen", "contacts", "--rows", "3000", "--as", "ndjson", "--out", "-"]));
    let expected: Vec<Value> = expected.into_iter().map(without_nulls).collect();
    let directory = dir.path().to_str().unwrap();
    let head = |args: &[&str]| -> Vec<Value> {
        let found = rows(sawmill(["footer", "head", directory].iter().chain(args)));
        found.into_iter().map(without_nulls).collect()
    };
    assert_eq!(head(&[]), expected[..10]);
    // Across files, and past the end of all.
    assert_eq!(head(&["-n", "30", "--skip", "990"]), expected[990..1020]);
    assert_eq!(head(&["-n", "30", "--skip", "2999"]), expected[2999..]);
    assert_eq!(head(&["-n", "0"]), Vec::<Value>::new());
    let all: Vec<Value> =
        rows(sawmill(["footer", "cat", directory])).into_iter().map(without_nulls).collect();
    assert_eq!(all, expected);
    let names = rows(sawmill(["footer", "head", directory, "-n", "2", "--column", "name"]));
    assert_eq!(names.iter().map(|row| row.as_object().unwrap().len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(names[0]["name"], expected[0].get("name").cloned().unwrap_or(Value::Null));
    let missing = sawmill(["footer", "head", directory, "--row-group", "5"]).fails(1);
    assert!(missing.contains("expected a row group 5"), "{missing}");
}

#[test]
fn values_in_another_file_are_not_looked_for_in_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("_metadata");
    raw_footer(&path, 1, 2, "elsewhere");
    let name = path.to_str().unwrap();
    for args in [&["head", name][..], &["cat", name], &["bloom", name, "--column", "c1", "--value", "1"]] {
        let error = sawmill(["footer"].iter().chain(args)).fails(1);
        for part in
            ["is in `part.0.parquet`", "_metadata, row group 0, column c1", "name the files that hold"]
        {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let text = view(&path, &["--page-headers", "--column", "c1"]).ok().out;
    assert!(text.contains("in another file"), "{text}");
}

#[test]
fn head_prints_values_of_many_types() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let found = rows(sawmill(["footer", "head", path.to_str().unwrap(), "-n", "2"]));
    assert_eq!((&found[0]["int"], &found[1]["int"]), (&Value::from(-5), &Value::Null));
    assert_eq!(found[1]["text"], "zoë");
    assert_eq!(found[1]["date"], "2024-02-29");
}

#[test]
fn a_file_on_standard_input_is_shown_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "1000", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let piped = |args: &[&str]| {
        let ran = command(["footer"].iter().chain(args)).stdin(File::open(&path).unwrap()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(piped(&["-", "--schema"]), view(&path, &["--schema"]).ok().out);
    assert_eq!(piped(&["-", "--data-pages"]), view(&path, &["--data-pages"]).ok().out);
    let head = sawmill(["footer", "head", path.to_str().unwrap()]).ok().out;
    assert_eq!(piped(&["head", "-"]), head);
    let cut = dir.path().join("cut.parquet");
    fs::write(&cut, b"PAR1 no footer").unwrap();
    let ran = command(["footer", "-"]).stdin(File::open(&cut).unwrap()).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
}
