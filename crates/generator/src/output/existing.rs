//! The files of an earlier run in a folder, and what to do with them.

pub(crate) mod manifests;
mod parts;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::layout::rows::{Layout, Part};
use crate::output::checksum::Checksum;
use crate::output::dataset_files::DatasetFiles;
use crate::output::existing::manifests::Found;
use crate::output::folder::Folder;
use crate::output::lock::{Patience, waiting};
use crate::output::manifest::{Manifest, ManifestFile};
use crate::output::process;

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
    /// Keep all files, which must be complete, and give them one manifest. A file that is missing or damaged is an
    /// error, and no file is made.
    Finish,
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

/// A folder to write the files of a dataset to.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    pub folder: &'a dyn Folder,
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
    superseded: Vec<String>,
    /// Manifests of other parts, without the files that this run makes again.
    reduced: Vec<(String, Manifest)>,
    /// Files to remove.
    removed: Vec<String>,
    /// The content sum of an earlier run that made the same rows.
    pub content_sum: Option<Checksum>,
    /// A message for the user.
    pub notice: Option<String>,
}

impl Settled {
    /// Removes the files to remove. The new manifest is already on disk, so no manifest lists removed files,
    /// even after a crash in between.
    pub(crate) fn make_room(&self, folder: &dyn Folder) -> Result<()> {
        self.superseded.iter().try_for_each(|name| folder.remove(name))?;
        self.reduced.iter().try_for_each(|(name, manifest)| manifest.write(folder, name))?;
        folder.sync("")?;
        self.removed.iter().try_for_each(|name| folder.remove(name))?;
        // The run syncs the folder itself, and those that get a file. In others a removed file would come back.
        let below = self.removed.iter().filter_map(|name| name.rsplit_once('/'));
        let below: BTreeSet<&str> = below.map(|(below, _)| below).collect();
        below.into_iter().try_for_each(|below| folder.sync(below))
    }
}

impl Directory<'_> {
    pub(crate) fn manifest(&self) -> String {
        Manifest::file_name(self.files.name, self.files.part)
    }

    /// Decides what to do with existing files.
    ///
    /// # Errors
    /// Existing files may not be replaced, do not match, or cannot be read or removed, or `check` fails.
    pub(crate) fn settle(
        &self,
        earlier: EarlierFiles<'_>,
        now: &Manifest,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Settled> {
        // A manifest is written before its files, so files are listed first: one that is written after the
        // manifests were read would seem to have none.
        let names = self.names_there()?;
        let found = manifests::find(self.folder, self.files.name, self.files.part)?;
        if earlier.existing == Existing::Refuse {
            self.refuse_other_runs(&found)?;
        }
        self.remove_leftovers()?;
        let there = self.files_there(names, &found)?;
        let mut settled = match earlier.existing {
            Existing::Refuse if there.is_empty() => {
                self.refuse_other_parts(&found, now)?;
                Settled::default()
            }
            // A manifest without files does not prevent a run.
            Existing::Refuse => return Err(self.files.in_the_way(there.len())),
            Existing::Replace => {
                there.iter().try_for_each(|name| self.folder.protect(earlier.sources, name))?;
                Settled { removed: there, ..Settled::default() }
            }
            Existing::Resume => self.resume(&found, there, now, earlier.kept_rows, check)?,
            Existing::Finish => {
                let resumed = self.resume(&found, there, now, earlier.kept_rows, check)?;
                self.refuse_missing(&found, &resumed.kept)?;
                Settled { notice: None, ..resumed }
            }
        };
        let own = self.manifest();
        for found in found {
            if found.name == own {
                continue;
            }
            if found.part == self.files.part || self.files.part == Part::WHOLE {
                settled.superseded.push(found.name);
            } else if let Some(reduced) = self.reduced(&found, &settled.kept) {
                settled.reduced.push((found.name, reduced));
            }
        }
        Ok(settled)
    }

    /// Waits for a run of this machine that writes the same files, in a folder without locks. A run of
    /// another machine cannot be seen to end; this one takes the folder over from it.
    pub(crate) fn wait_for_others(&self, patience: &Patience<'_>) -> Result<()> {
        if !patience.waits {
            return Ok(());
        }
        let mut reported = false;
        // A manifest that cannot be read is an error, or replaced, later on.
        while let Ok(Some(manifest)) = Manifest::read(self.folder, &self.manifest()) {
            let Some(run) = manifest.run else { break };
            let (place, other) = (self.folder.place(""), process::process_of(&run).to_owned());
            if !process::is_alive(&run) {
                (patience.notice)(&format!(
                    "{}: another run ({other}) has not ended; this one takes over from it",
                    place.display()
                ));
                break;
            }
            if !reported {
                (patience.notice)(&waiting(&place, &format!("another run ({other})")));
                reported = true;
            }
            std::thread::sleep(Duration::from_millis(500));
            if patience.cancel.load(Relaxed) {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }

    /// Refuses to disturb a run that has not ended, which only its manifest shows in a folder without locks.
    /// Different parts of the same division share no files.
    fn refuse_other_runs(&self, found: &[Found]) -> Result<()> {
        let share = |part: Part| part.parts() != self.files.part.parts() || part == self.files.part;
        let others = found.iter().filter(|found| share(found.part));
        match others.filter_map(|found| found.readable()?.run.as_deref()).next() {
            Some(run) => Err(process::not_ended(run, &self.folder.place(""))),
            None => Ok(()),
        }
    }

    /// Refuses to make a part next to parts of another spec, seed or layout, because together they would not
    /// be a dataset.
    fn refuse_other_parts(&self, found: &[Found], now: &Manifest) -> Result<()> {
        let others = found.iter().filter(|found| found.part != self.files.part);
        for (name, other) in others.filter_map(|found| Some((&found.name, found.readable()?))) {
            if self.files.part == Part::WHOLE {
                continue;
            }
            for file in &other.files {
                if self.folder.exists(&file.name)? {
                    self.compare(other, now, name)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// # Errors
    /// The manifest belongs to another spec, seed or layout.
    fn compare(&self, then: &Manifest, now: &Manifest, name: &str) -> Result<()> {
        let differences = then.differences(now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(Error::spec(
            format!("the existing files belong to another run: {}", differences.join("; ")),
            self.folder.place(name).display().to_string(),
            match self.files.part {
                Part::WHOLE => "use the same options, or pass --overwrite to replace them",
                _ => "use the same options, or write somewhere else",
            },
        ))
    }

    fn resume(
        &self,
        found: &[Found],
        there: Vec<String>,
        now: &Manifest,
        kept_rows: Option<&AtomicU64>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Settled> {
        // Files of several partitions that were made together are kept together or not at all.
        let mut candidates: BTreeMap<u32, Vec<Vec<ManifestFile>>> = BTreeMap::new();
        for found in found {
            let manifest = found.manifest()?;
            self.compare(manifest, now, &found.name)?;
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
            let place = self.folder.place("").display().to_string();
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
        let stay: HashSet<&str> = kept.iter().map(|file| file.name.as_str()).collect();
        let removed = there.into_iter().filter(|name| !stay.contains(name.as_str())).collect();
        let notice = match self.files.part {
            Part::WHOLE => parts::described(found, &kept, self.layout.files),
            _ => None,
        };
        let own = self.manifest();
        let earlier = found.iter().find(|found| found.name == own).and_then(Found::readable);
        let content_sum = earlier.and_then(|then| then.content_sum);
        Ok(Settled { kept, removed, notice, content_sum, ..Settled::default() })
    }

    /// Refuses to finish a dataset with missing files.
    fn refuse_missing(&self, found: &[Found], kept: &[ManifestFile]) -> Result<()> {
        let whole: HashSet<u32> = kept.iter().map(|file| file.file).collect();
        let missing = (0..self.layout.files).filter(|number| !whole.contains(number)).count();
        if missing == 0 {
            return Ok(());
        }
        let parts = parts::missing(found, kept, self.layout.files);
        let parts = parts.map(|parts| format!("; of the parts {parts}")).unwrap_or_default();
        Err(Error::new(
            ErrorKind::Incomplete,
            format!("{missing} of {} files are missing or damaged{parts}", self.layout.files),
            self.folder.place("").display().to_string(),
            "make these parts with --part K/N --resume and finish then, or make all that is missing with --resume",
        ))
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
    fn are_whole(&self, number: u32, files: &[ManifestFile], check: &dyn Fn() -> Result<()>) -> Result<bool> {
        let rows = self.layout.file_rows(number);
        if files.iter().map(|file| file.rows).sum::<u64>() != rows.end - rows.start {
            return Ok(false);
        }
        for file in files {
            if !self.folder.holds(&file.bytes(), check)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes what killed processes left of the files.
    fn remove_leftovers(&self) -> Result<()> {
        let manifest = self.manifest();
        let is_ours = |name: &str| name == manifest || self.files.has(name);
        self.folders()?.iter().try_for_each(|folder| self.folder.remove_leftovers(folder, &is_ours))
    }

    /// The folders with files of the dataset.
    fn folders(&self) -> Result<Vec<String>> {
        let mut folders = vec![String::new()];
        if let Some(column) = self.partition_by {
            let begin = format!("{column}=");
            folders.extend(self.folder.folders()?.into_iter().filter(|name| name.starts_with(&begin)));
        }
        Ok(folders)
    }

    /// The existing files of this part of the dataset by their names.
    fn names_there(&self) -> Result<Vec<String>> {
        let mut there = Vec::new();
        for below in self.folders()? {
            let names = self.folder.files(&below)?;
            there.extend(names.into_iter().filter(|name| self.files.has(last_of(name))));
        }
        Ok(there)
    }

    /// The same files, and those that the manifests name in folders of another partition column.
    fn files_there(&self, mut there: Vec<String>, found: &[Found]) -> Result<Vec<String>> {
        there.sort_unstable();
        let listed = found.iter().filter_map(Found::readable).flat_map(|manifest| &manifest.files);
        let mut elsewhere = Vec::new();
        for file in listed.filter(|file| self.is_ours(&file.name)) {
            if there.binary_search(&file.name).is_err() && self.folder.exists(&file.name)? {
                elsewhere.push(file.name.clone());
            }
        }
        there.append(&mut elsewhere);
        there.sort_unstable();
        there.dedup();
        Ok(there)
    }

    /// Whether a file in a manifest is in the directory or in a folder of it.
    fn is_ours(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split('/').collect();
        let plain = |part: &str| {
            let mut components = Path::new(part).components();
            matches!(components.next(), Some(Component::Normal(_))) && components.next().is_none()
        };
        match parts.as_slice() {
            [file] => self.files.has(file),
            [folder, file] => plain(folder) && folder.contains('=') && self.files.has(file),
            _ => false,
        }
    }
}

/// The name of a file without its folder.
pub(crate) fn last_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Decides what to do with an existing single file.
///
/// # Errors
/// It exists and may not be replaced.
pub(crate) fn settle_file(folder: &dyn Folder, name: &str, earlier: EarlierFiles<'_>) -> Result<()> {
    folder.remove_leftovers("", &|leftover| leftover == name)?;
    if !folder.exists(name)? {
        return Ok(());
    }
    folder.protect(earlier.sources, name)?;
    if earlier.existing == Existing::Replace {
        return Ok(());
    }
    let what = "the file already exists";
    let advice = "pass --overwrite to replace it, or write somewhere else";
    Err(Error::spec(what, folder.place(name).display().to_string(), advice))
}
