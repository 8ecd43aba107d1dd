//! The guarantees in the docs name the tests that keep them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All texts of the form `file::function` in backticks on the page.
fn named_tests(page: &str) -> BTreeSet<(&str, &str)> {
    let words = page.split('`').skip(1).step_by(2);
    words
        .filter_map(|word| word.split_once("::"))
        .filter(|(file, test)| !file.is_empty() && !test.is_empty())
        .collect()
}

/// All files named `file.rs` below the `tests` folders of all crates.
fn files(file: &str) -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut rooms: Vec<PathBuf> =
        std::fs::read_dir(crates).unwrap().map(|room| room.unwrap().path().join("tests")).collect();
    let mut found = Vec::new();
    while let Some(room) = rooms.pop() {
        for entry in std::fs::read_dir(&room).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rooms.push(path);
            } else if path.file_name().is_some_and(|name| name == format!("{file}.rs").as_str()) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guarantees.md")).unwrap();
    let tests = named_tests(&page);
    assert!(tests.len() >= 20, "{} tests are named", tests.len());
    for (file, test) in tests {
        let marked = |text: String| {
            text.split("#[test]").skip(1).any(|after| {
                let head = after.split('{').next().unwrap();
                head.contains(&format!("fn {test}("))
            })
        };
        let exists = files(file).into_iter().any(|path| marked(std::fs::read_to_string(path).unwrap()));
        assert!(exists, "docs/guarantees.md names {file}::{test}, which is not a test");
    }
}
