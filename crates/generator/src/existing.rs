//! What an earlier run left in a directory, and what becomes of it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::content_sum::RunningSum;
use crate::error::Error;
use crate::layout::Part;
use crate::manifest::{Manifest, ManifestFile};
use crate::source_file::protect_sources;
use crate::write::Job;

/// What becomes of the files of an earlier run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// They are an error.
    #[default]
    Refuse,
    /// They are removed before the first file is made; a single file is replaced by the new one once
    /// that is whole.
    Replace,
    /// Those that are whole, by the manifest and their sums, are kept; the others are made again. It is
    /// an error if the manifest is that of another spec, seed or layout.
    Resume,
}

/// A directory that files go to.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    pub path: &'a Path,
    /// The dataset's name, with which its files begin.
    pub name: &'a str,
    /// The column whose values are folders.
    pub partition_by: Option<&'a str>,
    pub part: Part,
    /// The numbers of the part's files.
    pub files: std::ops::Range<u32>,
}

impl Directory<'_> {
    pub(crate) fn manifest(&self) -> PathBuf {
        self.path.join(Manifest::file_name(self.part))
    }

    /// Decides about what is there, and returns the files that stay.
    ///
    /// # Errors
    /// When files are in the way, do not fit, cannot be read or removed, or `check` says so.
    pub(crate) fn settle(
        &self,
        job: &Job<'_>,
        now: &Manifest,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Vec<ManifestFile>, Error> {
        let there = self.files_there()?;
        let whole = there.iter().filter(|path| path.extension().is_some_and(|e| e != "partial"));
        // A manifest alone speaks of nothing.
        let in_the_way = whole.count();
        match job.existing {
            Existing::Refuse if in_the_way > 0 => Err(Error::spec(
                format!("{} of an earlier run of {}", counted(in_the_way), self.name),
                self.path.display().to_string(),
                "pass --resume to keep what is whole, --overwrite to replace all, or write somewhere else",
            )),
            Existing::Refuse => Ok(Vec::new()),
            Existing::Replace => {
                there.iter().try_for_each(|path| protect_sources(&job.sources, path))?;
                // The manifest first: it must not speak of files that are gone.
                remove(&self.manifest())?;
                there.iter().try_for_each(|path| remove(path))?;
                Ok(Vec::new())
            }
            Existing::Resume => self.resume(there, now, job.kept_rows, check),
        }
    }

    fn resume(
        &self,
        there: Vec<PathBuf>,
        now: &Manifest,
        kept_rows: Option<&AtomicU64>,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Vec<ManifestFile>, Error> {
        let place = self.path.display().to_string();
        let Some(then) = Manifest::read(&self.manifest())? else {
            if there.iter().any(|path| path.extension().is_some_and(|e| e != "partial")) {
                let what = format!("files of {} without a manifest", self.name);
                return Err(Error::spec(what, place, "pass --overwrite to replace them"));
            }
            return Ok(Vec::new());
        };
        let differences = then.differences(now);
        if !differences.is_empty() {
            return Err(Error::spec(
                format!("the files there are of another run: {}", differences.join("; ")),
                self.manifest().display().to_string(),
                "give the same options, or pass --overwrite to replace them",
            ));
        }
        // The files of several partitions that were made together stay together or not at all.
        let mut kept: BTreeMap<u32, Vec<ManifestFile>> = BTreeMap::new();
        for file in then.files {
            kept.entry(file.file).or_default().push(file);
        }
        let mut whole = Vec::new();
        for (number, files) in kept {
            let mut all = self.files.contains(&number);
            for file in &files {
                all = all && self.is_whole(file, check)?;
            }
            if all {
                if let Some(counter) = kept_rows {
                    counter.fetch_add(files.iter().map(|file| file.rows).sum(), Relaxed);
                }
                whole.extend(files);
            }
        }
        let stay: HashSet<PathBuf> = whole.iter().map(|file| self.path.join(&file.name)).collect();
        there.iter().filter(|path| !stay.contains(*path)).try_for_each(|path| remove(path))?;
        Ok(whole)
    }

    /// Whether a file has the bytes that the manifest says.
    fn is_whole(&self, file: &ManifestFile, check: &dyn Fn() -> Result<(), Error>) -> Result<bool, Error> {
        let path = self.path.join(&file.name);
        match fs::metadata(&path) {
            Ok(there) if there.is_file() && there.len() == file.bytes => {}
            _ => return Ok(false),
        }
        let failed = |e: std::io::Error| Error::io(&e, "reading", &path, None);
        let mut open = File::open(&path).map_err(failed)?;
        let mut sum = RunningSum::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            check()?;
            match open.read(&mut buffer).map_err(failed)? {
                0 => return Ok(sum.sum() == file.sum),
                n => sum.update(&buffer[..n]),
            }
        }
    }

    /// The files of this part of the dataset that are there, whole or partial.
    fn files_there(&self) -> Result<Vec<PathBuf>, Error> {
        let mut there = Vec::new();
        let mut folders = vec![self.path.to_owned()];
        if let Some(column) = self.partition_by {
            let begin = format!("{column}=");
            for path in entries(self.path)? {
                if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&begin)) && path.is_dir()
                {
                    folders.push(path);
                }
            }
        }
        for folder in folders {
            for path in entries(&folder)? {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                if name.is_some_and(|name| self.is_ours(&name)) && path.is_file() {
                    there.push(path);
                }
            }
        }
        there.sort_unstable();
        Ok(there)
    }

    /// Whether a name is that of a file of this part, whole or partial.
    fn is_ours(&self, name: &str) -> bool {
        let name = name.strip_suffix(".partial").unwrap_or(name);
        let Some(number) = name
            .strip_prefix(self.name)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(".parquet"))
        else {
            return false;
        };
        let digits = number.len() >= 5 && number.bytes().all(|b| b.is_ascii_digit());
        // The whole replaces whatever number of files an earlier run had; a part leaves others alone.
        digits && (self.part == Part::WHOLE || number.parse::<u32>().is_ok_and(|n| self.files.contains(&n)))
    }
}

/// Decides about the single file at `path`, where there is one.
///
/// # Errors
/// When it is there and may not be replaced.
pub(crate) fn settle_file(path: &Path, job: &Job<'_>) -> Result<(), Error> {
    // A symbolic link counts, wherever it leads.
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    protect_sources(&job.sources, path)?;
    if job.existing == Existing::Replace {
        return Ok(());
    }
    let what = "the file is there already";
    let advice = "pass --overwrite to replace it, or write somewhere else";
    Err(Error::spec(what, path.display().to_string(), advice))
}

fn counted(n: usize) -> String {
    if n == 1 { "a file".to_owned() } else { format!("{n} files") }
}

/// What is in a directory; nothing where there is none.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e: std::io::Error| Error::io(&e, "reading the directory", directory, None);
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path()).map_err(failed)).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(failed(e)),
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&e, "removing", path, None)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_the_dataset_and_of_the_part_are_ours() {
        let directory = |part: &str, files| Directory {
            path: Path::new("."),
            name: "trips",
            partition_by: None,
            part: part.parse().unwrap(),
            files,
        };
        let whole = directory("1/1", 0..4);
        for name in ["trips-00000.parquet", "trips-00003.parquet.partial", "trips-00099.parquet"] {
            assert!(whole.is_ours(name), "{name}");
        }
        for name in ["trips.parquet", "trips-1.parquet", "trips-0000x.parquet", "old-trips-00000.parquet"] {
            assert!(!whole.is_ours(name), "{name}");
        }
        let part = directory("2/2", 2..4);
        assert!(part.is_ours("trips-00002.parquet") && !part.is_ours("trips-00001.parquet"));
    }
}
