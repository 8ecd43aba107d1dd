//! Identifies the files of a dataset in a directory.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sawmill_store::name_of_partial;

use crate::error::{Error, Result};
use crate::layout::rows::Part;
use crate::output::existing::Existing;
use crate::output::source_file::protect_sources;

/// The files of a dataset, or of a part of it: `NAME-00000.EXTENSION` and so on.
#[derive(Clone, Debug)]
pub struct DatasetFiles<'a> {
    /// Their directory.
    pub directory: &'a Path,
    /// The dataset's name, which their names begin with.
    pub name: &'a str,
    /// Their file extension, without the dot.
    pub extension: &'a str,
    /// The part. The whole dataset includes every number that an earlier run may have used.
    pub part: Part,
    /// The numbers of the part's files.
    pub files: Range<u32>,
}

impl DatasetFiles<'_> {
    /// The path of file `number`.
    pub fn path(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{}-{number:05}.{}", self.name, self.extension))
    }

    /// Makes room for new files: removes unfinished files of killed runs and, with [`Existing::Replace`], all
    /// files of an earlier run. The caller must hold their lock.
    ///
    /// # Errors
    /// Files of an earlier run exist and may not be replaced, one of them is among `sources`, or one cannot
    /// be removed.
    pub fn make_room(&self, existing: Existing, sources: &[PathBuf]) -> Result<()> {
        remove_leftovers(self.directory, &|name| self.has(name))?;
        if existing != Existing::Replace {
            return self.refuse();
        }
        let there = self.in_folder(self.directory)?;
        there.iter().try_for_each(|path| protect_sources(sources, path))?;
        there.iter().try_for_each(|path| remove("removing", path))
    }

    /// Refuses files of an earlier run.
    ///
    /// # Errors
    /// There are some, or their directory cannot be read.
    pub fn refuse(&self) -> Result<()> {
        match self.in_folder(self.directory)?.len() {
            0 => Ok(()),
            n => Err(self.in_the_way(n)),
        }
    }

    /// The error for `n` files of an earlier run.
    pub(crate) fn in_the_way(&self, n: usize) -> Error {
        let advice = match self.extension {
            "parquet" => {
                "pass --resume to keep complete files, --overwrite to replace all, or write somewhere else"
            }
            _ => "pass --overwrite to replace them, or write somewhere else",
        };
        let files = if n == 1 { "a file".to_owned() } else { format!("{n} files") };
        let what = format!("{files} of an earlier run of {}", self.name);
        Error::spec(what, self.directory.display().to_string(), advice)
    }

    /// Those in `folder`, sorted.
    pub(crate) fn in_folder(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut there = entries(folder, io::ErrorKind::NotFound)?;
        there.retain(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            // A symbolic link counts, whatever its target.
            name.is_some_and(|name| self.has(&name)) && (path.is_file() || path.is_symlink())
        });
        there.sort_unstable();
        Ok(there)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        let Some(number) = name
            .strip_prefix(self.name)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(self.extension))
            .and_then(|rest| rest.strip_suffix('.'))
        else {
            return false;
        };
        let digits = number.len() >= 5 && number.bytes().all(|b| b.is_ascii_digit());
        // The whole dataset replaces any number of earlier files; a part only replaces its own.
        digits && (self.part == Part::WHOLE || number.parse::<u32>().is_ok_and(|n| self.files.contains(&n)))
    }
}

/// The entries of a directory; none if reading it fails in the way that is `allowed`.
pub(crate) fn entries(directory: &Path, allowed: io::ErrorKind) -> Result<Vec<PathBuf>> {
    let failed = |e: io::Error| Error::io(&e, "reading the directory", directory, None);
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path()).map_err(failed)).collect(),
        Err(e) if e.kind() == allowed => Ok(Vec::new()),
        Err(e) => Err(failed(e)),
    }
}

/// Removes a file, if it exists. `doing` says so in an error.
pub(crate) fn remove(doing: &str, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(&e, doing, path, None)),
        _ => Ok(()),
    }
}

/// Removes the partial files of killed processes in `directory`, if `is_ours` accepts the final name. The
/// caller must hold the lock of these files.
///
/// # Errors
/// The directory cannot be read, or a file cannot be removed.
pub(crate) fn remove_leftovers(directory: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<()> {
    // A directory may be writable but not readable.
    for path in entries(directory, io::ErrorKind::PermissionDenied)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name_of_partial(&name).is_some_and(is_ours) {
            remove("removing the partial file of a killed process", &path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sawmill_store::partial_name;

    use super::*;

    #[test]
    fn partial_files_of_a_killed_process_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (ours, other) = (partial_name(&at("x.parquet")), partial_name(&at("y.parquet")));
        for path in [&ours, &other, &at("x.parquet")] {
            fs::write(path, b"half").unwrap();
        }
        remove_leftovers(dir.path(), &|name| name == "x.parquet").unwrap();
        assert!(!ours.exists() && other.exists() && at("x.parquet").exists());
    }

    fn files<'a>(directory: &'a Path, part: &str, files: Range<u32>) -> DatasetFiles<'a> {
        let part = part.parse().unwrap();
        DatasetFiles { directory, name: "trips", extension: "parquet", part, files }
    }

    #[test]
    fn only_files_of_the_dataset_and_the_part_are_recognised() {
        let whole = files(Path::new("."), "1/1", 0..4);
        for name in ["trips-00000.parquet", "trips-00003.parquet", "trips-00099.parquet"] {
            assert!(whole.has(name), "{name}");
        }
        for name in [
            "trips.parquet",
            "trips-1.parquet",
            "trips-0000x.parquet",
            "old-trips-00000.parquet",
            "trips-00000.parquet.1-2-3.partial",
            "trips-00000.csv",
        ] {
            assert!(!whole.has(name), "{name}");
        }
        let part = files(Path::new("."), "2/2", 2..4);
        assert!(part.has("trips-00002.parquet") && !part.has("trips-00001.parquet"));
    }

    #[test]
    fn additional_files_of_an_earlier_run_are_refused_or_replaced_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["trips-00007.parquet", "trips-00001.parquet.1-2-3.partial", "other-00000.parquet"] {
            fs::write(at(name), b"old").unwrap();
        }
        let whole = files(dir.path(), "1/1", 0..2);
        let error = whole.make_room(Existing::Refuse, &[]).unwrap_err().to_string();
        assert!(error.contains("a file of an earlier run of trips"), "{error}");
        let error = whole.make_room(Existing::Replace, &[at("trips-00007.parquet")]).unwrap_err();
        assert!(error.to_string().contains("would be replaced"), "{error}");
        files(dir.path(), "1/2", 0..1).make_room(Existing::Refuse, &[]).unwrap();
        whole.make_room(Existing::Replace, &[]).unwrap();
        assert_eq!(entries(dir.path(), io::ErrorKind::NotFound).unwrap(), [at("other-00000.parquet")]);
    }
}
