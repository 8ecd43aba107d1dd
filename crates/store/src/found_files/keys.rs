//! The names of objects, matched as paths are: by folder, by pattern, without hidden names.

use std::path::Path;

use super::{is_left_out, matches as matches_name};
use crate::error::{Error, Kind};
use crate::location::ObjectUrl;

/// Whether a key has the extension of Parquet files.
pub fn is_parquet(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
}

/// The folder of a pattern up to its first part that is one.
pub fn literal_folder(pattern: &str) -> &str {
    let first = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    pattern.get(..first).and_then(|start| start.rfind('/')).map_or("", |end| &pattern[..end])
}

/// The name of the object that marks a folder until a run has sent all of its objects. Walks skip it.
pub const UNFINISHED: &str = "_unfinished_by_sawmill_convert";

/// Checks that no selected key is below a folder that is marked as unfinished.
///
/// # Errors
///
/// A key is below an unfinished folder: some objects may be missing, others may be an earlier run's.
pub fn refuse_unfinished<'a>(
    url: &ObjectUrl,
    listed: impl Iterator<Item = &'a str>,
    selected: &[&str],
) -> Result<(), Error> {
    let folders = listed.filter_map(|key| key.strip_suffix(UNFINISHED));
    let mut folders = folders.filter(|folder| folder.is_empty() || folder.ends_with('/'));
    let Some(folder) = folders.find(|folder| selected.iter().any(|key| key.starts_with(folder))) else {
        return Ok(());
    };
    let what = "the folder is unfinished: a convert into it was interrupted, or is under way";
    Err(Error::new(Kind::Unavailable, what).at(url.sibling(folder).to_string()).advise(
        "wait until it is done, or run the same convert again; to read what is there, name the objects",
    ))
}

/// The objects that a folder or a pattern selects, among all listed ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundKeys<'a> {
    /// Parquet files, and keys that the pattern matches directly.
    pub files: Vec<&'a str>,
    /// Others below a folder.
    pub others: Vec<&'a str>,
    /// How many `.parquet` files were skipped because of their names.
    pub left_out: usize,
}

impl<'a> FoundKeys<'a> {
    /// Finds the keys below a folder.
    pub fn below(folder: &str, keys: impl Iterator<Item = &'a str>) -> Self {
        let folder = folder.trim_end_matches('/');
        let mut found = Self::default();
        for key in keys {
            let below = match folder {
                "" => Some(key),
                folder => key.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
            };
            match below.map(|below| below.split('/').all(is_shown)) {
                Some(true) => found.add(key),
                Some(false) => found.left_out += usize::from(is_parquet(key)),
                None => {}
            }
        }
        found
    }

    /// Finds the keys that match a pattern, and keys in folders that match it.
    pub fn matching(pattern: &str, keys: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for key in keys {
            match matches(pattern, key) {
                Some(Match::Itself) => found.files.push(key),
                Some(Match::Below) => found.add(key),
                None => {}
            }
        }
        found
    }

    fn add(&mut self, key: &'a str) {
        match is_parquet(key) {
            true => self.files.push(key),
            false => self.others.push(key),
        }
    }
}

fn is_shown(name: &str) -> bool {
    !is_left_out(name.as_ref())
}

/// How a key matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Itself,
    /// A folder of its name matches.
    Below,
}

fn matches(pattern: &str, key: &str) -> Option<Match> {
    let parts: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    let names: Vec<&str> = key.split('/').collect();
    // How much of the pattern is matched by the names so far, for each way to match it.
    let mut reached = closure(&parts, vec![0]);
    let mut itself = false;
    for (at, name) in names.iter().enumerate() {
        let mut next = Vec::new();
        for part in reached {
            match parts.get(part) {
                Some(&"**") if is_shown(name) && at + 1 < names.len() => next.push(part),
                Some(&"**") => {}
                Some(pattern) if matches_name(pattern, name) => {
                    itself |= at + 1 == names.len() && part + 1 == parts.len();
                    next.push(part + 1);
                }
                Some(_) => {}
                // The pattern has matched a folder.
                None if is_shown(name) => next.push(part),
                None => {}
            }
        }
        reached = closure(&parts, next);
    }
    let is_match = reached.contains(&parts.len());
    is_match.then_some(if itself { Match::Itself } else { Match::Below })
}

/// The places in a pattern, and the place after each `**` among them, which may match no folder.
fn closure(parts: &[&str], mut places: Vec<usize>) -> Vec<usize> {
    let mut at = 0;
    while let Some(&place) = places.get(at) {
        if parts.get(place) == Some(&"**") {
            places.push(place + 1);
        }
        at += 1;
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Location;

    #[test]
    fn keys_match_patterns_as_paths_do() {
        let found = |pattern: &str, key| !FoundKeys::matching(pattern, std::iter::once(key)).files.is_empty();
        for (pattern, key) in [
            ("a/*.parquet", "a/b.parquet"),
            ("a/**/*.parquet", "a/b.parquet"),
            ("a/**/*.parquet", "a/x/y/b.parquet"),
            ("a/year=*", "a/year=2020/month=1/b.parquet"),
            ("a/[bc]*", "a/bb.csv"),
            ("**/_temporary/**/*", "a/_temporary/0/b.parquet"),
        ] {
            assert!(found(pattern, key), "{pattern} {key}");
        }
        for (pattern, key) in [
            ("a/*.parquet", "a/x/b.parquet"),
            ("a/*.parquet", "b/b.parquet"),
            ("a/**/*.parquet", "a/_temporary/b.parquet"),
            ("a/year=*", "a/year=2020/_x/b.parquet"),
            ("a/year=*", "a/year=2020/b.csv"),
            ("a/*", "a"),
        ] {
            assert!(!found(pattern, key), "{pattern} {key}");
        }
        assert_eq!(literal_folder("a/b/c*/d"), "a/b");
        assert_eq!(literal_folder("c*/d"), "");
    }

    #[test]
    fn objects_below_a_folder_with_the_mark_of_an_unfinished_run_are_refused() {
        let Location::Object(url) = Location::new(Path::new("s3://b/out")).unwrap() else { unreachable!() };
        let refused = |keys: &[&str], selected: &[&str]| {
            refuse_unfinished(&url, keys.iter().copied(), selected).err().map(|error| error.to_string())
        };
        let mark = format!("out/k/{UNFINISHED}");
        let keys = ["out/k/part-00000.parquet", "out/k2/part-00000.parquet", &mark];
        let error = refused(&keys, &keys[..1]).unwrap();
        assert!(error.contains("the folder is unfinished") && error.contains("s3://b/out/k/"), "{error}");
        assert_eq!(refused(&keys, &keys[1..2]), None, "the mark is of another folder");
        assert_eq!(refused(&keys[..2], &keys[..2]), None);
        assert!(refused(&["a.parquet", UNFINISHED], &["a.parquet"]).is_some(), "a whole bucket");
    }

    #[test]
    fn a_folder_has_the_parquet_files_below_it_and_others() {
        let keys = ["a/b/c.parquet", "ab/c.parquet", "a/c.csv", "a/_temporary/c.parquet", "c.PARQUET"];
        let below = |folder: &str| FoundKeys::below(folder, keys.iter().copied());
        let found = below("a/");
        assert_eq!((found.files, found.others, found.left_out), (vec!["a/b/c.parquet"], vec!["a/c.csv"], 1));
        assert_eq!(below("").files, ["a/b/c.parquet", "ab/c.parquet", "c.PARQUET"]);
        let text = ["t/1.csv", "t/2.tsv", "t/3.txt"];
        let matching = |pattern: &str| FoundKeys::matching(pattern, text.into_iter());
        assert_eq!(matching("t/*.txt").files, ["t/3.txt"]);
        assert_eq!(matching("*").others, text);
    }
}
