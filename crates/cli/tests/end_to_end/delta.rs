//! Delta tables: we load an independent writer's, and an independent reader reads ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{sawmill, start, wait};
use crate::load::Bench;
use crate::stores::s3::S3;

/// Runs Python with the package `deltalake`. `None`, after saying so, without it.
pub(crate) fn deltalake(script: &str, args: &[&Path]) -> Option<String> {
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import deltalake, pyarrow"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no deltalake and pyarrow; name one that has in SAWMILL_PYTHON");
        return None;
    }
    let output = Command::new(&python).arg("-c").arg(script).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Writes a table in seven versions to argv[1]/t, and the rows of each, as that package reads them, to
/// argv[1]/N.parquet.
const WRITER: &str = r#"
import datetime as d, decimal, os, sys
import pyarrow as pa, pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
folder = sys.argv[1]
path = folder + "/t"
utc = d.timezone.utc
def rows(start):
    n = range(start, start + 40)
    return pa.table({
        "id": pa.array(n, pa.int64()),
        "region": pa.array([[None, "a b", "c/d %", "ü"][i % 4] for i in n]),
        "day": pa.array([None if i % 5 == 0 else d.date(2024, 1, 1 + i % 2) for i in n]),
        "part": pa.array([i % 2 == 0 for i in n]),
        "at": pa.array([d.datetime(2024, 1, 1, i % 24, tzinfo=utc) for i in n], pa.timestamp("us", "UTC")),
        "local": pa.array([d.datetime(2024, 1, 1, i % 24) for i in n], pa.timestamp("us")),
        "price": pa.array([decimal.Decimal(i) / 4 for i in n], pa.decimal128(10, 2)),
        "small": pa.array([i % 100 for i in n], pa.int8()),
        "share": pa.array([None if i % 3 == 0 else i / 7 for i in n]),
        "raw": pa.array([b"\x00\xff" * (i % 3) for i in n]),
        "list": pa.array([[1, None], [], None, [2]] * 10, pa.list_(pa.int64())),
        "pair": pa.array([{"x": i, "y": "q"} if i % 2 else None for i in n]),
    })
write_deltalake(path, rows(0), partition_by=["region", "day", "part"])
write_deltalake(path, rows(100), mode="append")
table = DeltaTable(path)
table.create_checkpoint()
table.delete("id % 7 = 3")
more = rows(200).append_column("later", pa.array(range(40), pa.int16()))
write_deltalake(path, more, mode="append", schema_mode="merge")
DeltaTable(path).optimize.compact()
write_deltalake(path, more, mode="overwrite")
DeltaTable(path).create_checkpoint()
DeltaTable(path).update(updates={"share": "1.5"}, predicate="id = 210")
newest = DeltaTable(path).version()
for version in range(newest + 1):
    pq.write_table(DeltaTable(path, version=version).to_pyarrow_table(), f"{folder}/{version}.parquet")
# Threads of these packages may end the process with an error after all is done.
print(newest, flush=True)
os._exit(0)
"#;

fn written() -> Option<(tempfile::TempDir, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let newest = deltalake(WRITER, &[folder.path()])?;
    Some((folder, newest.trim().parse().unwrap()))
}

pub(crate) fn url(text: &str) -> PathBuf {
    PathBuf::from(text)
}

#[test]
fn each_version_of_a_foreign_table_is_loaded_as_its_writer_reads_it() {
    let Some((folder, newest)) = written() else { return };
    let bench = Bench::new();
    let table = folder.path().join("t");
    for version in 0..=newest {
        let name = format!("v{version}");
        let from = url(&format!("delta:{}@{version}", table.display()));
        sawmill(bench.args("load", &from, &name, &["--verify"])).ok();
        let exported = folder.path().join(format!("{version}.parquet"));
        sawmill(bench.args("verify", &exported, &name, &[])).ok();
    }
    // Without a version it is the newest.
    let from = url(&format!("delta:{}", table.display()));
    sawmill(bench.args("verify", &from, &format!("v{newest}"), &[])).ok();
    let second = url(&format!("delta:{}@1", table.display()));
    let other = sawmill(bench.args("verify", &second, "v0", &[]));
    assert_eq!(other.code, Some(4), "{}{}", other.out, other.err);
    // A folder that is a table is not taken as plain files.
    let plain = sawmill(bench.args("load", &table, "plain", &[]));
    assert!(plain.code == Some(1) && plain.err.contains("delta:FOLDER"), "{}", plain.err);
}

#[test]
fn conditions_and_columns_apply_to_partitions_and_to_columns_that_files_lack() {
    let Some((folder, _)) = written() else { return };
    let bench = Bench::new();
    let from = url(&format!("delta:{}@4", folder.path().join("t").display()));
    for (at, condition) in [
        "region = 'c/d %'",
        "region is null",
        "day >= '2024-01-02'",
        "part = true and id < 20",
        "later is null",
        "later > 5 or region = 'ü'",
    ]
    .into_iter()
    .enumerate()
    {
        let (ours, theirs) = (format!("ours{at}"), format!("theirs{at}"));
        sawmill(bench.args("load", &from, &ours, &["--where", condition])).ok();
        let exported = folder.path().join("4.parquet");
        sawmill(bench.args("load", &exported, &theirs, &["--where", condition])).ok();
        let rows = bench.count(&format!("select count(*) from {theirs}"));
        assert!(rows > 0, "{condition}");
        sawmill(bench.args("verify", &exported, &ours, &["--where", condition])).ok();
    }
    sawmill(bench.args("load", &from, "chosen", &["--columns", "later,region,id"])).ok();
    assert_eq!(bench.count("select count(later) from chosen"), 40);
    let out = folder.path().join("converted.parquet");
    sawmill(["convert", from.to_str().unwrap(), "--out", out.to_str().unwrap()]).ok();
    sawmill(bench.args("load", &out, "converted", &[])).ok();
    sawmill(bench.args("verify", &from, "converted", &[])).ok();
}

#[test]
fn a_foreign_table_in_s3_is_loaded() {
    let Some((folder, newest)) = written() else { return };
    let Some(s3) = S3::with("lake", folder.path()) else { return };
    let bench = Bench::new();
    for version in [0, 2, newest] {
        let name = format!("v{version}");
        s3.sawmill(&bench.args("load", &url(&format!("delta:s3://lake/t@{version}")), &name, &["--verify"]))
            .ok();
        sawmill(bench.args("verify", &folder.path().join(format!("{version}.parquet")), &name, &[])).ok();
    }
    let footers = s3.sawmill(&["footer", "delta:s3://lake/t@0"]).ok();
    assert!(footers.out.contains("region=__HIVE_DEFAULT_PARTITION__"), "{}", footers.out);
}

/// Reads a table: its version, its files, its rows, and whether partitions and values are as they should be.
const READER: &str = r#"
import json, os, sys
from deltalake import DeltaTable
options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else None
table = DeltaTable(sys.argv[1], storage_options=options)
data = table.to_pyarrow_table()
print(json.dumps({
    "version": table.version(),
    "files": len(table.file_uris()),
    "rows": data.num_rows,
    "columns": data.column_names,
    "partitions": table.metadata().partition_columns,
}), flush=True)
os._exit(0)
"#;

fn read(table: &Path) -> Option<Value> {
    Some(serde_json::from_str(&deltalake(READER, &[table])?).unwrap())
}

fn generate(out: &Path, more: &[&str]) -> Vec<String> {
    let mut args: Vec<String> =
        ["gen", "contacts", "--files", "3", "--table-format", "delta"].map(str::to_owned).to_vec();
    args.extend(["--out".to_owned(), out.display().to_string()]);
    args.extend(more.iter().map(|more| (*more).to_owned()));
    args
}

#[test]
fn generated_tables_are_read_by_others_and_the_same_command_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t");
    let json = sawmill(generate(&out, &["--rows", "30k", "--json"])).ok().json();
    assert_eq!(json["table"]["version"], 0, "{json}");
    let Some(first) = read(&out) else { return };
    assert_eq!((&first["version"], &first["files"], &first["rows"]), (&0.into(), &3.into(), &30_000.into()));
    let again = sawmill(generate(&out, &["--rows", "30k"])).ok();
    assert!(again.out.contains("nothing to do"), "{}", again.out);
    // Other rows are appended.
    sawmill(generate(&out, &["--rows", "30k", "--seed", "7"])).ok();
    let second = read(&out).unwrap();
    assert_eq!(
        (&second["version"], &second["files"], &second["rows"]),
        (&1.into(), &6.into(), &60_000.into())
    );
    // Or replace the others, which earlier versions keep.
    sawmill(generate(&out, &["--rows", "20k", "--seed", "8", "--overwrite"])).ok();
    sawmill(generate(&out, &["--rows", "20k", "--seed", "8", "--overwrite"])).ok();
    let third = read(&out).unwrap();
    assert_eq!((&third["version"], &third["rows"]), (&2.into(), &20_000.into()));
    let bench = Bench::new();
    let at = |version: u32| url(&format!("delta:{}@{version}", out.display()));
    sawmill(bench.args("load", &at(1), "c", &["--verify"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 60_000);
    // The files have the bytes of files without a table.
    let plain = folder.path().join("plain");
    sawmill(["gen", "contacts", "--rows", "30k", "--files", "3", "--out", plain.to_str().unwrap()]).ok();
    sawmill(bench.args("load", &at(0), "first", &[])).ok();
    sawmill(bench.args("verify", &plain, "first", &[])).ok();
}

/// Dated rows of some kinds, with names that folders escape.
const KINDS: &str = r#"
name = "kinds"
[[fields]]
name = "at"
type = "timestamp"
unit = "us"
values = { uniform = { min = 2024-01-01T00:00:00, max = 2024-02-01T00:00:00 } }
[[fields]]
name = "kind"
type = "string"
nulls = 0.1
values = { weights = { "a b/c%" = 1, "x=y" = 2, "ü" = 3 } }
[[fields]]
name = "n"
type = "int32"
values = { uniform = { min = 0, max = 9 } }
"#;

#[test]
fn a_table_is_partitioned_as_its_folders_are() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, out) = (folder.path().join("kinds.toml"), folder.path().join("t"));
    fs::write(&spec, KINDS).unwrap();
    let [spec, to] = [&spec, &out].map(|path| path.to_str().unwrap());
    let by = |column: &str, to: &str| {
        sawmill([
            "gen",
            spec,
            "--rows",
            "5k",
            "--table-format",
            "delta",
            "--partition-by",
            column,
            "--out",
            to,
        ])
    };
    by("kind", to).ok();
    let Some(read) = read(&out) else { return };
    assert_eq!((&read["rows"], &read["partitions"]), (&5_000.into(), &serde_json::json!(["kind"])));
    assert_eq!(read["columns"], serde_json::json!(["at", "kind", "n"]));
    let bench = Bench::new();
    sawmill(bench.args("load", &url(&format!("delta:{to}")), "e", &["--verify"])).ok();
    let exported = folder.path().join("exported.parquet");
    let export = "import os, sys, pyarrow.parquet as pq; from deltalake import DeltaTable; \
                  pq.write_table(DeltaTable(sys.argv[1]).to_pyarrow_table(), sys.argv[2]); os._exit(0)";
    deltalake(export, &[&out, &exported]).unwrap();
    sawmill(bench.args("verify", &exported, "e", &[])).ok();
    assert!(bench.count("select count(*) from e where kind is null") > 300);
    // Another division is another table, and moments in time have several texts.
    let other = by("n", to);
    assert!(other.code == Some(1) && other.err.contains("is partitioned by"), "{}", other.err);
    let refused = by("at", folder.path().join("u").to_str().unwrap());
    assert!(
        refused.code == Some(2) && refused.err.contains("a partition column of type timestamp"),
        "{}",
        refused.err
    );
}

#[test]
fn a_run_that_is_killed_anywhere_is_finished_by_the_same_command_once() {
    let folder = tempfile::tempdir().unwrap();
    for (at, pause) in (0..12).map(|at| (at, Duration::from_millis(at * 6))) {
        let out = folder.path().join(format!("t{at}"));
        let mut running = start(generate(&out, &["--rows", "200k"]));
        std::thread::sleep(pause);
        running.kill().unwrap();
        running.wait().unwrap();
        sawmill(generate(&out, &["--rows", "200k"])).ok();
        let log = fs::read_dir(out.join("_delta_log")).unwrap().count();
        assert_eq!(log, 1, "one version and nothing else after {pause:?}");
        let json = sawmill(["footer", &format!("delta:{}", out.display()), "--json"]).ok();
        assert!(json.out.contains("200000") || json.out.contains("66667"), "{}", json.out);
    }
}

#[test]
fn commands_at_the_same_time_lose_nothing_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t");
    let seeds = ["1", "2", "3", "1", "2", "3"];
    let running: Vec<_> =
        seeds.iter().map(|seed| start(generate(&out, &["--rows", "10k", "--seed", seed]))).collect();
    for run in running {
        wait(run).ok();
    }
    assert_eq!(fs::read_dir(out.join("_delta_log")).unwrap().count(), 3);
    let bench = Bench::new();
    sawmill(bench.args("load", &url(&format!("delta:{}", out.display())), "c", &[])).ok();
    assert_eq!(bench.count("select count(*) from c"), 30_000);
}

#[test]
fn a_table_in_s3_is_made_appended_to_and_read_by_others() {
    let Some(s3) = S3::empty("lake") else { return };
    let out = url("s3://lake/some folder/t");
    let of = |more: &[&str]| generate(&out, more);
    s3.sawmill(&of(&["--rows", "9k"])).ok();
    assert!(s3.sawmill(&of(&["--rows", "9k"])).ok().out.contains("nothing to do"));
    s3.sawmill(&of(&["--rows", "9k", "--seed", "2"])).ok();
    let options = serde_json::json!({
        "AWS_ENDPOINT_URL": s3.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
    });
    let Some(read) = deltalake(READER, &[&out, Path::new(&options.to_string())]) else { return };
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!((&read["version"], &read["files"], &read["rows"]), (&1.into(), &6.into(), &18_000.into()));
    let bench = Bench::new();
    s3.sawmill(&bench.args("load", &url("delta:s3://lake/some folder/t"), "c", &["--verify"])).ok();
    assert_eq!(bench.count("select count(*) from c"), 18_000);
}

/// A table of ours with one version, and its commit's text.
fn ours(folder: &Path) -> (PathBuf, PathBuf, String) {
    let out = folder.join("t");
    sawmill(generate(&out, &["--rows", "3k"])).ok();
    let commit = out.join("_delta_log/00000000000000000000.json");
    let text = fs::read_to_string(&commit).unwrap();
    (out, commit, text)
}

#[test]
fn a_table_that_needs_more_than_sawmill_has_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (out, commit, text) = ours(folder.path());
    let named = format!("delta:{}", out.display());
    let refused = |changed: &str, expected: &str| {
        assert_ne!(changed, text);
        fs::write(&commit, changed).unwrap();
        let ran = sawmill(["load", &named, "--to", "postgres://localhost:1/x", "--table", "c", "--explain"]);
        assert!(ran.code == Some(1) && ran.err.contains(expected), "{:?} {}", ran.code, ran.err);
    };
    let protocol = r#"{"minReaderVersion":1,"minWriterVersion":2}"#;
    let with = |features: &str| {
        let feature = format!(
            r#"{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[{features}],"writerFeatures":[{features}]}}"#
        );
        text.replace(protocol, &feature)
    };
    refused(&with(r#""catalogManaged""#), "the feature catalogManaged");
    refused(
        &text.replace(protocol, r#"{"minReaderVersion":4,"minWriterVersion":7}"#),
        "readers of version 4",
    );
    let mapped =
        text.replace(r#""configuration":{}"#, r#""configuration":{"delta.columnMapping.mode":"name"}"#);
    refused(&mapped, "the table maps its columns, and this one has no delta.columnMapping.physicalName");
    refused(&mapped.replace(r#""name"}"#, r#""other"}"#), "maps its columns by other");
    let vector = r#""deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":36,"cardinality":2},"dataChange""#;
    refused(
        &text.replacen(r#""dataChange""#, vector, 1),
        "the deletion vector of the file cannot be read: its file",
    );
    refused(&text.replacen(r#""size":"#, r#""size":1"#, 1), "in the table's log");
    let typed =
        text.replace(r#"\"name\":\"name\",\"type\":\"string\""#, r#"\"name\":\"name\",\"type\":\"long\""#);
    refused(&typed, "column \"name\" is Utf8View, in the table's schema Int64");
    let cut = &text[..text.len() - 20];
    refused(cut, "the commit cannot be read");
    fs::write(&commit, &text).unwrap();
    for (path, expected) in [
        (format!("{named}@1"), "its newest is 0"),
        (format!("delta:{}", folder.path().display()), "no Delta table"),
    ] {
        let ran = sawmill(["footer", &path]);
        assert!(ran.code == Some(1) && ran.err.contains(expected), "{}", ran.err);
    }
    let other = sawmill(["footer", &named, "other.parquet"]);
    assert!(other.code == Some(2) && other.err.contains("one table at a time"), "{}", other.err);
}

#[test]
fn appends_that_do_not_fit_a_table_are_refused_before_anything_is_generated() {
    let folder = tempfile::tempdir().unwrap();
    let (out, commit, text) = ours(folder.path());
    let path = out.to_str().unwrap();
    let spec = folder.path().join("kinds.toml");
    fs::write(&spec, KINDS).unwrap();
    let kinds =
        sawmill(["gen", spec.to_str().unwrap(), "--rows", "1k", "--table-format", "delta", "--out", path]);
    assert!(kinds.code == Some(1) && kinds.err.contains("does not fit"), "{}", kinds.err);
    let events = sawmill(["gen", "events", "--rows", "1k", "--table-format", "delta", "--out", path]);
    assert!(events.code == Some(2) && events.err.contains("Delta has no type"), "{}", events.err);
    for (key, value) in [("delta.constraints.x", "id > 0"), ("delta.appendOnly", "true")] {
        let configured = format!(r#""configuration":{{"{key}":"{value}"}}"#);
        fs::write(&commit, text.replace(r#""configuration":{}"#, &configured)).unwrap();
        let ran = sawmill(generate(&out, &["--rows", "2k", "--overwrite"]));
        assert!(ran.code == Some(1) && ran.err.contains(key), "{}", ran.err);
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "the log and the files of the first run");
    for (more, expected) in [
        (vec!["--part", "1/2"], "--part with --table"),
        (vec!["--as", "ndjson"], "are Parquet"),
        (vec!["--out", "x.parquet"], "a table is a folder"),
    ] {
        let mut args = vec!["gen", "contacts", "--rows", "1k", "--files", "2", "--table-format", "delta"];
        if more[0] != "--out" {
            args.extend(["--out", path]);
        }
        args.extend(more);
        let ran = sawmill(args);
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{}", ran.err);
    }
}
