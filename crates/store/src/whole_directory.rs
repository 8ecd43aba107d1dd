//! A directory that is whole or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::directories;
use crate::path_name::path_name;
use crate::shared_places;

/// A directory that takes its name when everything in it is on disk. Until then it has a temporary name next to
/// its destination. Dropping it earlier removes it; after a kill, the next run does.
///
/// Three names are next to the directory: `.NAME.PROCESS-NUMBER.partial` is being written, `.replaced` had the
/// name before, and the process holds `.lock` as long as either may exist.
#[derive(Debug)]
pub struct WholeDirectory {
    out: PathBuf,
    /// Whether it may take the place of another directory.
    replaces: bool,
    names: Names,
    /// Locked while this process writes.
    _lock: File,
}

/// The names beside the directory that one run uses.
#[derive(Debug)]
struct Names {
    staging: PathBuf,
    replaced: PathBuf,
    lock: PathBuf,
}

const STAGING: &str = ".partial";
const REPLACED: &str = ".replaced";
const LOCK: &str = ".lock";

impl Names {
    fn new(out: &Path, run: &str) -> Self {
        let beside = |suffix| directories::directory_of(out).join(format!("{}{run}{suffix}", prefix(out)));
        Self { staging: beside(STAGING), replaced: beside(REPLACED), lock: beside(LOCK) }
    }

    /// Whether this user has made each of them that exists.
    fn are_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let of_others = |path: &PathBuf| path.symlink_metadata().is_ok_and(|there| there.uid() != own);
        ![&self.staging, &self.replaced, &self.lock].into_iter().any(of_others)
    }

    /// Cleans up after the run that used these names: gives the replaced directory its name back if that is free,
    /// and removes the rest, the lock last.
    fn clear(&self, out: &Path) -> io::Result<()> {
        if self.replaced.exists() && !out.exists() {
            fs::rename(&self.replaced, out)?;
        }
        for directory in [&self.staging, &self.replaced] {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
        }
        fs::remove_file(&self.lock)
    }
}

impl WholeDirectory {
    /// Begins the directory `out`, which takes the place of another one that is not empty only if `replaces` is
    /// set.
    ///
    /// # Errors
    /// When it cannot be made, or what a killed run left cannot be removed.
    pub fn create(out: &Path, replaces: bool) -> io::Result<Self> {
        Self::begin(&fs::DirBuilder::new(), out, replaces)
    }

    /// Begins a directory among temporary ones, which its owner alone may read.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_private(out: &Path) -> io::Result<Self> {
        Self::begin(fs::DirBuilder::new().mode(0o700), out, false)
    }

    fn begin(builder: &fs::DirBuilder, out: &Path, replaces: bool) -> io::Result<Self> {
        directories::make(directories::directory_of(out))?;
        Self::remove_abandoned(out)?;
        for number in 0_u32.. {
            let names = Names::new(out, &format!("{}-{number}", std::process::id()));
            let lock = match File::create_new(&names.lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // Without locks no directory is taken for abandoned either.
            let _ = lock.lock();
            let staged = Self { out: out.to_owned(), replaces, names, _lock: lock };
            builder.create(&staged.names.staging)?;
            if staged.names.lock.exists() {
                return Ok(staged);
            }
            // Another run took the lock for abandoned before it was locked.
        }
        Err(io::Error::other("every name for a temporary directory is taken"))
    }

    /// Where to write until it is whole.
    pub fn path(&self) -> &Path {
        &self.names.staging
    }

    /// Gives the directory its name, in the place of the one that has it, if any.
    ///
    /// # Errors
    /// When it cannot take its name; [`io::ErrorKind::AlreadyExists`] if another program has written to a directory that
    /// it may not replace.
    pub fn finish(self) -> io::Result<()> {
        sync_all(&self.names.staging)?;
        if self.replaces && self.out.exists() {
            fs::rename(&self.out, &self.names.replaced)?;
        }
        if let Err(error) = fs::rename(&self.names.staging, &self.out) {
            if !self.replaces && self.out.exists() {
                let what = "another program has written to the directory in the meantime";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
            return Err(error);
        }
        directories::sync(directories::directory_of(&self.out))?;
        if self.names.replaced.exists() {
            fs::remove_dir_all(&self.names.replaced)?;
        }
        Ok(())
    }

    /// Cleans up after killed runs that wrote the directory `out`. A crash of the machine may take the lock and leave a
    /// directory, so each of the three names is enough.
    ///
    /// # Errors
    /// The parent directory cannot be read, or a leftover cannot be removed.
    pub fn remove_abandoned(out: &Path) -> io::Result<()> {
        let prefix = prefix(out);
        for entry in fs::read_dir(directories::directory_of(out))? {
            let name = path_name(entry?.file_name().as_ref());
            let Some(rest) = name.strip_prefix(&prefix) else { continue };
            let run = [LOCK, STAGING, REPLACED].into_iter().find_map(|suffix| rest.strip_suffix(suffix));
            let is_ours = |run: &&str| {
                run.split_once('-').is_some_and(|(process, number)| {
                    process.parse::<u32>().is_ok() && number.parse::<u32>().is_ok()
                })
            };
            let Some(run) = run.filter(is_ours) else { continue };
            // In /tmp anyone can make such names.
            let Some(names) = Some(Names::new(out, run)).filter(Names::are_own) else { continue };
            // A missing lock is made again, so that other runs do not take these names.
            let mut how = OpenOptions::new();
            let lock =
                shared_places::open(&names.lock, how.read(true).write(true).create(true).truncate(false));
            let Ok(lock) = lock else { continue };
            if lock.try_lock().is_ok() {
                names.clear(out)?;
            }
        }
        Ok(())
    }
}

impl Drop for WholeDirectory {
    fn drop(&mut self) {
        // The error that ended the run is the one to report.
        let _ = self.names.clear(&self.out);
    }
}

fn prefix(out: &Path) -> String {
    format!(".{}.", path_name(out.file_name().unwrap_or_default().as_ref()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for content in ["first", "second"] {
            let staged = WholeDirectory::create(&out, true).unwrap();
            fs::create_dir(staged.path().join("day=1")).unwrap();
            fs::write(staged.path().join("day=1/a.parquet"), content).unwrap();
            staged.finish().unwrap();
            assert_eq!(fs::read_to_string(out.join("day=1/a.parquet")).unwrap(), content);
        }
        // One that was not there when this began stays.
        let late = WholeDirectory::create(&out, false).unwrap();
        fs::write(late.path().join("a.parquet"), "third").unwrap();
        assert!(late.finish().unwrap_err().to_string().contains("in the meantime"));
        assert_eq!(fs::read_to_string(out.join("day=1/a.parquet")).unwrap(), "second");
        drop(WholeDirectory::create(&out, true).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// Ends a run as a kill does.
    fn kill(staged: WholeDirectory) {
        staged._lock.unlock().unwrap();
        std::mem::forget(staged);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let alive = WholeDirectory::create(&out, true).unwrap();
        let killed = WholeDirectory::create(&out, true).unwrap();
        // The next directory may take the name of the one that is removed.
        let left = killed.path().join("day=1");
        fs::create_dir(&left).unwrap();
        kill(killed);
        let next = WholeDirectory::create(&out, true).unwrap();
        assert!(!left.exists() && alive.path().exists() && next.path().exists());
        drop((alive, next));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_crash_left_without_its_lock_is_cleared_up() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("old.parquet"), "").unwrap();
        let killed = WholeDirectory::create(&out, true).unwrap();
        fs::write(killed.path().join("new.parquet"), "").unwrap();
        fs::rename(&out, &killed.names.replaced).unwrap();
        fs::remove_file(&killed.names.lock).unwrap();
        kill(killed);
        WholeDirectory::remove_abandoned(&out).unwrap();
        assert!(out.join("old.parquet").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_was_killed_between_its_renames_leaves_one_of_the_directories() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for renames in 1..=2 {
            fs::create_dir_all(&out).unwrap();
            fs::write(out.join("old.parquet"), "").unwrap();
            let killed = WholeDirectory::create(&out, true).unwrap();
            fs::write(killed.path().join("new.parquet"), "").unwrap();
            fs::rename(&out, &killed.names.replaced).unwrap();
            if renames == 2 {
                fs::rename(&killed.names.staging, &out).unwrap();
            }
            kill(killed);
            WholeDirectory::remove_abandoned(&out).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
            let file = out.join(["old.parquet", "new.parquet"][renames - 1]);
            assert!(file.exists() && fs::read_dir(&out).unwrap().count() == 1);
            fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn what_another_user_has_left_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let names = Names::new(&out, "1-0");
        fs::create_dir(&names.replaced).unwrap();
        let nobody = Some(rustix::fs::Uid::from_raw(65_534));
        // Only the superuser can give files away.
        if rustix::fs::chown(&names.replaced, nobody, None).is_err() {
            return;
        }
        WholeDirectory::create_private(&out).unwrap().finish().unwrap();
        assert!(names.replaced.exists() && !names.lock.exists());
    }
}
