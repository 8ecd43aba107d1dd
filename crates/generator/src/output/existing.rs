//! The files of an earlier run in a directory, and what to do with them.

pub(crate) mod manifests;
mod parts;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::checksum::{Checksum, RunningSum};
use crate::error::Error;
use crate::layout::{Layout, Part};
use crate::output::dataset_files::{DatasetFiles, entries, remove};
use crate::output::existing::manifests::Found;
use crate::output::manifest::{Manifest, ManifestFile};
use crate::output::partial::remove_leftovers;
use crate::output::source_file::protect_sources;
use sawmill_store::directories;

/// What to do with the files of an earlier run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Fail if there are any.
    #[default]
    Refuse,
    /// Remove them before the first file is made. A single file is replaced when the new one is complete.
    Replace,
    /// Keep complete files, according to the manifests and checksums, including those made as parts, and make
    /// the others again. A manifest of another spec, seed or layout is an error.
    Resume,
}

/// What a job does with the files of an earlier run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlierFiles<'a> {
    pub existing: Existing,
    /// The files that the dataset was inferred from. They are never replaced or removed.
    pub sources: &'a [PathBuf],
    /// Counts the rows of complete files that are kept.
    pub kept_rows: Option<&'a AtomicU64>,
}

/// A directory to write files to.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    pub path: &'a Path,
    pub files: DatasetFiles<'a>,
    pub layout: &'a Layout,
    /// The partition column, whose values are folders.
    pub partition_by: Option<&'a str>,
}

/// The decision about a directory. No file is removed before the new manifest is written.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Files to keep, which belong to the new manifest.
    pub kept: Vec<ManifestFile>,
    /// Manifests that the new one replaces.
    superseded: Vec<PathBuf>,
    /// Manifests of other parts, without the files that this run makes again.
    reduced: Vec<(PathBuf, Manifest)>,
    /// Files to remove.
    removed: Vec<PathBuf>,
    /// A message for the user.
    pub notice: Option<String>,
}

impl Settled {
    /// Removes the files to remove. The new manifest is already on disk, so no manifest lists removed files,
    /// even after a crash in between.
    pub(crate) fn make_room(&self, directory: &Path) -> Result<(), Error> {
        self.superseded.iter().try_for_each(|path| remove(path))?;
        self.reduced.iter().try_for_each(|(path, manifest)| manifest.write(path))?;
        directories::sync(directory).map_err(|e| Error::io(&e, "syncing the directory", directory, None))?;
        for path in &self.removed {
            remove(path)?;
            if let Some(folder) = path.parent().filter(|folder| *folder != directory) {
                // A folder with other files stays.
                let _ = fs::remove_dir(folder);
            }
        }
        Ok(())
    }
}

impl Directory<'_> {
    pub(crate) fn manifest(&self) -> PathBuf {
        self.path.join(Manifest::file_name(self.files.name, self.files.part))
    }

    /// Decides what to do with existing files.
    ///
    /// # Errors
    /// Existing files may not be replaced, do not match, or cannot be read or removed, or `check` fails.
    pub(crate) fn settle(
        &self,
        earlier: EarlierFiles<'_>,
        now: &Manifest,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Settled, Error> {
        self.remove_leftovers()?;
        let found = manifests::find(self.path, self.files.name)?;
        let there = self.files_there(&found)?;
        let mut settled = match earlier.existing {
            Existing::Refuse if there.is_empty() => {
                self.refuse_other_parts(&found, now)?;
                Settled::default()
            }
            // A manifest without files does not prevent a run.
            Existing::Refuse => {
                let advice = "pass --resume to keep complete files, --overwrite to replace all, or write somewhere else";
                return Err(self.files.in_the_way(there.len(), advice));
            }
            Existing::Replace => {
                there.iter().try_for_each(|path| protect_sources(earlier.sources, path))?;
                Settled { removed: there, ..Settled::default() }
            }
            Existing::Resume => self.resume(&found, there, now, earlier.kept_rows, check)?,
        };
        let own = self.manifest();
        for found in found {
            if found.path == own {
                continue;
            }
            if found.part == self.files.part || self.files.part == Part::WHOLE {
                settled.superseded.push(found.path);
            } else if let Some(reduced) = self.reduced(&found, &settled.kept) {
                settled.reduced.push((found.path, reduced));
            }
        }
        Ok(settled)
    }

    /// Refuses to make a part next to parts of another spec, seed or layout, because together they would not
    /// be a dataset.
    fn refuse_other_parts(&self, found: &[Found], now: &Manifest) -> Result<(), Error> {
        let others = found.iter().filter(|found| found.part != self.files.part);
        for (path, other) in others.filter_map(|found| Some((&found.path, found.readable()?))) {
            let is_there = |file: &ManifestFile| self.path.join(&file.name).exists();
            if self.files.part != Part::WHOLE && other.files.iter().any(is_there) {
                self.compare(other, now, path)?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// The manifest is that of another spec, seed or layout.
    fn compare(&self, then: &Manifest, now: &Manifest, path: &Path) -> Result<(), Error> {
        let differences = then.differences(now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(Error::spec(
            format!("the existing files belong to another run: {}", differences.join("; ")),
            path.display().to_string(),
            match self.files.part {
                Part::WHOLE => "use the same options, or pass --overwrite to replace them",
                _ => "use the same options, or write somewhere else",
            },
        ))
    }

    fn resume(
        &self,
        found: &[Found],
        there: Vec<PathBuf>,
        now: &Manifest,
        kept_rows: Option<&AtomicU64>,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Settled, Error> {
        // Files of several partitions that were made together are kept together or not at all.
        let mut candidates: BTreeMap<u32, Vec<Vec<ManifestFile>>> = BTreeMap::new();
        for found in found {
            let manifest = found.manifest()?;
            self.compare(manifest, now, &found.path)?;
            let mut of_number: BTreeMap<u32, Vec<ManifestFile>> = BTreeMap::new();
            for file in manifest.files.iter().filter(|file| self.files.files.contains(&file.file)) {
                of_number.entry(file.file).or_default().push(file.clone());
            }
            for (number, files) in of_number {
                candidates.entry(number).or_default().push(files);
            }
        }
        if found.is_empty() && !there.is_empty() {
            let what = format!("files of {} without a manifest", self.files.name);
            let place = self.path.display().to_string();
            return Err(Error::spec(what, place, "pass --overwrite to replace them"));
        }
        let mut kept = Vec::new();
        for (number, candidates) in candidates {
            for files in candidates {
                if self.are_whole(number, &files, check)? {
                    if let Some(counter) = kept_rows {
                        counter.fetch_add(files.iter().map(|file| file.rows).sum(), Relaxed);
                    }
                    kept.extend(files);
                    break;
                }
            }
        }
        let stay: HashSet<PathBuf> = kept.iter().map(|file| self.path.join(&file.name)).collect();
        let removed = there.into_iter().filter(|path| !stay.contains(path)).collect();
        let notice = match self.files.part {
            Part::WHOLE => parts::described(found, &kept, self.layout.files),
            _ => None,
        };
        Ok(Settled { kept, removed, notice, ..Settled::default() })
    }

    /// The manifest of another part, without the files that this run makes again; `None` if it has no such
    /// files.
    fn reduced(&self, found: &Found, kept: &[ManifestFile]) -> Option<Manifest> {
        let manifest = found.readable()?;
        let stays = |file: &&ManifestFile| {
            !self.files.files.contains(&file.file) || kept.iter().any(|kept| kept.name == file.name)
        };
        let files: Vec<ManifestFile> = manifest.files.iter().filter(stays).cloned().collect();
        if files.len() == manifest.files.len() {
            return None;
        }
        let mut reduced = manifest.clone();
        reduced.set_files(files, false);
        Some(reduced)
    }

    /// Whether the files with a number exist with the bytes in the manifest, and contain all of its rows.
    fn are_whole(
        &self,
        number: u32,
        files: &[ManifestFile],
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let rows = self.layout.file_rows(number);
        if files.iter().map(|file| file.rows).sum::<u64>() != rows.end - rows.start {
            return Ok(false);
        }
        for file in files {
            let path = self.path.join(&file.name);
            match fs::metadata(&path) {
                Ok(there) if there.is_file() && there.len() == file.bytes => {}
                _ => return Ok(false),
            }
            if sum_of_file(&path, check)? != file.sum {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the partial files of killed processes.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let manifest = Manifest::file_name(self.files.name, self.files.part);
        let is_ours = |name: &str| name == manifest || self.files.has(name);
        self.folders()?.iter().try_for_each(|folder| remove_leftovers(folder, &is_ours))
    }

    /// The folders with files of the dataset.
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

    /// The existing files of this part of the dataset: by their names, and by the manifests for folders of
    /// another partition column.
    fn files_there(&self, found: &[Found]) -> Result<Vec<PathBuf>, Error> {
        let mut there = Vec::new();
        for folder in self.folders()? {
            there.extend(self.files.in_folder(&folder)?);
        }
        let listed = found.iter().filter_map(Found::readable).flat_map(|manifest| &manifest.files);
        there.extend(listed.filter_map(|file| self.listed(&file.name)).filter(|path| path.is_file()));
        there.sort_unstable();
        there.dedup();
        Ok(there)
    }

    /// The path of a file in a manifest; `None` unless it is in the directory or in a folder of it.
    fn listed(&self, name: &str) -> Option<PathBuf> {
        let parts: Vec<&str> = name.split('/').collect();
        let plain = |part: &str| {
            let mut components = Path::new(part).components();
            matches!(components.next(), Some(Component::Normal(_))) && components.next().is_none()
        };
        let ours = match parts.as_slice() {
            [file] => self.files.has(file),
            [folder, file] => plain(folder) && folder.contains('=') && self.files.has(file),
            _ => false,
        };
        ours.then(|| self.path.join(name))
    }
}

/// The checksum of the file at `path`.
///
/// # Errors
/// The file cannot be read, or `check` fails.
pub(crate) fn sum_of_file(path: &Path, check: &dyn Fn() -> Result<(), Error>) -> Result<Checksum, Error> {
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

/// Decides what to do with an existing single file at `path`.
///
/// # Errors
/// It exists and may not be replaced.
pub(crate) fn settle_file(path: &Path, earlier: EarlierFiles<'_>) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_leftovers(directories::directory_of(path), &|leftover| leftover == name)?;
    // A symbolic link counts, whatever its target.
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    protect_sources(earlier.sources, path)?;
    if earlier.existing == Existing::Replace {
        return Ok(());
    }
    let what = "the file already exists";
    let advice = "pass --overwrite to replace it, or write somewhere else";
    Err(Error::spec(what, path.display().to_string(), advice))
}
