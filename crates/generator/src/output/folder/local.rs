//! A directory of this machine as the place of files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sawmill_store::{Identity, WholeFile, directories, open_regular};

use crate::error::{Error, Result};
use crate::output::checksum::{Checksum, PieceSum};
use crate::output::dataset_files::{entries, remove, remove_leftovers};
use crate::output::folder::{FileBytes, Folder, MadeFile};
use crate::output::sink::Sink;
use crate::output::source_file::protect_sources;

/// A directory; the current one has an empty path.
#[derive(Debug)]
pub(crate) struct LocalFolder(PathBuf);

impl LocalFolder {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        LocalFolder(directory.into())
    }

    /// A folder below the directory, or the directory itself, as the system wants it.
    fn at(&self, below: &str) -> PathBuf {
        let path = self.place(below);
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }

    fn named(&self, below: &str, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<String>> {
        let there = entries(&self.at(below), io::ErrorKind::NotFound)?;
        let wanted = there.iter().filter(|path| is_wanted(path)).filter_map(|path| path.file_name());
        Ok(wanted.map(|name| name.to_string_lossy().into_owned()).collect())
    }
}

impl Folder for LocalFolder {
    fn place(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    fn prepare(&self) -> Result<()> {
        make(&self.at(""))
    }

    fn files(&self, below: &str) -> Result<Vec<String>> {
        // A symbolic link counts, whatever its target.
        let names = self.named(below, |path| path.is_file() || path.is_symlink())?;
        Ok(names
            .into_iter()
            .map(|name| if below.is_empty() { name } else { format!("{below}/{name}") })
            .collect())
    }

    fn folders(&self) -> Result<Vec<String>> {
        self.named("", Path::is_dir)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        // A symbolic link counts, whatever its target.
        Ok(fs::symlink_metadata(self.place(name)).is_ok_and(|there| !there.is_dir()))
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.place(name);
        let mut bytes = Vec::new();
        match open_regular(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(&e, "reading", &path, None)),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.place(name);
        let failed = |e: io::Error| Error::io(&e, "writing", &path, None);
        let mut file = WholeFile::create(&path).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        file.finish().map_err(failed)
    }

    fn create(&self, name: &str) -> Result<Sink> {
        let path = self.place(name);
        if let Some((folder, _)) = name.rsplit_once('/') {
            make(&self.0.join(folder))?;
        }
        Sink::file(&path).map_err(|e| Error::io(&e, "creating", &path, None))
    }

    fn remove(&self, name: &str) -> Result<()> {
        remove("removing", &self.place(name))?;
        if let Some((folder, _)) = name.rsplit_once('/') {
            // A folder with other files stays.
            let _ = fs::remove_dir(self.0.join(folder));
        }
        Ok(())
    }

    fn remove_leftovers(&self, below: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<()> {
        remove_leftovers(&self.at(below), is_ours)
    }

    fn sync(&self, below: &str) -> Result<()> {
        let directory = self.at(below);
        match directories::sync(&directory) {
            // It was removed with its last file.
            Err(e) if e.kind() == io::ErrorKind::NotFound && !below.is_empty() => Ok(()),
            synced => synced.map_err(|e| Error::io(&e, "syncing the directory", &directory, None)),
        }
    }

    fn protect(&self, sources: &[PathBuf], name: &str) -> Result<()> {
        protect_sources(sources, &self.place(name))
    }

    fn holds(&self, file: &FileBytes<'_>, check: &dyn Fn() -> Result<()>) -> Result<bool> {
        let path = self.place(file.name);
        match fs::metadata(&path) {
            Ok(there) if there.is_file() && there.len() == file.bytes => {}
            _ => return Ok(false),
        }
        Ok(sum_of_file(&path, check)? == file.sum)
    }

    fn replaced(&self, made: &[MadeFile]) -> Result<Option<PathBuf>> {
        for file in made {
            let path = self.place(&file.name);
            if fs::metadata(&path).is_ok_and(|there| Some(Identity::new(&there)) == file.identity) {
                continue;
            }
            // Some network file systems change inode numbers, so the bytes decide.
            if sum_of_file(&path, &|| Ok(())).ok() != file.sum {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

fn make(directory: &Path) -> Result<()> {
    directories::make(directory).map_err(|e| Error::io(&e, "creating the directory", directory, None))
}

fn sum_of_file(path: &Path, check: &dyn Fn() -> Result<()>) -> Result<Checksum> {
    let failed = |e: io::Error| Error::io(&e, "reading", path, None);
    let mut open = File::open(path).map_err(failed)?;
    let mut sum = PieceSum::default();
    let mut buffer = vec![0; 1 << 20];
    loop {
        check()?;
        match open.read(&mut buffer).map_err(failed)? {
            0 => return Ok(sum.sum()),
            n => sum.update(&buffer[..n]),
        }
    }
}
