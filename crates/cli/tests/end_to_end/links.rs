//! The documents refer to files and headings that exist, and the book has all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages_of(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// What a page refers to, but for addresses of other sites.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let text = headings.map(|heading| heading.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.map(|text| text.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut pages = pages_of(&root());
    pages.extend(pages_of(&root().join("docs")));
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    pages
        .extend(crates.map(|library| library.unwrap().path().join("README.md")).filter(|page| page.exists()));
    let mut broken = Vec::new();
    for page in &pages {
        let text = read(page);
        for target in links(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let has_anchor = || anchor.is_empty() || anchors(&read(&file)).contains(anchor);
            if !file.exists() || !has_anchor() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn the_book_has_every_page_and_no_link_leaves_it() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&read(&summary)).map(|name| docs.join(name)).collect();
    let mut pages = pages_of(&docs);
    pages.remove(&summary);
    assert_eq!(listed, pages);
    for page in pages {
        let text = read(&page);
        let outside: Vec<&str> = links(&text).filter(|target| target.starts_with("..")).collect();
        assert_eq!(outside, Vec::<&str>::new(), "{}", page.display());
    }
}
