//! Files whose footers state what cannot be true: `--check` names the number that the file has, `fix` sets right what
//! the rest tells, and rows are read that other readers find.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::view;
use crate::harness::sawmill;

/// A file of pyarrow with six rows, damaged in one place.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/damaged").join(name)
}

fn six_rows() -> Vec<Value> {
    (0..6).map(|id| json!({"id": id, "name": format!("n{}", id % 2), "price": 1.5})).collect()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows that `cat` and `convert` read, which are the same.
fn rows(path: &Path) -> Vec<Value> {
    let name = path.to_str().unwrap();
    let shown = json_lines(&sawmill(["footer", "cat", name]).ok().out);
    let converted = sawmill(["convert", name, "--as", "ndjson", "--out", "-"]).ok().out;
    assert_eq!(json_lines(&converted), shown, "{name}");
    shown
}

/// What `--check` finds.
fn findings(path: &Path) -> Vec<String> {
    view(path, &["--check"]).out.lines().map(str::to_owned).collect()
}

/// What `fix` says, and the file that it wrote, which nothing is wrong with and which has all rows.
fn fixed(name: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("fixed.parquet");
    let text = sawmill(["footer", "fix", fixture(name).to_str().unwrap(), out.to_str().unwrap()]).ok().out;
    view(&out, &["--check"]).ok();
    assert_eq!(rows(&out), six_rows(), "{name}");
    text
}

#[test]
fn sizes_that_cannot_be_true_replace_no_sum() {
    let path = fixture("negative_uncompressed.parquet");
    let found = findings(&path);
    assert_eq!(found.len(), 9, "one for each chunk: {found:?}");
    let expected = "expected a `total_uncompressed_size` of at least 0, found -7";
    assert!(found.iter().all(|finding| finding.starts_with(expected)), "{found:?}");
    for name in ["negative_uncompressed.parquet", "sizes_beyond_the_file.parquet", "sizes_of_zero.parquet"] {
        let text = fixed(name);
        assert_eq!(text.matches("compressed_size was ").count(), 3, "once for each column: {text}");
        assert!(!text.contains("total_byte_size") && !text.contains("not repaired"), "{text}");
    }
}

#[test]
fn a_chunk_without_a_true_size_ends_where_the_next_one_starts() {
    for (name, expected) in [
        ("sizes_beyond_the_file.parquet", "expected data within bytes 4.."),
        ("sizes_of_zero.parquet", "expected a `total_compressed_size` of the bytes of 2 values, found 0"),
    ] {
        let path = fixture(name);
        assert_eq!(rows(&path), six_rows(), "{name}");
        let found = findings(&path);
        assert_eq!(found.iter().filter(|finding| finding.starts_with(expected)).count(), 9, "{found:?}");
        assert!(!found.iter().any(|finding| finding.contains("the columns'")), "{found:?}");
    }
}

#[test]
fn a_negative_number_of_rows_of_the_file_is_the_sum_of_its_row_groups() {
    let path = fixture("negative_rows.parquet");
    assert_eq!(rows(&path), six_rows());
    assert_eq!(view(&path, &["--json"]).ok().json()["files"][0]["rows"], 6);
    let found = findings(&path);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("expected a `num_rows` of at least 0, found -1"), "{found:?}");
    assert!(fixed("negative_rows.parquet").contains("num_rows was -1, is 6"));
}

#[test]
fn data_in_another_file_is_refused_by_all_commands_in_the_same_words() {
    let path = fixture("another_file.parquet");
    let name = path.to_str().unwrap();
    let words = "expected values in this file, found a column chunk that is in `other.parquet`";
    let commands: [&[&str]; 3] = [
        &["footer", "cat", name],
        &["convert", name, "--as", "csv", "--out", "-"],
        &["convert", name, "--as", "csv", "--out", "-", "--columns", "id"],
    ];
    for command in commands {
        let ran = sawmill(command);
        assert_eq!(ran.out, "");
        let error = ran.fails(1);
        assert!(error.contains(words) && error.contains("column id"), "{command:?}: {error}");
        assert!(error.contains("name the files that hold the values"), "{command:?}: {error}");
    }
    let found = findings(&path);
    assert_eq!(found.len(), 3, "{found:?}");
    let expected =
        "expected data in this file, found it in `other.parquet` - row_groups[0].columns[0].file_path";
    assert!(found[0].starts_with(expected), "{found:?}");
}

#[test]
fn small_faults_are_named_and_repaired() {
    let path = fixture("small_faults.parquet");
    let found = findings(&path).join("\n");
    let faults = [
        ("expected a `distinct_count` of at least 0, found -1", "distinct_count was -1, is left out", 3),
        ("expected a `unencoded_byte_array_data_bytes` of at least 0, found -5", "was -5, is left out", 3),
        ("expected a `file_offset` of at least 0, found -5", "file_offset was -5, is 0", 3),
        ("expected a path to a file, found an empty one", "file_path was empty, is left out", 3),
        ("expected the scale 2 of the logical type, found none of the decimal", "scale was missing, is 2", 1),
    ];
    let fixed = fixed("small_faults.parquet");
    for (finding, repair, count) in faults {
        assert_eq!(found.matches(finding).count(), count, "{finding}: {found}");
        assert_eq!(fixed.matches(repair).count(), count, "{repair}: {fixed}");
    }
    assert_eq!(found.lines().count(), 13, "{found}");
}

#[test]
fn the_check_shows_the_number_that_the_file_has() {
    let found = findings(&fixture("negative_totals.parquet")).join("\n");
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(found.contains("expected a `total_byte_size` of at least 0, found -2"), "{found}");
    assert!(found.contains("expected a `total_compressed_size` of at least 0, found -1"), "{found}");
    let text = fixed("negative_totals.parquet");
    assert!(text.contains("total_byte_size was -2, is ") && text.contains("size was -1, is "), "{text}");
    let found = findings(&fixture("negative_values.parquet")).join("\n");
    assert!(found.contains("expected a `num_values` of at least 0, found -"), "{found}");
    assert!(!found.contains("found 0"), "{found}");
}

#[test]
fn a_missing_repetition_is_found_in_levels_or_not_repaired() {
    for name in ["no_repetition.parquet", "no_repetition_but_pages.parquet"] {
        let found = findings(&fixture(name));
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(fixed(name).matches("repetition_type was missing, is OPTIONAL").count(), 3);
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (fixture("no_repetition_no_levels.parquet"), dir.path().join("fixed.parquet"));
    let ran = sawmill(["footer", "fix", path.to_str().unwrap(), out.to_str().unwrap()]);
    let text = ran.out.clone();
    let error = ran.fails(1);
    assert!(
        error.contains("3 faults could not be repaired - ") && error.contains("fixed.parquet"),
        "{error}"
    );
    assert!(text.starts_with("nothing that can be repaired: "), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&out).unwrap());
    assert_eq!(text.matches("not repaired: expected a repetition of the format").count(), 3, "{text}");
}
