//! Files that are odd, broken or no files of the kind.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde_json::Value;

use super::{contacts, footer, view};
use crate::harness::sawmill;
use crate::parquet_files::{many_columns, raw_footer, with_names};

#[test]
fn names_and_values_cannot_drive_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let evil = "\u{1b}[2Jx\u{9b}31m\u{7f}\u{202e}\n";
    let path = dir.path().join("evil\u{1b}[2J.parquet");
    with_names(&path, &[evil, "", "名前", "a.b"], evil);
    for args in [
        &["--schema", "--row-groups", "--chunks", "--bounds", "--metadata", "--sizes", "--data-pages"][..],
        &["--dump"],
        &["--dump", "-v"],
        &["--json", "--schema", "--chunks", "--bounds", "--metadata", "--sizes", "--dump"],
        &["--ndjson"],
        &["--csv"],
        &[],
    ] {
        let out = view(&path, args).ok().out;
        let unsafe_char = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(unsafe_char), "{args:?}: {out:?}");
    }
    let json = view(&path, &["--chunks", "--metadata", "--json"]).ok().json();
    let views = &json["files"][0]["views"];
    // Programs get the names as they are.
    assert_eq!(views["columns"][0]["path"], evil);
    assert_eq!(views["columns"][1]["path"], "");
    assert_eq!(views["columns"][2]["path"], "名前");
    assert_eq!(views["key_value"][0]["value"], evil);
    assert_eq!(json["files"][0]["file"], path.to_str().unwrap());
    // A name that is not UTF-8.
    let odd = dir.path().join(PathBuf::from(std::ffi::OsString::from_vec(b"odd\xff.parquet".to_vec())));
    fs::copy(&path, &odd).unwrap();
    let ran = sawmill(["footer".as_ref(), odd.as_os_str(), "--json".as_ref()]).ok();
    assert!(ran.json()["files"][0]["file"].as_str().unwrap().contains("odd"));
    // Errors name columns of the file, too.
    assert!(!view(&path, &["--column", "missing"]).fails(1).contains('\u{1b}'));
}

#[test]
fn files_without_rows_columns_or_readable_columns_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let views = [
        &["--schema", "--row-groups", "--chunks", "--bounds", "--metadata", "--sizes", "--data-pages"][..],
        &["--dump"],
        &["--json", "--schema", "--chunks", "--bounds", "--sizes", "--data-pages", "--row-groups"],
        &["--ndjson"],
        &["--csv"],
        &[],
    ];
    for (name, row_groups, columns, oddity) in [
        ("no-columns", 1, 0, ""),
        ("no-row-groups", 0, 3, ""),
        ("nothing", 0, 0, ""),
        ("encrypted", 2, 3, "encrypted"),
        ("unknown-codec", 2, 3, "codec"),
        ("unknown-type", 2, 3, "type"),
    ] {
        let path = dir.path().join(name);
        raw_footer(&path, row_groups, columns, oddity);
        for args in views {
            let ran = view(&path, args);
            assert_eq!(ran.code, Some(0), "{name} {args:?}: {}", ran.err);
        }
        let lines = view(&path, &["--ndjson"]).ok().out;
        assert_eq!(lines.lines().count(), row_groups * columns);
        let shown = view(&path, &["--chunks"]).ok().out;
        match oddity {
            "encrypted" => {
                assert!(shown.contains("encrypted"), "{shown}");
                assert!(view(&path, &["--bounds"]).ok().out.contains("encrypted"));
                assert!(lines.contains("\"num_values\":null"), "{lines}");
            }
            "" => assert!(!shown.contains("unreadable")),
            _ => assert!(shown.contains("unreadable") && lines.contains("unknown (99)"), "{shown}{lines}"),
        }
    }
}

#[test]
fn columns_of_one_name_and_names_with_dots_are_all_selected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("names.parquet");
    with_names(&path, &["a", "a", "a.b", "*"], "");
    let selected = |column: &str| -> Vec<u64> {
        let lines = view(&path, &["--ndjson", "--column", column]).ok().out;
        let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["column"].as_u64().unwrap();
        lines.lines().map(number).collect()
    };
    assert_eq!(selected("a"), [0, 1]);
    assert_eq!(selected("a.b"), [2]);
    assert_eq!(selected("*"), [0, 1, 2, 3]);
    assert_eq!(selected("\\*"), [3]);
}

#[test]
fn urls_that_name_no_store_are_rejected_before_anything_is_read() {
    for (name, expected) in
        [("ftp://host/key.parquet", "cannot be read from ftp://"), ("s3:///key.parquet", "lacks a bucket")]
    {
        assert!(sawmill(["footer", name]).fails(2).contains(expected), "{name}");
    }
    assert!(sawmill(["footer", "-", "-"]).fails(2).contains("standard input"));
    assert!(sawmill(["footer", "-"]).fails(1).contains("found an empty one"));
}

#[test]
fn links_to_directories_are_not_followed_and_endings_may_be_in_capitals() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("below.parquet");
    fs::create_dir(&below).unwrap();
    with_names(&below.join("A.PARQUET"), &["a"], "");
    fs::write(below.join("_SUCCESS"), "").unwrap();
    std::os::unix::fs::symlink(&below, below.join("loop.parquet")).unwrap();
    let json = sawmill(["footer", "--json", dir.path().to_str().unwrap()]).ok().json();
    assert_eq!(json["dataset"]["files"], 1);
    assert!(json["files"][0]["file"].as_str().unwrap().ends_with("below.parquet/A.PARQUET"));
}

#[test]
fn a_footer_is_looked_at_as_far_as_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("codec.parquet");
    // An unknown codec, and sums that do not add up, are nothing that decoding minds.
    raw_footer(&path, 1, 2, "codec");
    view(&path, &["--strictness", "decoded"]).ok();
    view(&path, &["--strictness", "values"]).ok();
    assert!(
        view(&path, &["--strictness", "consistency"])
            .fails(1)
            .contains("expected the columns' 20 bytes, found 10")
    );
}

#[test]
fn tens_of_thousands_of_columns_are_shown_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.parquet");
    many_columns(&path, 20_000);
    let started = std::time::Instant::now();
    for args in [
        &["--schema", "--chunks", "--bounds", "--sizes", "-v"][..],
        &["--json", "--schema", "--chunks", "--bounds", "--sizes"],
        &["--ndjson"],
    ] {
        assert!(view(&path, args).ok().out.lines().count() >= 20_000, "{args:?}");
    }
    let shown = view(&path, &["--sizes"]).ok().out;
    assert!(shown.contains("19,960 others"), "{shown}");
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn a_schema_of_any_depth_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep");
    crate::parquet_files::deep(&path, 50_000);
    let shown = view(&path, &["--schema"]).ok().out;
    assert!(shown.lines().count() > 150_000);
    let json = view(&path, &["--schema", "--json"]).ok().json();
    assert_eq!(json["files"][0]["views"]["schema"]["elements"].as_array().unwrap().len(), 50_001);
}

#[test]
fn what_is_wrong_in_a_file_is_reported_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let good = dir.path().join("contacts-00000.parquet");
    assert!(view(&good, &["--check"]).ok().out.contains("nothing wrong"));
    assert_eq!(
        view(&good, &["--check", "--json"]).ok().json()["files"][0]["views"]["check"],
        Value::Array(vec![])
    );
    // The chunks of these lie over one another, and there are fewer bytes than they say.
    let bad = dir.path().join("bad.parquet");
    raw_footer(&bad, 2, 3, "");
    let ran = view(&bad, &["--check"]);
    assert!(
        ran.out.lines().count() > 1 && ran.out.contains("byte") && ran.out.contains("row_groups[0]"),
        "{}",
        ran.out
    );
    let lines = ran.out.lines().count();
    assert!(ran.fails(1).contains(&format!("{lines} things are wrong")));
    let json = view(&bad, &["--check", "--json"]).json();
    let findings = json["files"][0]["views"]["check"].as_array().unwrap();
    assert_eq!(findings.len(), lines);
    assert!(findings.iter().any(|finding| finding["file_offset"].is_u64()), "{findings:?}");
}

#[test]
fn a_file_that_is_not_a_complete_parquet_file_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", good.to_str().unwrap()]).ok();
    let bytes = fs::read(&good).unwrap();
    for (name, content) in [
        ("empty", &[][..]),
        ("text", b"id,name\n1,Ann\n2,Bob\n"),
        ("truncated", &bytes[..bytes.len() - 5]),
        ("tail", &bytes[bytes.len() - 12..]),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let error = footer(&path).fails(1);
        assert!(error.contains(name), "{error}");
    }
    for missing in [dir.path().join("missing"), dir.path().join("no/such/dir.parquet")] {
        assert!(footer(&missing).fails(1).contains("o such file"), "{}", missing.display());
    }
    let empty = dir.path().join("empty-directory");
    fs::create_dir(&empty).unwrap();
    assert!(footer(&empty).fails(1).contains("no .parquet files"));
    // One bad file among good ones does not hide them.
    let text = dir.path().join("text");
    for args in [&[][..], &["--schema"], &["--json"], &["--ndjson"], &["--csv"]] {
        let mixed = sawmill([&["footer", good.to_str().unwrap(), text.to_str().unwrap()], args].concat());
        assert!(mixed.out.contains("phone_type") || mixed.out.contains("good.parquet"), "{args:?}");
        assert!(mixed.fails(1).contains("text"));
    }
    // Several bad files: a line each, and how many there are.
    let mixed = sawmill([
        "footer".as_ref(),
        good.as_os_str(),
        text.as_os_str(),
        dir.path().join("empty").as_os_str(),
    ]);
    assert_eq!(mixed.code, Some(1));
    assert!(
        mixed.err.contains("/text") && mixed.err.contains("/empty") && mixed.err.contains("2 of 3 files")
    );
    let json = sawmill(["footer", good.to_str().unwrap(), text.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["files"].as_array().unwrap().len(), 1);
    let error = &json["errors"][0];
    assert!(error["where"].as_str().unwrap().contains("text") && error["exit"] == 1, "{error}");
}
