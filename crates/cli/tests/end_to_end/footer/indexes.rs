//! Kept indexes, and mapped footers.

use std::fs;

use serde_json::Value;

use super::{contacts, view};
use crate::harness::sawmill;
use crate::parquet_files::many_types;

/// The lines of `--ndjson` without what only they have.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn chunks_by_an_index_are_those_of_the_decoded_footer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let index = dir.path().join("types.index");
    let index = index.to_str().unwrap();
    let summary = view(&path, &["--save-index", index]).ok().out;
    assert!(summary.contains("types.parquet"));
    assert!(!dir.path().join("types.index.partial").exists());
    // Once more over an older index.
    view(&path, &["--save-index", index]).ok();
    let expected = lines(&view(&path, &["--ndjson"]).ok().out);
    let found: Value = view(&path, &["--by-index", index, "--json"]).ok().json();
    let chunks = found["chunks"].as_array().unwrap();
    assert_eq!(chunks.len(), expected.len());
    for (chunk, expected) in chunks.iter().zip(&expected) {
        for (name, value) in chunk.as_object().unwrap() {
            assert_eq!(value, &expected[name], "{name} of {}", expected["path"]);
        }
    }
}

#[test]
fn a_selection_by_an_index_reads_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let index = dir.path().join("kept");
    let index = index.to_str().unwrap();
    view(&path, &["--save-index", index]).ok();
    let args = ["--by-index", index, "--column", "**.phone_*", "--row-group", "1"];
    let text = view(&path, &args).ok().out;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.starts_with("row group 1\ncolumn"));
    assert!(text.lines().last().unwrap().starts_with("phones.list.element.phone_type"));
    assert_eq!(view(&path, &["--by-index", index, "--row-group", "7.."]).ok().out, "no row groups\n");
    let error = view(&path, &["--by-index", index, "--column", "nothing"]).fails(1);
    assert!(error.contains("`nothing`"), "{error}");
}

#[test]
fn an_index_of_another_footer_or_none_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "20k", "2");
    let [one, other] = ["contacts-00000.parquet", "contacts-00001.parquet"].map(|name| dir.path().join(name));
    let index = dir.path().join("kept");
    view(&one, &["--save-index", index.to_str().unwrap()]).ok();
    let error = view(&other, &["--by-index", index.to_str().unwrap()]).fails(1);
    assert!(error.contains("contacts-00001.parquet"), "{error}");
    let error = view(&one, &["--by-index", other.to_str().unwrap()]).fails(1);
    assert!(error.contains("index"), "{error}");
    // Data is not written over by mistake.
    let before = fs::read(&other).unwrap();
    view(&one, &["--save-index", other.to_str().unwrap()]).fails(2);
    assert_eq!(fs::read(&other).unwrap(), before);
    let directory = dir.path().to_str().unwrap();
    let error = sawmill(["footer", directory, "--save-index", "x"]).fails(2);
    assert!(error.contains("one file"), "{error}");
    view(&one, &["--save-index", "x", "--column", "name"]).fails(2);
    view(&one, &["--by-index", "x", "--schema"]).fails(2);
}

#[test]
fn a_damaged_index_is_rejected_with_the_advice_to_write_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let index = dir.path().join("types.index");
    let name = index.to_str().unwrap();
    view(&path, &["--save-index", name]).ok();
    let kept = fs::read(&index).unwrap();
    for at in [0, 7, 20, 33, 50, 61, kept.len() / 2, kept.len() - 30, kept.len() - 1] {
        let mut damaged = kept.clone();
        damaged[at] ^= 1;
        fs::write(&index, damaged).unwrap();
        let error = view(&path, &["--by-index", name]).fails(1);
        assert!(error.contains("types.index") && error.contains("--save-index"), "{error}");
    }
    // Locators of two chunks in one another's place.
    let mut swapped = kept.clone();
    swapped[48..].as_chunks_mut::<8>().0.swap(0, 2);
    fs::write(&index, swapped).unwrap();
    view(&path, &["--by-index", name]).fails(1);
    view(&path, &["--save-index", name]).ok();
    view(&path, &["--by-index", name]).ok();
}

#[cfg(all(unix, target_pointer_width = "64"))]
#[test]
fn mapped_footers_say_what_read_ones_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    for args in [&["--ndjson"][..], &["--schema"], &["--page-index"], &["--check"]] {
        let mapped = view(&path, &[args, &["--mapped"]].concat()).ok().out;
        assert_eq!(mapped, view(&path, args).ok().out);
    }
    fs::write(dir.path().join("empty.parquet"), "").unwrap();
    let error = sawmill(["footer", dir.path().to_str().unwrap(), "--mapped"]).fails(1);
    assert!(error.contains("empty.parquet"), "{error}");
}
