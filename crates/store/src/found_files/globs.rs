//! Patterns of file names: the names of thousands of files do not fit on a command line, and not every shell has
//! `**`.
//!
//! Why not `globset`: it answers whether a path matches. This walk opens only the directories that can hold a
//! match, and skips hidden names as `walk` does.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::found_files::walk::{directories, entries, is_left_out};

/// Whether a path contains characters that only patterns have.
pub fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

/// The paths that match a pattern, in the order of their names.
///
/// In a name, `*` matches any characters, `?` one, `[a-z]` one of these and `[!a-z]` one of the others; `**`
/// as a whole name matches any number of directories. Names that start with `.` or `_` match only patterns
/// that start so. `**` does not follow links to directories.
///
/// # Errors
///
/// A directory cannot be read.
pub fn matching(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let parts: Vec<Component<'_>> = pattern.components().collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let name = match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        };
        let mut next = Vec::new();
        for path in found {
            match name {
                Some("**") => directories(&path, &mut next)?,
                Some(name) if is_pattern(Path::new(name)) => {
                    for entry in entries(&path)? {
                        // A name that is not UTF-8 cannot match a pattern, which is.
                        let is_found = entry.name().to_str().is_some_and(|entry| matches(name, entry));
                        if is_found && (last || entry.is_dir) {
                            next.push(entry.path);
                        }
                    }
                }
                _ => {
                    let path = path.join(part);
                    if path.as_os_str().is_empty() || path.symlink_metadata().is_ok() {
                        next.push(path);
                    }
                }
            }
        }
        found = next;
    }
    // A second `**` finds a directory's files again.
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether a name matches a pattern of one name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let same_start = name.chars().next() == pattern.chars().next();
    if is_left_out(name.as_ref()) && !same_start {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if the text after the last star does not match: the star takes one more character.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() || p < pattern.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n + 1));
                p += 1;
                continue;
            }
            Some('?') if n < name.len() => Some(p + 1),
            Some('[') if n < name.len() => class(&pattern[p..], name[n]).map(|len| p + len),
            Some(c) if name.get(n) == Some(c) => Some(p + 1),
            _ => None,
        };
        match (step, retry) {
            (Some(after), _) => (p, n) = (after, n + 1),
            (None, Some((star, from))) if from <= name.len() => {
                (p, n) = (star + 1, from);
                retry = Some((star, from + 1));
            }
            _ => return false,
        }
    }
    true
}

/// The length of the class at the start of `pattern`, if `c` is in it. A bracket that is not closed matches
/// itself.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let (start, negated) = match pattern.get(1) {
        Some('!' | '^') => (2, true),
        _ => (1, false),
    };
    // A closing bracket at the start of a class is one of its characters.
    let Some(end) = pattern.iter().skip(start + 1).position(|&c| c == ']').map(|at| at + start + 1) else {
        return (c == '[').then_some(1);
    };
    let (mut at, mut within) = (start, false);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            within |= (pattern[at]..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            within |= pattern[at] == c;
            at += 1;
        }
    }
    (within != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, name) in [
            ("*.parquet", "a.parquet"),
            ("part-?-*", "part-1-"),
            ("*a*b", "xaxxb"),
            ("[a-c]x[!0-9]", "bxy"),
            ("[]]", "]"),
            ("[x", "[x"),
            ("*", "日本"),
            (".*", ".hidden"),
            ("_t*", "_temporary"),
            ("*", "_day=5"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.parquet", "a.parquets"),
            ("?", ""),
            ("[a-c]", "d"),
            ("[!a-c]", "a"),
            ("*", ".hidden"),
            ("*", "_temporary"),
            ("?temporary", "_temporary"),
            ("a", "ab"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // Many stars do not take exponential time.
        assert!(!matches(&"*a".repeat(40), &"a".repeat(39)));
    }

    #[test]
    fn a_pattern_searches_only_the_directories_that_it_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "a.parquet",
            "x/b.parquet",
            "x/y/c.parquet",
            "x/y/d.csv",
            ".hidden/e.parquet",
            "_temporary/0/a.parquet",
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let paths = matching(&dir.path().join(pattern)).unwrap();
            let below = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
            paths.iter().map(below).collect()
        };
        assert_eq!(found("*.parquet"), ["a.parquet"]);
        assert_eq!(found("**/*.parquet"), ["a.parquet", "x/b.parquet", "x/y/c.parquet"]);
        assert_eq!(found("**/**/c.*"), ["x/y/c.parquet"]);
        assert_eq!(found("x/*/?.c*"), ["x/y/d.csv"]);
        assert_eq!(found("[x]/b.parquet"), ["x/b.parquet"]);
        assert_eq!(found("**/_temporary/**/*.parquet"), ["_temporary/0/a.parquet"]);
        assert_eq!(found("nothing/*"), [""; 0]);
    }
}
