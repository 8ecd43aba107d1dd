//! A directory or a folder of a store as the output: what may be in it, and where it is written until it is whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sawmill_source::Source;
use sawmill_store::{Location, WholeDirectory, directories, followed, path_name};

use super::ConvertArgs;
use super::out::objects_of;
use crate::error::Error;

/// The directory at the end of all links, without a slash at its end.
fn target(out: &Path) -> Result<PathBuf, Error> {
    let out = out.components().as_path();
    followed(out).map_err(|error| Error::of_output("reading the link", out, &error))
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
    directory: WholeDirectory,
    /// Its name in the end, on this machine.
    out: PathBuf,
    folder: Option<super::store_folder::StoreFolder>,
}

impl Staged {
    /// Begins the directory of the command line, or a temporary one for the folder of a store.
    pub(super) fn begin(args: &ConvertArgs, layout: Layout) -> Result<Self, Error> {
        match Location::new(args.out())? {
            Location::Path(path) => {
                let out = target(&path)?;
                let directory = WholeDirectory::create(&out, args.overwrite).map_err(|e| unmade(&out, &e))?;
                Ok(Self { directory, out, folder: None })
            }
            Location::Object(url) => {
                let folder = super::store_folder::StoreFolder::open(args, &url, layout)?;
                let name = url.key().trim_matches('/').rsplit('/').next().unwrap_or_default();
                let place = args.temporary().join(format!("sawmill-{name}"));
                let directory = WholeDirectory::create_private(&place).map_err(|e| unmade(&place, &e))?;
                Ok(Self { directory, out: place, folder: Some(folder) })
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
        self.directory.finish().map_err(|error| Error::of_output("writing", &self.out, &error))
    }
}

fn unmade(directory: &Path, error: &io::Error) -> Error {
    Error::of_output("making the directory", directory, error)
}

/// Rejects an output that cannot become a directory of this layout.
pub(super) fn check_out(args: &ConvertArgs, source: &dyn Source, layout: Layout) -> Result<(), Error> {
    let (out, shown) = (args.out(), args.shown());
    let out = match Location::new(out)? {
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
        return Err(Error::usage("the directory has no name", shown, "give one below it"));
    }
    if directories::directory_of(out).is_dir() {
        WholeDirectory::remove_abandoned(out)
            .map_err(|error| Error::of_output("reading the directory", out, &error))?;
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
        let wrong = |error: io::Error| Error::of_output("reading the directory", &folder, &error);
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
    fn files_of_others_are_not_of_the_layout() {
        let dir = tempfile::tempdir().unwrap();
        let of_folders = || {
            let files = files_below(dir.path()).unwrap();
            files.iter().all(|(name, _)| Layout::Folders.has(name))
        };
        fs::create_dir(dir.path().join("day=1")).unwrap();
        fs::write(dir.path().join("day=1/a.parquet"), "x").unwrap();
        assert!(of_folders());
        fs::write(dir.path().join("day=1/mine.txt"), "x").unwrap();
        assert!(!of_folders());
    }
}
