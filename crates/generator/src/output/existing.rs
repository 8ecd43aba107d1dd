//! What an earlier run left in a directory, and what becomes of it.

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
    /// Those that are whole, by the manifests and their sums, are kept, also where they were made as parts;
    /// the others are made again. It is an error if a manifest is that of another spec, seed or layout.
    Resume,
}

/// What a job does with the files of an earlier run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlierFiles<'a> {
    pub existing: Existing,
    /// Files that the dataset was taken from: none of them is replaced or removed.
    pub sources: &'a [PathBuf],
    /// Counts the rows of files that stay, as they are found whole.
    pub kept_rows: Option<&'a AtomicU64>,
}

/// A directory that files go to.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    pub path: &'a Path,
    pub files: DatasetFiles<'a>,
    pub layout: &'a Layout,
    /// The column whose values are folders.
    pub partition_by: Option<&'a str>,
}

/// What was decided about a directory. Nothing is removed before the new manifest is there.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Files that stay and belong to the new manifest.
    pub kept: Vec<ManifestFile>,
    /// Manifests that the new one takes the place of.
    superseded: Vec<PathBuf>,
    /// Manifests of other parts, without the files that are made again.
    reduced: Vec<(PathBuf, Manifest)>,
    /// Files that do not stay.
    removed: Vec<PathBuf>,
    /// What a person should know.
    pub notice: Option<String>,
}

impl Settled {
    /// Removes what does not stay. The new manifest is on disk: no manifest speaks of files that are gone,
    /// not even after a crash in between.
    pub(crate) fn make_room(&self, directory: &Path) -> Result<(), Error> {
        self.superseded.iter().try_for_each(|path| remove(path))?;
        self.reduced.iter().try_for_each(|(path, manifest)| manifest.write(path))?;
        directories::sync(directory).map_err(|e| Error::io(&e, "syncing the directory", directory, None))?;
        for path in &self.removed {
            remove(path)?;
            if let Some(folder) = path.parent().filter(|folder| *folder != directory) {
                // A folder that has other files stays.
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

    /// Decides about what is there.
    ///
    /// # Errors
    /// When files are in the way, do not fit, cannot be read or removed, or `check` says so.
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
            // A manifest alone speaks of nothing.
            Existing::Refuse => {
                let advice = "pass --resume to keep what is whole, --overwrite to replace all, or write somewhere else";
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

    /// Refuses to make a part beside parts of another spec, seed or layout: together they would be the
    /// files of no dataset.
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
    /// When a manifest is that of another spec, seed or layout.
    fn compare(&self, then: &Manifest, now: &Manifest, path: &Path) -> Result<(), Error> {
        let differences = then.differences(now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(Error::spec(
            format!("the files there are of another run: {}", differences.join("; ")),
            path.display().to_string(),
            match self.files.part {
                Part::WHOLE => "give the same options, or pass --overwrite to replace them",
                _ => "give the same options, or write somewhere else",
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
        // The files of several partitions that were made together stay together or not at all.
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

    /// The manifest of another part without files that this run makes again; `None` where it has none.
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

    /// Whether the files of a number are there with the bytes that the manifest says, and are all of its
    /// rows.
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

    /// Removes the partial files that killed processes left.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let manifest = Manifest::file_name(self.files.name, self.files.part);
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

    /// The files of this part of the dataset that are there: by their names, and those in folders of
    /// another column by the manifests.
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

    /// The path of a file that a manifest names, if it is one of ours: in the directory, or one folder
    /// below.
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

/// The sum of the bytes of the file at `path`.
///
/// # Errors
/// When it cannot be read, or `check` says so.
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

/// Decides about the single file at `path`, where there is one.
///
/// # Errors
/// When it is there and may not be replaced.
pub(crate) fn settle_file(path: &Path, earlier: EarlierFiles<'_>) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_leftovers(directories::directory_of(path), &|leftover| leftover == name)?;
    // A symbolic link counts, wherever it leads.
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    protect_sources(earlier.sources, path)?;
    if earlier.existing == Existing::Replace {
        return Ok(());
    }
    let what = "the file is there already";
    let advice = "pass --overwrite to replace it, or write somewhere else";
    Err(Error::spec(what, path.display().to_string(), advice))
}
