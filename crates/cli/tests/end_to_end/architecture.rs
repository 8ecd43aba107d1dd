//! What docs/architecture.md says of the crates: which there are, and who may import whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Imports = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn words(list: &str) -> BTreeSet<String> {
    let words = list.split(',').filter_map(|word| word.split_whitespace().next());
    words.map(str::to_owned).collect()
}

/// The lines `crates -> crates` of the page.
fn documented() -> Imports {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let lines = page.split("Who may import whom:").nth(1).unwrap().split("```").nth(1).unwrap();
    let mut imports = Imports::new();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (importers, imported) = line.split_once("->").unwrap();
        let imported = match imported.trim() {
            "no other Sawmill crate" => BTreeSet::new(),
            list => words(list),
        };
        for importer in words(importers) {
            assert!(imports.insert(importer.clone(), imported.clone()).is_none(), "{importer} appears twice");
        }
    }
    imports
}

/// The dependencies among the crates, without dev-dependencies.
fn in_manifests() -> Imports {
    let mut imports = Imports::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap();
        // The command's package has the name of the project.
        let section = section.replace("\nsawmill = ", "\nsawmill-cli = ");
        let ours = section.lines().filter_map(|line| line.strip_prefix("sawmill-"));
        let ours = ours.map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned()).collect();
        imports.insert(folder.file_name().unwrap().to_string_lossy().into_owned(), ours);
    }
    imports
}

#[test]
fn crates_import_what_the_map_allows_and_nothing_else() {
    let (documented, actual) = (documented(), in_manifests());
    for (name, imports) in &actual {
        let allowed = documented.get(name).unwrap_or_else(|| panic!("the map lacks the crate {name}"));
        assert_eq!(imports, allowed, "the imports of {name}, and those that the map names");
    }
    let gone: Vec<_> = documented.keys().filter(|name| !actual.contains_key(*name)).collect();
    assert!(gone.is_empty(), "the map names {gone:?}, which are not crates");
}

#[test]
fn nothing_that_is_imported_imports_its_importer() {
    let imports = in_manifests();
    for name in imports.keys() {
        let mut open: Vec<&String> = imports[name].iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(next) = open.pop() {
            assert_ne!(next, name, "{name} imports itself through other crates");
            if seen.insert(next) {
                open.extend(&imports[next]);
            }
        }
    }
}
