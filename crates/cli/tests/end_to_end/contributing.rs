//! What CONTRIBUTING.md and the crates' README files say is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of all files of the repository, except those that tools leave there.
fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let hidden = name.starts_with('.') && !matches!(name.as_str(), ".ci" | ".github");
        if hidden || ["target", "corpus", "artifacts", "__pycache__"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            texts(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path, text));
        }
    }
}

/// Names such as `SAWMILL_PYTHON`.
fn variables(text: &str) -> BTreeSet<String> {
    let rest = text.split("SAWMILL_").skip(1);
    rest.map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        format!("SAWMILL_{}", &rest[..end.unwrap_or(rest.len())])
    })
    .filter(|name| !name.ends_with('_'))
    .collect()
}

#[test]
fn every_environment_variable_is_in_the_table_and_no_other() {
    let page = root().join("CONTRIBUTING.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `SAWMILL_"));
    let table: BTreeSet<String> = rows.flat_map(|row| variables(row.split('|').nth(1).unwrap())).collect();
    let mut files = Vec::new();
    texts(&root(), &mut files);
    let in_use: BTreeSet<String> =
        files.iter().filter(|(path, _)| *path != page).flat_map(|(_, text)| variables(text)).collect();
    let missing: Vec<_> = in_use.difference(&table).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md does not explain {missing:?}");
    let gone: Vec<_> = table.difference(&in_use).collect();
    assert!(gone.is_empty(), "CONTRIBUTING.md explains {gone:?}, which nothing reads");
}

#[test]
fn every_file_that_the_recipes_name_exists() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let words = text.split('`').skip(1).step_by(2);
    let rooms = ["crates/", "docs/", "benches/", "scripts/", "fixtures/", ".ci/", ".github/"];
    let paths: BTreeSet<&str> = words
        .filter(|word| rooms.iter().any(|room| word.starts_with(room)) && !word.contains([' ', '*']))
        .collect();
    assert!(paths.len() >= 20, "{} files are named", paths.len());
    let gone: Vec<_> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(
        gone.is_empty(),
        "CONTRIBUTING.md names {gone:?}, which do not exist: name where their content is now"
    );
}

/// The lines of documentation comments, without hidden lines of examples.
fn documentation(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let lines = lines.filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.filter(|line| *line != "#" && !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_rooms_in_each_readme_exist_and_its_example_is_one_that_is_tested() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let library = entry.unwrap().path();
        let readme = std::fs::read_to_string(library.join("README.md")).unwrap();
        let rooms = readme.split("## Rooms").nth(1).expect("a table of rooms");
        for row in rooms.lines().filter(|line| line.starts_with("| `")) {
            let names = row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
            for name in names.map(|name| name.trim_end_matches('/')) {
                let places = [format!("src/{name}"), format!("src/{name}.rs"), name.to_owned()];
                let there = places.iter().any(|place| library.join(place).exists());
                assert!(there, "the README of {library:?} names {name}, which does not exist");
            }
        }
        // The command has a library for its own binary only. The example of the Python module is in Python.
        let has_python = library.join("python").exists();
        if !library.join("src/lib.rs").exists() || library.join("src/main.rs").exists() || has_python {
            continue;
        }
        let example = readme.split("```rust\n").nth(1).expect("an example").split("```").next().unwrap();
        let mut sources = Vec::new();
        texts(&library.join("src"), &mut sources);
        let tested = sources.iter().any(|(_, source)| documentation(source).contains(example));
        assert!(tested, "copy the example of {library:?} from the documentation in its source:\n{example}");
    }
}
