//! Walks directories, skipping names that start with `_` or `.`: by the convention of Spark and Hive these
//! are unfinished output (`_temporary`), markers (`_SUCCESS`) and checksums (`.part-0.parquet.crc`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a walk skips a name. It does not skip `_day=5`, the folder of a column called `_day`.
pub fn is_left_out(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") || (name.starts_with(b"_") && !name.contains(&b'='))
}

/// The files that a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// Other files that were asked for.
    pub others: Vec<PathBuf>,
    /// How many directories and `.parquet` files it skipped because of their names.
    pub left_out: usize,
}

/// An entry of a directory.
pub(super) struct Entry {
    pub path: PathBuf,
    /// A directory or a link to one.
    pub is_dir: bool,
    pub is_link: bool,
}

impl Entry {
    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    fn is_parquet(&self) -> bool {
        !self.is_dir && self.path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"))
    }
}

/// The entries of a directory in the order of their names; empty if the path is not a directory.
///
/// # Errors
///
/// The directory cannot be read.
pub(super) fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let shown = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !shown.is_dir() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(shown)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_dir = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
        entries.push(Entry { path: directory.join(entry.file_name()), is_dir, is_link: kind.is_symlink() });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Adds the `.parquet` files in a directory and below it to `found`, and the other files that `is_wanted`. Links to
/// directories are not followed.
///
/// # Errors
///
/// A directory that cannot be read, and why.
pub fn parquet_files(
    directory: &Path,
    is_wanted: fn(&Path) -> bool,
    found: &mut Found,
) -> Result<(), (PathBuf, io::Error)> {
    for entry in entries(directory).map_err(|error| (directory.to_owned(), error))? {
        let is_walked = entry.is_dir && !entry.is_link;
        if (is_walked || entry.is_parquet()) && is_left_out(entry.name()) {
            found.left_out += 1;
        } else if is_walked {
            parquet_files(&entry.path, is_wanted, found)?;
        } else if entry.is_parquet() {
            found.files.push(entry.path);
        } else if !entry.is_dir && is_wanted(&entry.path) && !is_left_out(entry.name()) {
            found.others.push(entry.path);
        }
    }
    Ok(())
}

/// A directory and all directories below it.
///
/// # Errors
///
/// A directory cannot be read.
pub(super) fn directories(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in entries(&directory)?.into_iter().rev() {
            if entry.is_dir && !entry.is_link && !is_left_out(entry.name()) {
                open.push(entry.path);
            }
        }
        found.push(directory);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_output_markers_and_checksums_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "part-0.parquet",
            "_SUCCESS",
            "_metadata",
            ".part-0.parquet.crc",
            "_temporary/0/task_1/part-0.parquet",
            ".staging/part-1.parquet",
            "_part-2.parquet",
            "a/b.PARQUET",
            "d.csv",
            "_day=5/c.parquet",
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let is_csv = |path: &Path| path.extension().is_some_and(|extension| extension == "csv");
        let mut found = Found::default();
        parquet_files(dir.path(), is_csv, &mut found).unwrap();
        let names = ["_day=5/c.parquet", "a/b.PARQUET", "part-0.parquet"];
        assert_eq!(found.files, names.map(|name| dir.path().join(name)));
        assert_eq!(found.others, [dir.path().join("d.csv")]);
        assert_eq!(found.left_out, 3);
        // A directory that the user names is walked, whatever its name.
        let mut found = Found::default();
        parquet_files(&dir.path().join("_temporary"), is_csv, &mut found).unwrap();
        assert_eq!(found.files.len(), 1);
    }
}
