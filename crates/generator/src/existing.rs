//! What an earlier run left in a directory, and what becomes of it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::content_sum::{ContentSum, RunningSum};
use crate::error::Error;
use crate::manifest::{Manifest, ManifestFile};
use crate::output::dataset_files::{DatasetFiles, entries, remove};
use crate::output::directories;
use crate::output::partial::remove_leftovers;
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
    pub files: DatasetFiles<'a>,
    /// The column whose values are folders.
    pub partition_by: Option<&'a str>,
}

impl Directory<'_> {
    pub(crate) fn manifest(&self) -> PathBuf {
        self.path.join(Manifest::file_name(self.files.part))
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
        self.remove_leftovers()?;
        let there = self.files_there()?;
        match job.existing {
            // A manifest alone speaks of nothing.
            Existing::Refuse if !there.is_empty() => Err(self.files.in_the_way(
                there.len(),
                "pass --resume to keep what is whole, --overwrite to replace all, or write somewhere else",
            )),
            Existing::Refuse => Ok(Vec::new()),
            Existing::Replace => {
                there.iter().try_for_each(|path| protect_sources(&job.sources, path))?;
                // The manifest first: it must not speak of files that are gone.
                remove(&self.manifest())?;
                let synced = directories::sync(self.path);
                synced.map_err(|e| Error::io(&e, "syncing the directory", self.path, None))?;
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
            if !there.is_empty() {
                let what = format!("files of {} without a manifest", self.files.name);
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
            let mut all = self.files.files.contains(&number);
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
        Ok(sum_of_file(&path, check)? == file.sum)
    }

    /// Removes the partial files that killed processes left.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let manifest = Manifest::file_name(self.files.part);
        let is_ours = |name: &str| name == manifest || self.files.has(name);
        self.folders()?.iter().try_for_each(|folder| remove_leftovers(folder, &is_ours))
    }

    /// The folders that hold files of the dataset.
    fn folders(&self) -> Result<Vec<PathBuf>, Error> {
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
        Ok(folders)
    }

    /// The files of this part of the dataset that are there.
    fn files_there(&self) -> Result<Vec<PathBuf>, Error> {
        let mut there = Vec::new();
        for folder in self.folders()? {
            there.extend(self.files.in_folder(&folder)?);
        }
        there.sort_unstable();
        Ok(there)
    }
}

/// The sum of the bytes of the file at `path`.
///
/// # Errors
/// When it cannot be read, or `check` says so.
pub(crate) fn sum_of_file(path: &Path, check: &dyn Fn() -> Result<(), Error>) -> Result<ContentSum, Error> {
    let failed = |e: std::io::Error| Error::io(&e, "reading", path, None);
    let mut open = File::open(path).map_err(failed)?;
    let mut sum = RunningSum::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        check()?;
        match open.read(&mut buffer).map_err(failed)? {
            0 => return Ok(sum.sum()),
            n => sum.update(&buffer[..n]),
        }
    }
}

/// Decides about the single file at `path`, where there is one.
///
/// # Errors
/// When it is there and may not be replaced.
pub(crate) fn settle_file(path: &Path, job: &Job<'_>) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_leftovers(directories::directory_of(path), &|leftover| leftover == name)?;
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
