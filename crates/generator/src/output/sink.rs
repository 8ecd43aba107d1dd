//! Writes bytes to a file or stream, and computes their number and checksum.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use crate::checksum::{Checksum, RunningSum};
use crate::error::Error;
use sawmill_store::{Identity, WholeFile};

/// The destination of the bytes.
#[derive(Debug)]
enum Target {
    File(WholeFile),
    Stream(File, PathBuf),
}

/// An open file or stream.
#[derive(Debug)]
pub(crate) struct Sink {
    target: Target,
    written: u64,
    /// The checksum of the bytes so far.
    sum: Option<RunningSum>,
}

/// A complete file.
#[derive(Debug)]
pub(crate) struct Finished {
    pub path: PathBuf,
    pub bytes: u64,
    pub sum: Option<Checksum>,
    /// `None` for streams.
    pub identity: Option<Identity>,
}

impl Sink {
    /// A new file at `path`.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let target = Target::File(WholeFile::create(path)?);
        Ok(Sink { target, written: 0, sum: Some(RunningSum::new()) })
    }

    /// A device or FIFO. It has no checksum, because its bytes cannot be read back and compared.
    pub(crate) fn device(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).open(&path)?;
        Ok(Sink { target: Target::Stream(file, path), written: 0, sum: None })
    }

    /// Standard output; errors call it `name`.
    pub(crate) fn stdout(name: PathBuf) -> io::Result<Self> {
        let target = Target::Stream(duplicate_stdout()?, name);
        Ok(Sink { target, written: 0, sum: Some(RunningSum::new()) })
    }

    /// The bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Closes the file until the next write, because a process may only have so many open files.
    pub(crate) fn park(&mut self) {
        if let Target::File(file) = &mut self.target {
            file.park();
        }
    }

    /// Writes `pieces` one after the other. About `more` bytes will follow; only the error for a full disk
    /// uses this number.
    pub(crate) fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<(), Error> {
        /// The most slices of one `writev(2)` on Linux.
        const MOST: usize = 1024;
        let mut left: u64 = pieces.iter().map(|p| p.len() as u64).sum();
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
                let result = match &mut self.target {
                    Target::File(file) => file.write_vectored(slices),
                    Target::Stream(file, _) => file.write_vectored(slices),
                };
                let written = match result {
                    Ok(0) => {
                        return Err(self.failed(&io::ErrorKind::WriteZero.into(), left.saturating_add(more)));
                    }
                    Ok(written) => written,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(self.failed(&e, left.saturating_add(more))),
                };
                self.written += written as u64;
                left -= written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        match &self.target {
            Target::File(file) => file.path(),
            Target::Stream(_, name) => name,
        }
    }

    fn failed(&self, error: &io::Error, left: u64) -> Error {
        Error::io(error, "writing", self.path(), Some(left))
    }

    /// Syncs the file and renames it to its final name. The caller must sync the directory.
    pub(crate) fn finish(self) -> Result<Finished, Error> {
        let path = self.path().to_owned();
        let sum = self.sum.as_ref().map(RunningSum::sum);
        let bytes = self.written;
        let identity = match self.target {
            Target::File(file) => {
                Some(file.give_name().map_err(|e| Error::io(&e, "writing", &path, Some(0)))?)
            }
            Target::Stream(..) => None,
        };
        Ok(Finished { path, bytes, sum, identity })
    }
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
