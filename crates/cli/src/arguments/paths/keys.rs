//! The names of objects, matched as paths are: by folder, by pattern, without hidden names.

use std::path::Path;

use super::{globs, walk};

/// Whether a key contains characters that only patterns have.
pub(crate) fn is_pattern(key: &str) -> bool {
    globs::is_pattern(Path::new(key))
}

/// Whether a key has the extension of Parquet files.
pub(crate) fn is_parquet(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
}

/// The folder of a pattern up to its first part that is one.
pub(crate) fn literal_folder(pattern: &str) -> &str {
    let first = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    pattern.get(..first).and_then(|start| start.rfind('/')).map_or("", |end| &pattern[..end])
}

/// Whether `key` is a wanted file below `folder`. Counts those that are skipped because of their names.
pub(crate) fn is_below(
    folder: &str,
    key: &str,
    is_wanted: impl Fn(&str) -> bool,
    left_out: &mut usize,
) -> bool {
    let folder = folder.trim_end_matches('/');
    let below = if folder.is_empty() {
        Some(key)
    } else {
        key.strip_prefix(folder).and_then(|k| k.strip_prefix('/'))
    };
    let Some(below) = below.filter(|below| is_wanted(below)) else { return false };
    let is_shown = below.split('/').all(is_shown);
    *left_out += usize::from(!is_shown);
    is_shown
}

fn is_shown(name: &str) -> bool {
    !walk::is_left_out(name.as_ref())
}

/// Whether `key` matches a pattern, or is a Parquet file in a folder that does.
pub(crate) fn matches(pattern: &str, key: &str) -> bool {
    let parts: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    let names: Vec<&str> = key.split('/').collect();
    // How much of the pattern is matched by the names so far, for each way to match it.
    let mut reached = closure(&parts, vec![0]);
    for (at, name) in names.iter().enumerate() {
        let mut next = Vec::new();
        for part in reached {
            match parts.get(part) {
                Some(&"**") if is_shown(name) && at + 1 < names.len() => next.push(part),
                Some(&"**") => {}
                Some(pattern) if globs::matches(pattern, name) => next.push(part + 1),
                Some(_) => {}
                // The pattern has matched a folder.
                None if is_shown(name) && is_parquet(key) => next.push(part),
                None => {}
            }
        }
        reached = closure(&parts, next);
    }
    reached.contains(&parts.len())
}

/// The places in a pattern, and those after each `**` among them, which may stand for no folder.
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

    #[test]
    fn keys_match_patterns_as_paths_do() {
        for (pattern, key) in [
            ("a/*.parquet", "a/b.parquet"),
            ("a/**/*.parquet", "a/b.parquet"),
            ("a/**/*.parquet", "a/x/y/b.parquet"),
            ("a/year=*", "a/year=2020/month=1/b.parquet"),
            ("a/[bc]*", "a/bb.csv"),
            ("**/_temporary/**/*", "a/_temporary/0/b.parquet"),
        ] {
            assert!(matches(pattern, key), "{pattern} {key}");
        }
        for (pattern, key) in [
            ("a/*.parquet", "a/x/b.parquet"),
            ("a/*.parquet", "b/b.parquet"),
            ("a/**/*.parquet", "a/_temporary/b.parquet"),
            ("a/year=*", "a/year=2020/_x/b.parquet"),
            ("a/year=*", "a/year=2020/b.csv"),
            ("a/*", "a"),
        ] {
            assert!(!matches(pattern, key), "{pattern} {key}");
        }
        assert_eq!(literal_folder("a/b/c*/d"), "a/b");
        assert_eq!(literal_folder("c*/d"), "");
    }

    #[test]
    fn a_folder_has_the_parquet_files_below_it() {
        let mut left_out = 0;
        assert!(is_below("a/", "a/b/c.parquet", is_parquet, &mut left_out));
        assert!(is_below("", "c.PARQUET", is_parquet, &mut left_out));
        assert!(!is_below("a", "ab/c.parquet", is_parquet, &mut left_out));
        assert!(!is_below("a", "a/c.csv", is_parquet, &mut left_out));
        assert_eq!(left_out, 0);
        assert!(!is_below("a", "a/_temporary/c.parquet", is_parquet, &mut left_out));
        assert_eq!(left_out, 1);
    }
}
