//! Text of other forms than plain CSV: compressed, NDJSON, with records that cannot be read.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::harness::{command, sawmill};
use crate::load::Bench;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/text").join(name).display().to_string()
}

const EVENTS: &str = r#"{"id":1,"at":"2024-03-01T10:00:00Z","user":{"name":"Zo\u00eb","tags":["a","b"]},"payload":{"x":1}}
{"id":2,"payload":[1,2],"user":null}
{"user":{"name":"b","tags":[]},"id":3,"at":null}
"#;

#[test]
fn compressed_files_are_loaded_and_verified_as_their_text() {
    let bench = Bench::new();
    for extension in ["gz", "zst", "bz2", "xz", "lz4"] {
        let file = fixture(&format!("drinks.csv.{extension}"));
        let table = format!("drinks_{extension}");
        let report = bench.load(Path::new(&file), &table, &["--verify", "--json"]).ok().json();
        assert_eq!(report["report"]["rows"], 3);
        let rows = bench.client().query(&format!("select name from {table} order by id"), &[]).unwrap();
        let names: Vec<Option<String>> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(names, [Some("caf\u{e9}\nnoir".to_owned()), Some("th\u{e9}".to_owned()), None]);
        sawmill(bench.args("verify", Path::new(&file), &table, &[])).ok();
    }
}

#[test]
fn a_compressed_stream_is_read_from_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a.ndjson");
    let mut child = command(["convert", "-", "--format", "csv", "--out", out.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(fixture("drinks.csv.xz")).unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 3);
}

#[test]
fn lines_of_json_become_nested_columns_and_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("a.ndjson"), EVENTS).unwrap();
    sawmill(["convert", &at("a.ndjson"), "--out", &at("a.parquet")]).ok();
    sawmill(["convert", &at("a.parquet"), "--out", &at("b.ndjson")]).ok();
    let back = fs::read_to_string(at("b.ndjson")).unwrap();
    let first: serde_json::Value = serde_json::from_str(back.lines().next().unwrap()).unwrap();
    assert_eq!(first["user"], serde_json::json!({"name": "Zo\u{eb}", "tags": ["a", "b"]}));
    let third: serde_json::Value = serde_json::from_str(back.lines().nth(2).unwrap()).unwrap();
    assert_eq!((&third["id"], &third["user"]["tags"]), (&3.into(), &serde_json::json!([])));
    let error = sawmill(["convert", &at("a.ndjson"), "--out", &at("c.parquet"), "--null", "x"]).fails(2);
    assert!(error.contains("--null is available for delimited text only"), "{error}");
    let bench = Bench::new();
    bench.load(Path::new(&at("a.ndjson")), "events", &["--verify"]).ok();
    let row = bench.client().query_one("select count(*), max(id) from events", &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (3, 3));
}

#[test]
fn records_that_cannot_be_read_go_to_a_file_and_the_others_are_loaded_and_verified() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let mut text = "id,fare\n".to_owned();
    (0..5000).for_each(|id| match id % 1000 {
        500 => text += &format!("{id},much\n"),
        501 => text += &format!("{id}\n"),
        _ => text += &format!("{id},1.5\n"),
    });
    fs::write(at("a.csv"), &text).unwrap();
    let options = ["--types", "fare=float64", "--rejects", &at("bad.csv")];
    let more = [&options[..], &["--verify"]].concat();
    let said = bench.load(Path::new(&at("a.csv")), "said", &more).ok().out;
    assert!(said.contains("verified: the table holds what the files hold except 10 rejected rows"), "{said}");
    fs::remove_file(at("bad.csv")).unwrap();
    let more = [&more[..], &["--json"]].concat();
    let report = bench.load(Path::new(&at("a.csv")), "fares", &more).ok().json();
    assert_eq!(report["report"]["rows"], 4990);
    let bad = fs::read_to_string(at("bad.csv")).unwrap();
    assert_eq!(bad.lines().count(), 11);
    assert!(bad.contains(",502,") && bad.contains("\"500,much\""), "{bad}");
    let said = sawmill(bench.args("verify", Path::new(&at("a.csv")), "fares", &options)).ok().out;
    assert!(said.contains("verified: both hold the same except 10 rejected rows"), "{said}");
    let few = [&options[..], &["--max-rejects", "9"]].concat();
    let error = bench.load(Path::new(&at("a.csv")), "few", &few).fails(1);
    assert!(error.contains("more than 9 records cannot be read"), "{error}");
    fs::write(at("mine.txt"), "mine").unwrap();
    let error = bench.load(Path::new(&at("a.csv")), "mine", &["--rejects", &at("mine.txt")]).fails(2);
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn lines_and_rows_that_are_refused_go_to_a_file_each() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("a.csv"), "id,fare\n1,1.5\n2,much\n3,-4\n4,2.5\n").unwrap();
    bench.client().batch_execute("create table fares (id bigint, fare float8 check (fare > 0))").unwrap();
    let both = ["--types", "fare=float64", "--rejects", &at("bad.csv"), "--rejects", &at("bad.parquet")];
    let append = [&both[..], &["--mode", "append", "--json"]].concat();
    let report = bench.load(Path::new(&at("a.csv")), "fares", &append).ok().json();
    assert_eq!((&report["report"]["rows"], &report["report"]["rows_rejected"]), (&2.into(), &1.into()));
    assert!(fs::read_to_string(at("bad.csv")).unwrap().contains("\"2,much\""));
    assert!(sawmill(["footer", "cat", &at("bad.parquet")]).ok().out.contains("-4"));
    sawmill(bench.args("verify", Path::new(&at("a.csv")), "fares", &both)).ok();
    let twice = ["--rejects", &at("x.csv"), "--rejects", &at("y.csv")];
    let error = bench.load(Path::new(&at("a.csv")), "twice", &twice).fails(2);
    assert!(error.contains("two files for records that cannot be read"), "{error}");
}

#[test]
fn converted_parquet_has_the_encodings_pages_and_filters_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let mut text = "id,name\n".to_owned();
    (0..20_000).for_each(|id| text += &format!("{id},name {id}\n"));
    fs::write(at("a.csv"), text).unwrap();
    let options =
        ["--encoding", "id=delta", "--bloom", "name:0.01", "--page-size", "4KiB", "--statistics", "chunk"];
    let convert = ["convert", &at("a.csv"), "--out", &at("a.parquet")];
    sawmill([&convert[..], &options].concat()).ok();
    let file = fs::File::open(at("a.parquet")).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let metadata = parquet::file::reader::FileReader::metadata(&reader);
    let (id, name) = (metadata.row_group(0).column(0), metadata.row_group(0).column(1));
    assert!(id.encodings().any(|encoding| encoding == parquet::basic::Encoding::DELTA_BINARY_PACKED));
    assert!(name.bloom_filter_offset().is_some() && id.bloom_filter_offset().is_none());
    assert!(id.column_index_offset().is_none());
    let error =
        sawmill(["convert", &at("a.csv"), "--out", &at("b.parquet"), "--encoding", "name=delta"]).fails(2);
    assert!(error.contains("cannot have the encoding"), "{error}");
    let error = sawmill(["convert", &at("a.csv"), "--out", &at("b.csv"), "--bloom", "id"]).fails(2);
    assert!(error.contains("Parquet only"), "{error}");
}
