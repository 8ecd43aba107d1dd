//! Where files go, and how they get there whole or not at all.
//!
//! A file grows under its name with `.partial` behind it and takes its own name only when every
//! byte is on disk. A partial file is removed when its making fails; one that a killed process
//! left behind is overwritten by the next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use crate::content_sum::{ContentSum, RunningSum};
use crate::error::Error;

/// Where the files of a dataset go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Files `NAME-00000.parquet` and so on in this directory, which is made if need be.
    Directory(PathBuf),
    /// One file of this name.
    File(PathBuf),
    /// One stream into something that is there already and is no regular file: a device such as
    /// `/dev/null`, or a FIFO.
    Device(PathBuf),
    /// One stream to standard output.
    Stdout,
}

impl Output {
    /// What a user means by `path`: `-` is standard output, an existing device or FIFO is written
    /// to as it is, a name ending in `.parquet` that is no directory is one file, anything else a
    /// directory.
    pub fn from_path(path: &Path) -> Self {
        if path == Path::new("-") {
            return Output::Stdout;
        }
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Output::Directory(path.into()),
            Ok(there) if !there.is_file() => Output::Device(path.into()),
            _ if path.extension().is_some_and(|e| e == "parquet") => Output::File(path.into()),
            _ => Output::Directory(path.into()),
        }
    }

    /// Whether it holds one file only.
    pub fn is_single(&self) -> bool {
        !matches!(self, Output::Directory(_))
    }

    /// The path of file `index` of the dataset `name`.
    pub fn file_path(&self, name: &str, index: usize) -> PathBuf {
        match self {
            Output::Directory(directory) => directory.join(format!("{name}-{index:05}.parquet")),
            Output::File(path) | Output::Device(path) => path.clone(),
            Output::Stdout => PathBuf::from("standard output"),
        }
    }

    /// Makes the directory that files go into.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        let directory = match self {
            Output::Directory(directory) => directory.as_path(),
            Output::File(path) => match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => return Ok(()),
            },
            Output::Device(_) | Output::Stdout => return Ok(()),
        };
        fs::create_dir_all(directory).map_err(|e| Error::io(&e, "making the directory", directory, None))
    }

    /// Opens the file at `path` for writing: one that [`Output::file_path`] names, or one in a folder
    /// below the directory.
    pub(crate) fn create(&self, path: PathBuf) -> Result<Sink, Error> {
        let failed = |e: &io::Error, path: &Path| Error::io(e, "creating", path, None);
        let (file, partial) = match self {
            Output::Stdout => (duplicate_stdout().map_err(|e| failed(&e, &path))?, None),
            Output::Device(_) => {
                let file = OpenOptions::new().write(true).open(&path).map_err(|e| failed(&e, &path))?;
                (file, None)
            }
            Output::Directory(_) | Output::File(_) => {
                if path.is_dir() {
                    return Err(failed(&io::ErrorKind::IsADirectory.into(), &path));
                }
                let partial = partial_name(&path);
                (File::create(&partial).map_err(|e| failed(&e, &partial))?, Some(partial))
            }
        };
        // Nobody compares the sum of what went into a device.
        let sum = (!matches!(self, Output::Device(_))).then(RunningSum::new);
        Ok(Sink { file: Some(file), path, partial, written: 0, sum })
    }
}

/// The name of a file that is not whole.
pub(crate) fn partial_name(path: &Path) -> PathBuf {
    let mut partial = path.to_owned().into_os_string();
    partial.push(".partial");
    PathBuf::from(partial)
}

#[cfg(unix)]
fn duplicate_stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn duplicate_stdout() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file under way.
#[derive(Debug)]
pub(crate) struct Sink {
    /// `None` while it is parked.
    file: Option<File>,
    path: PathBuf,
    /// The name it has until it is whole; `None` for streams, which have no other.
    partial: Option<PathBuf>,
    written: u64,
    /// The sum of the bytes so far.
    sum: Option<RunningSum>,
}

/// A file that is whole.
#[derive(Debug)]
pub(crate) struct Finished {
    pub path: PathBuf,
    pub bytes: u64,
    pub sum: Option<ContentSum>,
}

impl Sink {
    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Closes the file until the next write: there are more files under way than may be open.
    pub(crate) fn park(&mut self) {
        if self.partial.is_some() {
            self.file = None;
        }
    }

    /// Writes `pieces` one after the other. About `more` bytes will follow, which only the error for a
    /// full disk tells.
    pub(crate) fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<(), Error> {
        /// The most slices that one `writev(2)` takes on Linux.
        const MOST: usize = 1024;
        let mut left: u64 = pieces.iter().map(|p| p.len() as u64).sum();
        let mut file = match (self.file.take(), &self.partial) {
            (Some(file), _) => file,
            (None, partial) => {
                let path = partial.as_deref().unwrap_or(&self.path);
                let opened = OpenOptions::new().append(true).open(path);
                opened.map_err(|e| Error::io(&e, "opening", path, None))?
            }
        };
        for pieces in pieces.chunks(MOST) {
            if let Some(sum) = &mut self.sum {
                for piece in pieces {
                    sum.update(piece);
                }
            }
            let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|p| IoSlice::new(p)).collect();
            let mut slices = slices.as_mut_slice();
            IoSlice::advance_slices(&mut slices, 0);
            while !slices.is_empty() {
                let written = match file.write_vectored(slices) {
                    Ok(0) => return Err(self.failed(&io::ErrorKind::WriteZero.into(), left + more)),
                    Ok(written) => written,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(self.failed(&e, left + more)),
                };
                self.written += written as u64;
                left -= written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
        }
        self.file = Some(file);
        Ok(())
    }

    fn failed(&self, error: &io::Error, left: u64) -> Error {
        Error::io(error, "writing", &self.path, Some(left))
    }

    /// Puts the file on disk and gives it its name.
    pub(crate) fn finish(mut self) -> Result<Finished, Error> {
        if let Some(partial) = self.partial.take() {
            let synced = match &self.file {
                Some(file) => file.sync_all(),
                None => File::open(&partial).and_then(|file| file.sync_all()),
            };
            let named = synced.and_then(|()| fs::rename(&partial, &self.path));
            if let Err(e) = named {
                self.partial = Some(partial);
                return Err(self.failed(&e, 0));
            }
        }
        let sum = self.sum.take().map(|sum| sum.sum());
        Ok(Finished { path: std::mem::take(&mut self.path), bytes: self.written, sum })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // The error that brought us here is the one to report.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_kind_of_output_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("there.parquet"), b"").unwrap();
        fs::create_dir(at("dir.parquet")).unwrap();
        assert_eq!(Output::from_path(Path::new("-")), Output::Stdout);
        assert_eq!(Output::from_path(Path::new("/dev/null")), Output::Device("/dev/null".into()));
        assert_eq!(Output::from_path(&at("there.parquet")), Output::File(at("there.parquet")));
        assert_eq!(Output::from_path(&at("new.parquet")), Output::File(at("new.parquet")));
        assert_eq!(Output::from_path(&at("dir.parquet")), Output::Directory(at("dir.parquet")));
        assert_eq!(Output::from_path(&at("new")), Output::Directory(at("new")));
    }

    #[test]
    fn an_unfinished_file_leaves_nothing_and_a_finished_one_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let output = Output::Directory(dir.path().into());
        let mut sink = output.create(output.file_path("d", 0)).unwrap();
        sink.write(&[b"half"], 0).unwrap();
        assert!(dir.path().join("d-00000.parquet.partial").exists());
        drop(sink);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut sink = output.create(output.file_path("d", 7)).unwrap();
        sink.write(&[b"", b"wh", b""], 0).unwrap();
        sink.park();
        sink.write(&[b"ole"], 0).unwrap();
        let finished = sink.finish().unwrap();
        assert_eq!(finished.bytes, 5);
        assert_eq!(finished.sum, Some(ContentSum(xxhash_rust::xxh3::xxh3_128(b"whole"))));
        assert_eq!(fs::read(dir.path().join("d-00007.parquet")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_that_names_the_file_and_the_bytes() {
        let mut sink = Output::Device("/dev/full".into()).create("/dev/full".into()).unwrap();
        let error = sink.write(&[&[0; 1000], &[0; 24]], 2000).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("3024 bytes"), "{error}");
    }
}
