//! `--compression [COLUMN=]CODEC` of `gen` and `convert`: a codec for each column.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::gen_types::{python, run};
use crate::harness::{Ran, names, sawmill};

/// Numbers not compressed, text by Zstandard, a list by LZ4 but for one of its columns, all others by Snappy.
const CODECS: [&str; 12] = [
    "--compression",
    "snappy",
    "--compression",
    "id=none",
    "--compression",
    "email=zstd:3",
    "--compression",
    "items.sku=gzip",
    "--compression",
    "items=lz4",
    "--compression",
    "status=brotli",
];

/// The columns of the dataset `orders` with those codecs, by the names of the format.
fn expected() -> BTreeMap<String, String> {
    let snappy = ["customer_id", "priority", "ordered_at", "shipped_at"].map(|column| (column, "SNAPPY"));
    let others = [("id", "UNCOMPRESSED"), ("email", "ZSTD"), ("status", "BROTLI")];
    let lz4 = ["line", "quantity", "price", "amount", "discount"]
        .map(|c| (format!("items.list.element.{c}"), "LZ4_RAW"));
    let items = lz4.into_iter().chain([("items.list.element.sku".to_owned(), "GZIP")]);
    let flat = snappy.into_iter().chain(others).map(|(column, codec)| (column.to_owned(), codec));
    flat.chain(items).map(|(column, codec)| (column, codec.to_owned())).collect()
}

/// Generates orders; returns the file.
fn orders(dir: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = dir.join(name);
    let begin =
        ["gen", "orders", "--rows", "20k", "--row-group-rows", "7000", "--out", out.to_str().unwrap()];
    sawmill(begin.iter().chain(more)).ok();
    out
}

/// The codec of each column, as `sawmill footer` has it; all row groups have the same.
fn codecs(path: &Path) -> BTreeMap<String, String> {
    let shown = sawmill(["footer", path.to_str().unwrap(), "--ndjson"]).ok().out;
    let mut codecs = BTreeMap::new();
    for line in shown.lines() {
        let chunk: serde_json::Value = serde_json::from_str(line).unwrap();
        let [column, codec] = ["path", "codec"].map(|name| chunk[name].as_str().unwrap().to_owned());
        let known = codecs.entry(column).or_insert_with(|| codec.clone());
        assert_eq!(*known, codec);
    }
    codecs
}

/// pyarrow and DuckDB find the expected codecs, and the same rows as in `plain`.
fn others_read_the_same(plain: &Path, path: &Path, expected: &BTreeMap<String, String>) {
    let Some(python) = python("pyarrow.parquet, duckdb") else { return };
    let script = format!(
        r#"
import sys, duckdb, pyarrow.parquet as pq
plain, path = {plain:?}, sys.argv[1]
rows = pq.read_table(path)
assert pq.read_table(plain).cast(rows.schema).equals(rows)
a, b = (f"SELECT * FROM read_parquet('{{file}}')" for file in (plain, path))
assert duckdb.execute(f"SELECT count(*) FROM ({{a}} EXCEPT ALL {{b}})").fetchone() == (0,)
found = duckdb.execute(f"SELECT path_in_schema, compression FROM parquet_metadata('{{path}}') ORDER BY ALL").fetchall()
found = dict((column.replace(", ", "."), codec) for column, codec in found)
meta = pq.read_metadata(path)
for group in range(meta.num_row_groups):
    for i in range(meta.num_columns):
        column = meta.row_group(group).column(i)
        # pyarrow calls LZ4_RAW by the name of its predecessor.
        assert column.compression in (found[column.path_in_schema], "LZ4"), column
for column, codec in sorted(found.items()):
    print(column, codec)
"#
    );
    let lines: Vec<String> = expected.iter().map(|(column, codec)| format!("{column} {codec}")).collect();
    assert_eq!(run(&python, &script, path).lines().collect::<Vec<_>>(), lines);
}

#[test]
fn each_column_has_its_codec_and_other_readers_read_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let plain = orders(dir.path(), "plain.parquet", &[]);
    for version in ["1", "2"] {
        let more = [&CODECS[..], &["--data-page-version", version, "--page-checksums"]].concat();
        let path = orders(dir.path(), &format!("{version}.parquet"), &more);
        assert_eq!(codecs(&path), expected());
        others_read_the_same(&plain, &path, &expected());
    }
}

#[test]
fn the_bytes_are_those_of_one_codec_where_all_columns_have_it_and_do_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let begin = ["gen", "contacts", "--rows", "300k", "--files", "2", "--out", out.to_str().unwrap()];
        sawmill(begin.iter().chain(more)).ok();
        let files = names(&out).into_iter().filter(|name| !name.starts_with("_sawmill"));
        files.map(|file| fs::read(out.join(file)).unwrap()).collect::<Vec<_>>()
    };
    let zstd = bytes("zstd", &["--compression", "zstd"]);
    assert!(zstd == bytes("named", &["--compression", "name=zstd:1", "--compression", "phones=zstd"]));
    let mixed = ["--compression", "zstd:3", "--compression", "phones.number=none", "--threads"];
    let one = bytes("one", &[&mixed[..], &["1"]].concat());
    assert!(one == bytes("two", &[&mixed[..], &["2"]].concat()));
    assert!(one != zstd);
}

#[test]
fn names_that_are_wrong_are_refused_with_advice() {
    for (dataset, codecs, expected) in [
        ("contacts", &["phone=zstd"][..], "the columns are name, phones.list.element.number"),
        ("wide:300", &["column_7_7=zstd"], "the nearest of the 300 columns are"),
        ("contacts", &["name=zstd", "name=zstd"], "two codecs for the column \"name\""),
        (
            "contacts",
            &["phones.number=none", "phones.list.element.number=lz4"],
            "two codecs for the same columns",
        ),
        ("contacts", &["zstd", "snappy"], "two codecs for all columns, zstd:1 and snappy"),
        ("contacts", &["name=zstd:99"], "-7 to 22"),
        ("contacts", &["zstd=name"], "\"name\" is not a compression"),
        ("contacts", &["=zstd"], "no column is named \"\""),
    ] {
        let options = codecs.iter().flat_map(|codec| ["--compression", codec]);
        let error =
            sawmill(["gen", dataset, "--rows", "10", "--out", "/dev/null"].into_iter().chain(options));
        let error = error.fails(2);
        assert!(error.contains(expected), "{codecs:?}: {error}");
    }
    let csv = ["gen", "devices", "--rows", "10", "--as", "csv", "--out", "-", "--compression", "id=none"];
    assert!(sawmill(csv).fails(2).contains("--compression"));
}

#[test]
fn a_column_name_may_contain_an_equals_sign() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, out) = (dir.path().join("odd.toml"), dir.path().join("odd.parquet"));
    let field = "type = \"int64\", values = { sequence = {} }";
    fs::write(
        &spec,
        format!("name = \"odd\"\nfields = [{{ name = \"a=b\", {field} }}, {{ name = \"a\", {field} }}]"),
    )
    .unwrap();
    sawmill([
        "gen",
        spec.to_str().unwrap(),
        "--rows",
        "10",
        "--out",
        out.to_str().unwrap(),
        "--compression",
        "a=b=zstd",
    ])
    .ok();
    let codecs = codecs(&out);
    assert_eq!((codecs["a=b"].as_str(), codecs["a"].as_str()), ("ZSTD", "UNCOMPRESSED"));
}

#[test]
fn runs_with_other_codecs_are_not_resumed_or_finished() {
    let dir = tempfile::tempdir().unwrap();
    let generate = |words: &[&str], more: &[&str]| -> Ran {
        let out = dir.path().join("out");
        let begin = ["contacts", "--rows", "10k", "--files", "4", "--out", out.to_str().unwrap()];
        sawmill([words, &begin[..], more].concat())
    };
    let codecs = ["--compression", "snappy", "--compression", "phones=none", "--compression", "name=zstd"];
    generate(&["gen"], &[&codecs[..], &["--part", "1/2"]].concat()).ok();
    generate(&["gen"], &[&codecs[..], &["--part", "2/2"]].concat()).ok();
    let error = generate(&["gen", "finish"], &codecs[..2]).fails(2);
    assert!(error.contains("compression was snappy, name=zstd:1, phones=none, is snappy"), "{error}");
    let error = generate(&["gen"], &["--resume", "--compression", "name=zstd"]).fails(2);
    assert!(error.contains("compression was") && error.contains("is none, name=zstd:1"), "{error}");
    // The order of the options does not matter.
    let reordered = [&codecs[4..], &codecs[2..4], &codecs[..2]].concat();
    generate(&["gen", "finish"], &reordered).ok();
    assert!(generate(&["gen"], &[&codecs[..], &["--resume"]].concat()).ok().out.contains("4 kept"));
}

#[test]
fn a_delta_table_has_files_of_these_codecs() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("table");
    let args =
        ["gen", "contacts", "--rows", "1k", "--table-format", "delta", "--out", table.to_str().unwrap()];
    sawmill(args.iter().chain(&["--compression", "phones=zstd"])).ok();
    let run = names(&table).into_iter().find(|name| name.starts_with("run-")).unwrap();
    let codecs = codecs(&table.join(run).join("contacts-00000.parquet"));
    assert_eq!(codecs["name"], "UNCOMPRESSED");
    assert_eq!(codecs["phones.list.element.number"], "ZSTD");
    // The same options in another order or other ones: the same version, and a new one.
    assert!(sawmill(args.iter().chain(&["--compression", "phones=zstd"])).ok().out.contains("nothing to do"));
    assert!(sawmill(args).ok().out.contains("version 1"));
}

#[test]
fn conversions_give_each_column_its_codec_too() {
    let dir = tempfile::tempdir().unwrap();
    let plain = orders(dir.path(), "plain.parquet", &[]);
    let from = plain.to_str().unwrap();
    let convert = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        sawmill([&["convert", from, "--out", out.to_str().unwrap()], more].concat())
    };
    convert("a.parquet", &CODECS).ok();
    let path = dir.path().join("a.parquet");
    assert_eq!(codecs(&path), expected());
    others_read_the_same(&plain, &path, &expected());
    convert("parts", &[&CODECS[..], &["--file-size", "300kB"]].concat()).ok();
    let parts = names(&dir.path().join("parts"));
    assert!(
        parts.len() > 1
            && parts.iter().all(|part| codecs(&dir.path().join("parts").join(part)) == expected())
    );
    for (more, expected) in [
        (&["--compression", "mail=zstd"][..], "the columns are id, "),
        (
            &["--compression", "email=zstd", "--compression", "email=lz4"],
            "two codecs for the column \"email\"",
        ),
        (&["--compression", "zstd", "--compression", "lz4"], "two codecs for all columns"),
        (&["--compression", "email=zstd:-3"], "levels 1 to 22"),
        (&["--encoding", "items=plain"], "\"items\" has several columns"),
        (&["--as", "ndjson", "--compression", "email=none"], "--compression"),
    ] {
        let error = convert("no.parquet", more).fails(2);
        assert!(error.contains(expected), "{more:?}: {error}");
        assert!(!dir.path().join("no.parquet").exists());
    }
}

#[test]
fn a_column_of_a_list_gets_its_encoding_and_filter_in_a_conversion() {
    let dir = tempfile::tempdir().unwrap();
    let (from, out) = (orders(dir.path(), "plain.parquet", &[]), dir.path().join("a.parquet"));
    let options = ["--encoding", "items.sku=delta-length", "--bloom", "items.list.element.sku"];
    sawmill([&["convert", from.to_str().unwrap(), "--out", out.to_str().unwrap()], &options[..]].concat())
        .ok();
    let shown = sawmill(["footer", out.to_str().unwrap(), "--ndjson"]).ok().out;
    let chunks = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let sku = chunks.into_iter().find(|chunk| chunk["path"] == "items.list.element.sku").unwrap();
    assert!(sku["encodings"].as_array().unwrap().contains(&json!("DELTA_LENGTH_BYTE_ARRAY")), "{sku}");
    assert!(sku["bloom_filter_offset"].is_number(), "{sku}");
}
