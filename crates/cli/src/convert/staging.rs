//! A directory that is whole or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sawmill_source::Source;
use sawmill_store::{Location, directories, followed, path_name, shared_places};

use super::ConvertArgs;
use super::out::objects_of;
use crate::error::Error;
use crate::r#gen::formats::failed;

/// A directory that takes its name when everything in it is on disk. Until then it has a temporary name next to
/// its destination. Dropping it earlier removes it; after a kill, the next run does.
///
/// Three names are next to the directory: `.NAME.PROCESS-NUMBER.partial` is being written, `.replaced` had the
/// name before, and the process holds `.lock` as long as either may exist.
pub(super) struct StagedDirectory {
    out: PathBuf,
    /// Whether it may take the place of another directory.
    replaces: bool,
    names: Names,
    /// Locked while this process writes.
    _lock: File,
}

/// The names beside the directory that one run uses.
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

impl StagedDirectory {
    /// Begins the directory `out`, which takes the place of another one that is not empty only if `replaces` is
    /// set.
    pub(super) fn create(out: &Path, replaces: bool) -> Result<Self, Error> {
        Self::create_by(&fs::DirBuilder::new(), out, replaces)
    }

    /// Begins a directory among temporary ones, which its owner alone may read.
    fn create_private(out: &Path) -> Result<Self, Error> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        Self::create_by(&builder, out, false)
    }

    fn create_by(builder: &fs::DirBuilder, out: &Path, replaces: bool) -> Result<Self, Error> {
        let parent = directories::directory_of(out);
        let wrong = |error: io::Error| failed("making the directory", out, &error);
        directories::make(parent).map_err(wrong)?;
        clear_abandoned(out)?;
        for number in 0_u32.. {
            let names = Names::new(out, &format!("{}-{number}", std::process::id()));
            let lock = match File::create_new(&names.lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(wrong)?,
            };
            // Without locks no directory is taken for abandoned either.
            let _ = lock.lock();
            let staged = Self { out: out.to_owned(), replaces, names, _lock: lock };
            builder.create(&staged.names.staging).map_err(wrong)?;
            if staged.names.lock.exists() {
                return Ok(staged);
            }
            // Another run took the lock for abandoned before it was locked.
        }
        Err(Error::failure("every name for a temporary directory is taken", out.display().to_string(), ""))
    }

    /// Where to write until it is whole.
    pub(super) fn path(&self) -> &Path {
        &self.names.staging
    }

    /// Gives the directory its name, in the place of the one that has it, if any.
    pub(super) fn finish(self) -> Result<(), Error> {
        let wrong = |error: io::Error| failed("writing", &self.out, &error);
        sync_all(&self.names.staging).map_err(wrong)?;
        if self.replaces && self.out.exists() {
            fs::rename(&self.out, &self.names.replaced).map_err(wrong)?;
        }
        if let Err(error) = fs::rename(&self.names.staging, &self.out) {
            if !self.replaces && self.out.exists() {
                let what = "another program has written to the directory in the meantime";
                let advice = "--overwrite replaces it";
                return Err(Error::failure(what, self.out.display().to_string(), advice));
            }
            return Err(wrong(error));
        }
        directories::sync(directories::directory_of(&self.out)).map_err(wrong)?;
        if self.names.replaced.exists() {
            let replaced = &self.names.replaced;
            fs::remove_dir_all(replaced).map_err(|error| failed("removing", replaced, &error))?;
        }
        Ok(())
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        // The error that ended the run is the one to report.
        let _ = self.names.clear(&self.out);
    }
}

fn prefix(out: &Path) -> String {
    format!(".{}.", path_name(out.file_name().unwrap_or_default().as_ref()))
}

/// Cleans up after killed runs. A crash of the machine may take the lock and leave a directory, so each of the three
/// names is enough.
fn clear_abandoned(out: &Path) -> Result<(), Error> {
    let parent = directories::directory_of(out);
    let wrong = |error: io::Error| failed("reading the directory", parent, &error);
    let prefix = prefix(out);
    for entry in fs::read_dir(parent).map_err(wrong)? {
        let name = path_name(entry.map_err(wrong)?.file_name().as_ref());
        let Some(rest) = name.strip_prefix(&prefix) else { continue };
        let run = [LOCK, STAGING, REPLACED].into_iter().find_map(|suffix| rest.strip_suffix(suffix));
        let is_ours = |run: &&str| {
            run.split_once('-').is_some_and(|(process, number)| {
                process.parse::<u32>().is_ok() && number.parse::<u32>().is_ok()
            })
        };
        let Some(run) = run.filter(is_ours) else { continue };
        let names = Names::new(out, run);
        // Made again where it is gone, so that no other run takes these names meanwhile.
        let mut how = OpenOptions::new();
        let lock = shared_places::open(&names.lock, how.read(true).write(true).create(true).truncate(false));
        let Ok(lock) = lock else { continue };
        if lock.try_lock().is_ok() {
            names
                .clear(out)
                .map_err(|error| failed("clearing up after a killed run", &names.lock, &error))?;
        }
    }
    Ok(())
}

/// The directory at the end of all links, without a slash at its end.
fn target(out: &Path) -> Result<PathBuf, Error> {
    let out = out.components().as_path();
    followed(out).map_err(|error| failed("reading the link", out, &error))
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

/// What a run writes into a directory.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// `part-00000.parquet` and so on.
    Parts,
    /// Parquet files in folders `column=value`.
    Folders,
}

impl Layout {
    /// Whether a run with this layout writes files of this name, relative to the directory.
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Self::Parts => {
                let number = name.strip_prefix("part-").and_then(|rest| rest.split_once('.'));
                number.is_some_and(|(number, extension)| {
                    number.bytes().all(|byte| byte.is_ascii_digit())
                        && ["parquet", "csv", "ndjson"].contains(&extension)
                })
            }
            Self::Folders => {
                let mut folders = name.rsplit('/').skip(1);
                name.ends_with(".parquet") && folders.all(|folder| folder.contains('='))
            }
        }
    }

    pub(super) fn files(self) -> &'static str {
        match self {
            Self::Parts => "part-NNNNN.parquet, .csv or .ndjson",
            Self::Folders => "Parquet in folders COLUMN=VALUE",
        }
    }
}

/// Where a directory of files is written, and where it goes when it is whole.
pub(super) struct Staged {
    directory: StagedDirectory,
    folder: Option<super::store_folder::StoreFolder>,
}

impl Staged {
    /// Begins the directory of the command line, or a temporary one for the folder of a store.
    pub(super) fn begin(args: &ConvertArgs, layout: Layout) -> Result<Self, Error> {
        match Location::of(args.out())? {
            Location::Path(path) => {
                let directory = StagedDirectory::create(&target(&path)?, args.overwrite)?;
                Ok(Self { directory, folder: None })
            }
            Location::Object(url) => {
                let folder = super::store_folder::StoreFolder::open(args, &url, layout)?;
                let name = url.key().trim_matches('/').rsplit('/').next().unwrap_or_default();
                let place = args.temporary().join(format!("sawmill-{name}"));
                Ok(Self { directory: StagedDirectory::create_private(&place)?, folder: Some(folder) })
            }
        }
    }

    /// Where to write until it is whole.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Whether the files stay on this machine.
    pub(super) fn stays(&self) -> bool {
        self.folder.is_none()
    }

    /// Puts the directory, or its files as objects, in place.
    pub(super) fn finish(self) -> Result<(), Error> {
        if let Some(folder) = &self.folder {
            return folder.fill(self.path());
        }
        self.directory.finish()
    }
}

/// Rejects an output that cannot become a directory of this layout.
pub(super) fn check_out(args: &ConvertArgs, source: &dyn Source, layout: Layout) -> Result<(), Error> {
    let (out, shown) = (args.out(), args.shown());
    let out = match Location::of(out)? {
        Location::Path(path) => target(&path)?,
        Location::Object(url) => {
            if objects_of(source).any(|input| input.is_below(&url)) {
                return Err(Error::usage("an input is in the folder to write", shown, "give another name"));
            }
            super::store_folder::StoreFolder::open(args, &url, layout)?;
            return Ok(());
        }
    };
    let out = out.as_path();
    if out.file_name().is_none() {
        return Err(Error::usage("the directory has no name of its own", shown, "give one below it"));
    }
    if directories::directory_of(out).is_dir() {
        clear_abandoned(out)?;
    }
    let Ok(metadata) = out.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return Err(Error::usage("the output exists and is not a directory", shown, "give another name"));
    }
    let files = files_below(out)?;
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(());
    }
    if !args.overwrite {
        return Err(Error::usage("the directory exists already", shown, "--overwrite replaces it"));
    }
    if files.iter().any(|(name, _)| !layout.has(name)) {
        let what = format!("the directory has other files than {}", layout.files());
        return Err(Error::usage(what, shown, "--overwrite would remove them: give another name"));
    }
    let Ok(canonical) = out.canonicalize() else { return Ok(()) };
    let folder = path_name(&canonical);
    match source.files().iter().any(|file| Path::new(&file.name).starts_with(&folder)) {
        true => Err(Error::usage("an input is in the directory to replace", shown, "give another name")),
        false => Ok(()),
    }
}

/// The files below a directory in the order of their names, each with its name relative to the directory.
pub(super) fn files_below(directory: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let (mut files, mut folders) = (Vec::new(), vec![(String::new(), directory.to_owned())]);
    while let Some((prefix, folder)) = folders.pop() {
        let wrong = |error: io::Error| failed("reading the directory", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let name = format!("{prefix}{}", path_name(entry.file_name().as_ref()));
            match entry.file_type().map_err(wrong)?.is_dir() {
                true => folders.push((format!("{name}/"), entry.path())),
                false => files.push((name, entry.path())),
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for content in ["first", "second"] {
            let staged = StagedDirectory::create(&out, true).unwrap();
            fs::create_dir(staged.path().join("day=1")).unwrap();
            fs::write(staged.path().join("day=1/a.parquet"), content).unwrap();
            staged.finish().unwrap();
            assert_eq!(fs::read_to_string(out.join("day=1/a.parquet")).unwrap(), content);
        }
        // One that was not there when this began stays.
        let late = StagedDirectory::create(&out, false).unwrap();
        fs::write(late.path().join("a.parquet"), "third").unwrap();
        assert!(late.finish().unwrap_err().to_string().contains("in the meantime"));
        assert_eq!(fs::read_to_string(out.join("day=1/a.parquet")).unwrap(), "second");
        drop(StagedDirectory::create(&out, true).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(files_below(&out).unwrap().iter().all(|(name, _)| Layout::Folders.has(name)));
        fs::write(out.join("day=1/mine.txt"), "x").unwrap();
        assert!(!files_below(&out).unwrap().iter().all(|(name, _)| Layout::Folders.has(name)));
    }

    /// Ends a run as a kill does.
    fn kill(staged: StagedDirectory) {
        staged._lock.unlock().unwrap();
        std::mem::forget(staged);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let alive = StagedDirectory::create(&out, true).unwrap();
        let killed = StagedDirectory::create(&out, true).unwrap();
        // The next directory may take the name of the one that is removed.
        let left = killed.path().join("day=1");
        fs::create_dir(&left).unwrap();
        kill(killed);
        let next = StagedDirectory::create(&out, true).unwrap();
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
        let killed = StagedDirectory::create(&out, true).unwrap();
        fs::write(killed.path().join("new.parquet"), "").unwrap();
        fs::rename(&out, &killed.names.replaced).unwrap();
        fs::remove_file(&killed.names.lock).unwrap();
        kill(killed);
        clear_abandoned(&out).unwrap();
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
            let killed = StagedDirectory::create(&out, true).unwrap();
            fs::write(killed.path().join("new.parquet"), "").unwrap();
            fs::rename(&out, &killed.names.replaced).unwrap();
            if renames == 2 {
                fs::rename(&killed.names.staging, &out).unwrap();
            }
            kill(killed);
            clear_abandoned(&out).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
            let file = out.join(["old.parquet", "new.parquet"][renames - 1]);
            assert!(file.exists() && fs::read_dir(&out).unwrap().count() == 1);
            fs::remove_file(file).unwrap();
        }
    }
}
