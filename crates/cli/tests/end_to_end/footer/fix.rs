//! `sawmill footer fix` and `extract`: files whose footers are written again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use sawmill_footer::{DumpLine, DumpValue, Footer, Root, dump};

use crate::harness::{Ran, names, sawmill};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign").join(name)
}

/// A file of pyarrow whose first two null counts are -1.
fn damaged(folder: &Path) -> PathBuf {
    let mut file = fs::read(fixture("pyarrow_plain.parquet")).unwrap();
    let footer = Footer::open(fixture("pyarrow_plain.parquet")).unwrap();
    let start = file.len() - 8 - footer.footer_len();
    let mut counts = Vec::new();
    let is_count =
        |line: &DumpLine<'_>| line.name == Some("null_count") && line.value == DumpValue::Integer(0);
    dump(footer.bytes(), Root::FileMetaData, |line| {
        counts.extend(is_count(&line).then_some(line.offset));
        counts.len() < 2
    })
    .unwrap();
    for at in counts {
        file[start + at] = 1;
    }
    let path = folder.join("damaged.parquet");
    fs::write(&path, file).unwrap();
    path
}

fn footer(args: &[&str]) -> Ran {
    sawmill(["footer"].iter().chain(args))
}

#[test]
fn fix_repairs_the_footer_and_leaves_the_rest_byte_by_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (damaged(dir.path()), dir.path().join("fixed.parquet"));
    let (name, fixed) = (path.to_str().unwrap(), out.to_str().unwrap());
    let before = fs::read(&path).unwrap();
    footer(&["check", name]).fails(1);
    let text = footer(&["fix", name, fixed]).ok().out;
    assert_eq!(text.matches("null_count was -1, is left out").count(), 2, "{text}");
    footer(&["check", fixed]).ok();
    assert_eq!(footer(&["cat", name]).ok().out, footer(&["cat", fixed]).ok().out);
    let after = fs::read(&out).unwrap();
    let data = before.len() - 8 - Footer::open(&path).unwrap().footer_len();
    assert_eq!(before[..data], after[..data]);
    assert_eq!(fs::read(&path).unwrap(), before, "the input stays");
    // Once more there is nothing to do, and the output equals the input.
    let again = dir.path().join("again.parquet");
    let text = footer(&["fix", fixed, again.to_str().unwrap()]).ok().out;
    assert!(text.starts_with("nothing to repair"), "{text}");
    assert_eq!(fs::read(again).unwrap(), after);
}

/// The sizes beside the offset are right, and stay.
#[test]
fn fix_finds_a_dictionary_again_and_the_file_is_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("damaged.parquet"), dir.path().join("fixed.parquet"));
    let (name, fixed) = (path.to_str().unwrap(), out.to_str().unwrap());
    let whole = fs::read(fixture("pyarrow_plain.parquet")).unwrap();
    let footer_bytes = Footer::open(fixture("pyarrow_plain.parquet")).unwrap();
    let mut place = None;
    dump(footer_bytes.bytes(), Root::FileMetaData, |line| {
        let is_first = line.name == Some("dictionary_page_offset") && line.value == DumpValue::Integer(4);
        place = is_first.then_some(line.offset);
        place.is_none()
    })
    .unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() - 8 - footer_bytes.footer_len() + place.unwrap()] = 0;
    fs::write(&path, damaged).unwrap();
    footer(&["check", name]).fails(1);
    let text = footer(&["fix", name, fixed]).ok().out;
    assert!(text.contains("meta_data.dictionary_page_offset was 0, is 4"), "{text}");
    assert_eq!(fs::read(&out).unwrap(), whole);
    footer(&["check", fixed, "--pages"]).ok();
    let short = footer(&["fix", name, fixed, "--overwrite", "--max-footer", "100"]).fails(1);
    assert!(short.contains("expected a footer of at most 100 bytes, found one of"), "{short}");
}

#[test]
fn fix_leaves_out_bounds_in_the_wrong_order() {
    let dir = tempfile::tempdir().unwrap();
    let [path, out] = ["crossed.parquet", "fixed.parquet"].map(|name| dir.path().join(name));
    let (least, most) = (0x1122_3344_5566_7788_i64, 0x2233_4455_6677_1122_i64);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![least, most]));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let mut file = writer.into_inner().unwrap();
    fs::write(&path, &file).unwrap();
    let start = file.len() - 8 - Footer::open(&path).unwrap().footer_len();
    let (mut at, mut swapped) = (start, 0);
    while let Some(bound) = file.get(at..at + 8) {
        let other = match i64::from_le_bytes(bound.try_into().unwrap()) {
            found if found == least => most,
            found if found == most => least,
            _ => {
                at += 1;
                continue;
            }
        };
        file[at..at + 8].copy_from_slice(&other.to_le_bytes());
        (at, swapped) = (at + 8, swapped + 1);
    }
    assert!(swapped >= 2, "{swapped}");
    fs::write(&path, &file).unwrap();
    let (name, fixed) = (path.to_str().unwrap(), out.to_str().unwrap());
    assert!(footer(&["check", name]).out.contains("to be no greater than the"));
    let text = footer(&["fix", name, fixed]).ok().out;
    for bound in ["min_value", "max_value"] {
        assert!(text.contains(&format!("{bound} was in the wrong order, is left out")), "{text}");
    }
    assert!(!text.contains("not repaired") && !text.contains("nothing"), "{text}");
    footer(&["check", fixed]).ok();
    assert_eq!(footer(&["cat", name]).ok().out, footer(&["cat", fixed]).ok().out);
}

#[test]
fn fix_names_each_repair_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (damaged(dir.path()), dir.path().join("fixed.parquet"));
    let json = footer(&["fix", path.to_str().unwrap(), out.to_str().unwrap(), "--json"]).ok().json();
    let repairs = json["repairs"].as_array().unwrap();
    assert_eq!(repairs.len(), 2);
    assert_eq!(repairs[0]["field"], "meta_data.statistics.null_count");
    assert_eq!((&repairs[0]["was"], &repairs[0]["now"]), (&"-1".into(), &"left out".into()));
    assert_eq!(repairs[0]["row_groups"], serde_json::json!([0]));
    assert_eq!(json["left"], serde_json::json!([]));
}

#[test]
fn fix_replaces_a_file_only_if_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = damaged(dir.path());
    let (name, before) = (path.to_str().unwrap(), fs::read(&path).unwrap());
    let error = footer(&["fix", name, name]).fails(2);
    assert!(error.contains("the file exists already") && error.contains("--overwrite"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    footer(&["fix", name, name, "--overwrite"]).ok();
    footer(&["check", name]).ok();
    assert_eq!(names(dir.path()), ["damaged.parquet"]);
}

#[test]
fn fix_leaves_nothing_of_a_file_that_it_cannot_repair() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.parquet");
    let whole = fs::read(fixture("duckdb_plain.parquet")).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let out = dir.path().join("out.parquet");
    let error = footer(&["fix", path.to_str().unwrap(), out.to_str().unwrap()]).fails(1);
    assert!(error.contains("cut.parquet"), "{error}");
    let url = footer(&["fix", path.to_str().unwrap(), "s3://bucket/out.parquet"]);
    url.fails(2);
    assert!(footer(&["fix", path.to_str().unwrap(), "-"]).fails(2).contains("name a file"));
    assert_eq!(names(dir.path()), ["cut.parquet"]);
}

#[test]
fn an_extracted_footer_shows_the_same_and_says_that_it_has_no_data() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (fixture("duckdb_plain.parquet"), dir.path().join("footer.parquet"));
    let (name, alone) = (path.to_str().unwrap(), out.to_str().unwrap());
    footer(&["extract", name, alone]).ok();
    assert_eq!(Footer::open(&out).unwrap().bytes(), Footer::open(&path).unwrap().bytes());
    for view in ["--schema", "--row-groups", "--chunks", "--bounds"] {
        assert_eq!(footer(&[alone, view]).ok().out, footer(&[name, view]).ok().out, "{view}");
    }
    footer(&["check", alone]).ok();
    let pages = footer(&["check", alone, "--pages"]);
    assert!(!pages.out.contains("nothing wrong"), "{}", pages.out);
    pages.fails(1);
    for asked in [&["head", alone][..], &["cat", alone], &["dictionary", alone], &[alone, "--page-headers"]] {
        let error = footer(asked).fails(1);
        assert!(error.contains("a footer alone: the file has no data"), "{asked:?}: {error}");
    }
    for asked in [
        &["convert", alone, "--parse-only"][..],
        &["gen", "spec", "--like", alone],
        &["gen", "fidelity", name, alone],
        &["doctor", alone],
    ] {
        let error = sawmill(asked).fails(1);
        assert!(error.contains("a footer alone: the file has no data"), "{asked:?}: {error}");
    }
    let error = footer(&["extract", name, alone]).fails(2);
    assert!(error.contains("the file exists already"), "{error}");
    let error = footer(&["extract", alone, alone, "--overwrite"]).fails(2);
    assert!(error.contains("the output is the input"), "{error}");
}

#[test]
fn a_scrubbed_footer_tells_the_layout_and_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (fixture("pyarrow_nested.parquet"), dir.path().join("report.parquet"));
    let (name, report) = (path.to_str().unwrap(), out.to_str().unwrap());
    let json = footer(&["extract", "--scrub", name, report, "--json"]).ok().json();
    assert_eq!(json["is_scrubbed"], true);
    let view = |file: &str| footer(&[file, "--json", "--chunks", "--bounds"]).ok().json();
    let (whole, scrubbed) = (view(name), view(report));
    let chunks = |json: &serde_json::Value| json["files"][0]["views"]["columns"].as_array().unwrap().len();
    assert_eq!(chunks(&whole), chunks(&scrubbed));
    assert_eq!(whole["files"][0]["rows"], scrubbed["files"][0]["rows"]);
    let names = |path: &Path| -> Vec<String> {
        Footer::open(path).unwrap().schema().leaves().map(|leaf| leaf.name().to_owned()).collect()
    };
    let (whole, scrubbed) = (names(&path), names(&out));
    assert!(scrubbed.iter().all(|name| !whole.contains(name)), "{scrubbed:?}");
}
