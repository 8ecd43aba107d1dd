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
    (0..6).map(|id| json!({"id": id, "name": format!("n{}", id % 2), "price": "1.50"})).collect()
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
fn data_in_another_file_is_refused_by_all_commands_in_the_same_words() {
    let path = fixture("another_file.parquet");
    let name = path.to_str().unwrap();
    let words = "expected values in this file, found a column chunk that is in `other.parquet`";
    let commands: [&[&str]; 4] = [
        &["footer", "cat", name],
        &["convert", name, "--as", "csv", "--out", "-"],
        &["convert", name, "--as", "csv", "--out", "-", "--columns", "id"],
        &["footer", name, "--page-headers"],
    ];
    for command in commands {
        let ran = sawmill(command);
        assert!(ran.out.lines().count() == 0 || command.contains(&"--page-headers"), "{}", ran.out);
        let error = ran.fails(1);
        assert!(error.contains(words) && error.contains("column id"), "{command:?}: {error}");
        assert!(error.contains("name the files that hold the values"), "{command:?}: {error}");
    }
}
