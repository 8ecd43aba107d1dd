//! `sawmill gen --as`: values arrive in text as they are, or not at all.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{command, names, sawmill};
use crate::load::Bench;

/// A spec file of these fields.
fn spec(dir: &Path, fields: &str) -> PathBuf {
    let path = dir.join("d.toml");
    fs::write(&path, format!("name = \"d\"\nfields = [\n{fields}\n]\n")).unwrap();
    path
}

fn records(spec: &Path, rows: &str) -> Vec<Value> {
    let args = ["gen", spec.to_str().unwrap(), "--rows", rows, "--as", "ndjson", "--out", "-"];
    sawmill(args).ok().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_value_that_text_cannot_show_is_an_error_with_field_and_row() {
    let dir = tempfile::tempdir().unwrap();
    let far = "type = \"date\", values = { expression = \"n * 40_000_000\" }";
    let late = "type = \"timestamp\", unit = \"ms\", values = { expression = \"n * 4_000_000_000_000_000\" }";
    let n = "{ name = \"n\", type = \"int32\", values = { sequence = {} } },";
    let list = format!("type = \"list\", length = {{ constant = 2 }}, element = {{ {late} }}");
    for (field, place) in [
        (format!("{{ name = \"day\", {far} }}"), "field day, row 3"),
        (format!("{{ name = \"at\", {late} }}"), "field at, row 3"),
        (
            format!("{{ name = \"s\", type = \"struct\", fields = [{{ name = \"day\", {far} }}] }}"),
            "field s.day, row 3",
        ),
        (format!("{{ name = \"all\", {list} }}"), "field all.element, row 3"),
    ] {
        let spec = spec(dir.path(), &format!("{n}\n{field}"));
        let spec = spec.to_str().unwrap();
        let formats = if field.contains("struct") || field.contains("list") {
            &["ndjson"][..]
        } else {
            &["ndjson", "csv"]
        };
        for format in formats {
            let out = dir.path().join("out");
            let args = ["gen", spec, "--rows", "9", "--as", format, "--out", out.to_str().unwrap()];
            let error = sawmill(args).fails(2);
            assert!(error.contains("cannot be written as text") && error.contains(place), "{error}");
            assert_eq!(names(&out), [""; 0]);
            // Three rows of them can be shown.
            let args = ["gen", spec, "--rows", "3", "--as", format, "--out", "-"];
            assert!(!sawmill(args).ok().out.contains("ERROR"));
        }
        // Formats with room for them hold them all.
        let args = ["gen", spec, "--rows", "9", "--out", "-", "--as", "arrow"];
        assert!(command(args).output().unwrap().status.success());
        let out = dir.path().join("out.parquet");
        sawmill(["gen", spec, "--rows", "9", "--out", out.to_str().unwrap(), "--overwrite"]).ok();
    }
}

#[test]
fn an_expression_that_overflows_is_an_error_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let n = "{ name = \"n\", type = \"int32\", values = { sequence = {} } },";
    let spec = spec(
        dir.path(),
        &format!("{n}\n{{ name = \"x\", type = \"int32\", values = {{ expression = \"n * 1_000_000\" }} }}"),
    );
    for format in ["parquet", "arrow", "ndjson", "csv"] {
        let out = dir.path().join(format);
        let args =
            ["gen", spec.to_str().unwrap(), "--rows", "5000", "--as", format, "--out", out.to_str().unwrap()];
        let error = sawmill(args).fails(2);
        assert!(
            error.contains("the value 2148000000 does not fit int32") && error.contains("field x, row 2148"),
            "{error}"
        );
    }
    let bench = Bench::new();
    let source = format!("gen:{}?rows=5000", spec.display());
    let error = bench.load(Path::new(&source), "t", &[]).fails(1);
    assert!(error.contains("does not fit int32") && error.contains("field x, row 2148"), "{error}");
}

/// Strings that differ from null and from one another by their quotes alone, in some rows null.
const STRINGS: &str = r#"{ name = "s", type = "string", nulls = 0.3, values = { choice = ["", "NULL", "a,b", "\"", "x\"y\"", "two\nlines", "\r", "\\.", "\\N", " a "] } },
{ name = "b", type = "string", nulls = 0.5, values = { constant = "" } },
{ name = "n", type = "int32", nulls = 0.3, values = { uniform = { min = 0, max = 9 } } },
{ name = "u", type = "uuid", nulls = 0.3, values = "uuid" },
{ name = "d", type = "date", values = { uniform = { min = 1999-01-01, max = 2030-01-01 } } },
{ name = "t", type = "timestamp", zone = "Europe/Vienna", nulls = 0.3, values = { uniform = { min = 1999-01-01T00:00:00Z, max = 2030-01-01T00:00:00Z } } },
{ name = "f", type = "double", nulls = 0.3, values = { choice = [0.1, nan, inf, -1e300] } },"#;

#[test]
fn postgresql_reads_the_very_rows_from_csv() {
    let bench = Bench::new();
    let spec = spec(bench.dir.path(), STRINGS);
    let source = format!("gen:{}?rows=2000", spec.display());
    bench.load(Path::new(&source), "loaded", &[]).ok();
    for (null, options) in [(None, ""), (Some("NULL"), ", NULL 'NULL'"), (Some("\\N"), ", NULL '\\N'")] {
        let mut args = vec!["gen", spec.to_str().unwrap(), "--rows", "2000", "--as", "csv", "--out", "-"];
        args.extend(null.iter().flat_map(|null| ["--csv-null", null]));
        let csv = command(args).output().unwrap();
        assert!(csv.status.success());
        let mut client = bench.client();
        client.batch_execute("drop table if exists copied; create table copied (like loaded)").unwrap();
        let mut copy =
            client.copy_in(&format!("copy copied from stdin (format csv, header{options})")).unwrap();
        copy.write_all(&csv.stdout).unwrap();
        assert_eq!(copy.finish().unwrap(), 2000);
        let differences = "select (select count(*) from (table loaded except all table copied) a) + \
                           (select count(*) from (table copied except all table loaded) b)";
        assert_eq!(bench.count(differences), 0, "{null:?}");
    }
    assert!(bench.count("select count(*) from copied where b = ''") > 500);
    assert!(bench.count("select count(*) from copied where b is null") > 500);
}

#[test]
fn nulls_of_an_only_column_need_a_text() {
    let dir = tempfile::tempdir().unwrap();
    let spec =
        spec(dir.path(), r#"{ name = "s", type = "string", nulls = 0.5, values = { constant = "" } }"#);
    let gen_csv = ["gen", spec.to_str().unwrap(), "--rows", "20", "--as", "csv", "--out", "-"];
    let error = sawmill(gen_csv).fails(2);
    assert!(error.contains("empty lines") && error.contains("--csv-null"), "{error}");
    let text = sawmill(gen_csv.iter().chain(&["--csv-null", "-"]).copied()).ok().out;
    assert_eq!(text.lines().count(), 21);
    assert!(text.lines().skip(1).all(|line| line == "-" || line == "\"\""), "{text}");
    let error = sawmill(gen_csv.iter().chain(&["--csv-null", ","]).copied());
    assert!(error.code == Some(2) && error.err.contains("without quotes"), "{}", error.err);
    let error = sawmill(["gen", "devices", "--rows", "1", "--csv-null", "x", "--out", "/dev/null"]).fails(2);
    assert!(error.contains("--as csv"), "{error}");
}

#[test]
fn json_has_uuids_with_dashes_keys_as_text_and_every_entry_of_a_map() {
    let dir = tempfile::tempdir().unwrap();
    let uuid = "type = \"uuid\", values = { constant = \"123e4567-e89b-12d3-a456-426614174000\" }";
    let spec = spec(
        dir.path(),
        &format!(
            r#"{{ name = "u", {uuid} }},
{{ name = "l", type = "list", length = {{ constant = 2 }}, element = {{ {uuid} }} }},
{{ name = "m", type = "map", length = {{ constant = 2 }}, key = {{ type = "int32", values = {{ sequence = {{ start = -1 }} }} }}, value = {{ type = "uuid", nulls = 1, values = "uuid" }} }},
{{ name = "d", type = "map", length = {{ constant = 1 }}, key = {{ type = "date", values = {{ constant = 2024-02-29 }} }}, value = {{ {uuid} }} }},
{{ name = "f", type = "list", length = {{ constant = 4 }}, element = {{ type = "double", values = {{ choice = [nan, inf, -inf, 0.5] }} }} }},
{{ name = "at", type = "struct", fields = [{{ name = "x", type = "timestamp", zone = "Europe/Vienna", values = {{ constant = 2024-01-01T00:00:00+01:00 }} }}] }},"#
        ),
    );
    let dashed = "123e4567-e89b-12d3-a456-426614174000";
    let records = records(&spec, "200");
    for record in &records {
        assert_eq!(record["u"], dashed);
        assert_eq!(record["l"], json!([dashed, dashed]));
        assert_eq!(record["m"], json!({ "-1": null, "0": null }));
        assert_eq!(record["d"], json!({ "2024-02-29": dashed }));
        assert_eq!(record["at"], json!({ "x": "2023-12-31T23:00:00Z" }));
    }
    let floats: Vec<&Value> = records.iter().flat_map(|record| record["f"].as_array().unwrap()).collect();
    assert_eq!(floats.len(), 800);
    for value in [json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(0.5)] {
        assert!(floats.contains(&&value), "{value}");
    }
}

#[test]
fn a_name_of_another_format_does_not_become_a_directory_of_parquet_files() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in [("c.csv", "--as csv"), ("c.jsonl", "--as ndjson"), ("c.ARROW", "--as arrow")] {
        let out = dir.path().join(name);
        let gen_to = |out: &str| sawmill(["gen", "contacts", "--rows", "10", "--out", out]);
        let error = gen_to(out.to_str().unwrap()).fails(2);
        assert!(error.contains(format) && !out.exists(), "{error}");
        // A directory that the user means as one.
        gen_to(&format!("{}/", out.display())).ok();
        assert!(out.is_dir());
    }
}

#[test]
fn binary_formats_are_not_written_to_a_terminal() {
    for (format, refused) in [("parquet", true), ("arrow", true), ("csv", false), ("ndjson", false)] {
        let (mut ours, mut theirs) = (0, 0);
        // SAFETY: both point to an int; the other arguments may be null.
        let opened = unsafe {
            libc::openpty(
                &mut ours,
                &mut theirs,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(opened, 0);
        // SAFETY: openpty has just opened both descriptors, and this function is their only owner.
        let (mut ours, theirs) = unsafe { (fs::File::from_raw_fd(ours), Stdio::from_raw_fd(theirs)) };
        let args = ["gen", "devices", "--rows", "2", "--as", format, "--out", "-"];
        let child = command(args).stdout(theirs).stderr(Stdio::piped()).spawn().unwrap();
        let mut shown = Vec::new();
        // The terminal ends with an error once its other side is closed.
        let _ = ours.read_to_end(&mut shown);
        let ran = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(if refused { 2 } else { 0 }), "{format}: {said}");
        assert_eq!(shown.is_empty(), refused, "{format}");
        if refused {
            assert!(said.contains("terminal") && said.contains("--out"), "{said}");
        }
    }
}
