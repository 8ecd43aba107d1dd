//! A directory that is whole or not there at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sawmill_source::Source;
use sawmill_store::directories;

use super::ConvertArgs;
use crate::error::Error;
use crate::r#gen::formats::failed;

/// A directory that takes its name when everything in it is on disk. Until then it stands beside its place
/// under another name; it is removed when it is dropped before, and by the next run after a kill.
pub(super) struct StagedDirectory {
    out: PathBuf,
    staging: PathBuf,
    /// Locked while this process writes.
    lock: Option<File>,
}

const LOCK: &str = ".lock";
const SUFFIX: &str = ".partial";

impl StagedDirectory {
    /// Begins the directory `out`.
    pub(super) fn create(out: &Path) -> Result<Self, Error> {
        let parent = directories::directory_of(out);
        let wrong = |error: io::Error| failed("making the directory", out, &error);
        directories::make(parent).map_err(wrong)?;
        remove_abandoned(out).map_err(|error| failed("reading the directory", parent, &error))?;
        for number in 0_u32.. {
            let staging = parent.join(format!("{}{}-{number}{SUFFIX}", prefix(out), std::process::id()));
            match fs::create_dir(&staging) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(wrong)?,
            }
            let mut staged = Self { out: out.to_owned(), staging, lock: None };
            let lock = File::create(staged.staging.join(LOCK)).map_err(wrong)?;
            // Without locks no directory is taken for abandoned either.
            let _ = lock.lock();
            staged.lock = Some(lock);
            return Ok(staged);
        }
        Err(Error::failure("every name for a temporary directory is taken", out.display().to_string(), ""))
    }

    /// Where to write until it is whole.
    pub(super) fn path(&self) -> &Path {
        &self.staging
    }

    /// Gives the directory its name, in the place of the one that has it, if any.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let wrong = |error: io::Error| failed("writing", &self.out, &error);
        fs::remove_file(self.staging.join(LOCK)).map_err(wrong)?;
        sync_all(&self.staging).map_err(wrong)?;
        let parent = directories::directory_of(&self.out).to_owned();
        let replaced = parent.join(format!("{}{}-replaced{SUFFIX}", prefix(&self.out), std::process::id()));
        let replaces = self.out.exists();
        if replaces {
            fs::rename(&self.out, &replaced).map_err(wrong)?;
        }
        if let Err(error) = fs::rename(&self.staging, &self.out) {
            if replaces {
                // The error of the first rename is the one to report.
                let _ = fs::rename(&replaced, &self.out);
            }
            return Err(wrong(error));
        }
        directories::sync(&parent).map_err(wrong)?;
        self.lock = None;
        if replaces {
            fs::remove_dir_all(&replaced).map_err(|error| failed("removing", &replaced, &error))?;
        }
        // Nothing is left to be removed.
        self.staging = replaced;
        Ok(())
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        self.lock = None;
        // The error that brought us here is the one to report.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

fn prefix(out: &Path) -> String {
    format!(".{}.", out.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes what killed processes left of the directory.
fn remove_abandoned(out: &Path) -> io::Result<()> {
    let prefix = prefix(out);
    for entry in fs::read_dir(directories::directory_of(out))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(SUFFIX));
        let is_ours = rest
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(process, number)| process.parse::<u32>().is_ok() && number.parse::<u32>().is_ok());
        if !is_ours || !entry.path().is_dir() {
            continue;
        }
        let is_abandoned = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Another run is about to lock or to rename it, or was killed just then: it stays.
            Err(_) => false,
        };
        if is_abandoned {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Puts the names in a directory and those below it on disk.
fn sync_all(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        }
    }
    directories::sync(directory)
}

/// Rejects an output that cannot become a directory: `replaceable` tells whether one that is there has only
/// what such a run writes, and `other` says that it has not.
pub(super) fn check_out(
    args: &ConvertArgs,
    source: &dyn Source,
    other: &str,
    replaceable: fn(&Path) -> io::Result<bool>,
) -> Result<(), Error> {
    let (out, shown) = (args.out(), args.out().display().to_string());
    if out.file_name().is_none() {
        return Err(Error::usage("the directory has no name of its own", shown, "give one below it"));
    }
    let Ok(metadata) = out.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return Err(Error::usage("the output exists and is not a directory", shown, "give another name"));
    }
    let is_replaceable = replaceable(out).map_err(|error| failed("reading the directory", out, &error))?;
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(());
    }
    if !args.overwrite {
        return Err(Error::usage("the directory exists already", shown, "--overwrite replaces it"));
    }
    if !is_replaceable {
        return Err(Error::usage(other, shown, "--overwrite would remove them: give another name"));
    }
    let Ok(canonical) = out.canonicalize() else { return Ok(()) };
    match source.files().iter().any(|file| Path::new(&file.name).starts_with(&canonical)) {
        true => Err(Error::usage("an input is in the directory to replace", shown, "give another name")),
        false => Ok(()),
    }
}

/// Whether a directory has only what such a run writes: folders `column=value`, and Parquet files in them.
pub(super) fn has_only_partitions(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let fits = match entry.file_type()?.is_dir() {
            true => name.contains('=') && has_only_partitions(&entry.path())?,
            false => name.ends_with(".parquet"),
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for content in ["first", "second"] {
            let staged = StagedDirectory::create(&out).unwrap();
            fs::create_dir(staged.path().join("day=1")).unwrap();
            fs::write(staged.path().join("day=1/a.parquet"), content).unwrap();
            staged.finish().unwrap();
            assert_eq!(fs::read_to_string(out.join("day=1/a.parquet")).unwrap(), content);
        }
        drop(StagedDirectory::create(&out).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(has_only_partitions(&out).unwrap());
        fs::write(out.join("day=1/mine.txt"), "x").unwrap();
        assert!(!has_only_partitions(&out).unwrap());
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let alive = StagedDirectory::create(&out).unwrap();
        let killed = StagedDirectory::create(&out).unwrap();
        killed.lock.as_ref().unwrap().unlock().unwrap();
        // The next directory may take the name of the one that is removed.
        let left = killed.staging.join("day=1");
        fs::create_dir(&left).unwrap();
        std::mem::forget(killed);
        let next = StagedDirectory::create(&out).unwrap();
        assert!(!left.exists() && alive.path().exists() && next.path().exists());
    }
}
