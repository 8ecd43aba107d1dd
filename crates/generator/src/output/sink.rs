//! Writes bytes to a file, a stream or an upload, and computes their number and checksum.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use sawmill_profile::{WaitKind, wait};

use crate::error::{Error, Result};
use crate::output::checksum::PieceSum;
use crate::output::folder::MadeFile;
use sawmill_store::WholeFile;

/// A file that is sent to a store while it is written. Dropped before it is finished, it leaves nothing.
pub trait Upload: fmt::Debug + Send {
    /// Appends `pieces`. About `more` bytes will follow.
    ///
    /// # Errors
    /// The store does not take them, or the caller cancelled.
    fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<()>;

    /// Gives the file its name. Returns the store's tag of this version.
    ///
    /// # Errors
    /// The store does not take it, or the caller cancelled.
    fn finish(self: Box<Self>) -> Result<Option<String>>;
}

/// The destination of the bytes.
#[derive(Debug)]
enum OpenTarget {
    File(WholeFile),
    Stream(File, PathBuf),
    Upload(Box<dyn Upload>, PathBuf),
}

/// An open file, stream or upload.
#[derive(Debug)]
pub struct Sink {
    target: OpenTarget,
    /// The bytes written so far.
    pub(crate) written: u64,
    /// The checksum of the bytes so far.
    sum: Option<PieceSum>,
}

impl Sink {
    /// A file at `path`. A device or FIFO has no checksum, because its bytes cannot be read back and compared.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let file = WholeFile::create(path)?;
        let sum = (!file.is_stream()).then(PieceSum::default);
        Ok(Sink { target: OpenTarget::File(file), written: 0, sum })
    }

    /// Standard output; errors call it `name`.
    pub(crate) fn stdout(name: PathBuf) -> io::Result<Self> {
        let target = OpenTarget::Stream(File::from(io::stdout().as_fd().try_clone_to_owned()?), name);
        Ok(Sink { target, written: 0, sum: Some(PieceSum::default()) })
    }

    /// An upload to a store; errors and results call it `place`.
    pub fn upload(place: PathBuf, upload: Box<dyn Upload>) -> Self {
        Sink { target: OpenTarget::Upload(upload, place), written: 0, sum: Some(PieceSum::default()) }
    }

    /// Closes the file until the next write, because the number of open files of a process is limited.
    pub(crate) fn park(&mut self) {
        if let OpenTarget::File(file) = &mut self.target {
            file.park();
        }
    }

    /// Writes `pieces` one after the other. About `more` bytes will follow; the error for a full disk and the
    /// size of an upload's parts use this number.
    pub(crate) fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<()> {
        /// The most slices of one `writev(2)` on Linux.
        const MAX: usize = 1024;
        let mut left: u64 = pieces.iter().map(|p| p.len() as u64).sum();
        for pieces in pieces.chunks(MAX) {
            if let Some(sum) = &mut self.sum {
                for piece in pieces {
                    sum.update(piece);
                }
            }
            if let OpenTarget::Upload(upload, _) = &mut self.target {
                let bytes: u64 = pieces.iter().map(|p| p.len() as u64).sum();
                left -= bytes;
                let _sending = wait(WaitKind::Network);
                upload.write(pieces, left.saturating_add(more))?;
                self.written += bytes;
                continue;
            }
            let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|p| IoSlice::new(p)).collect();
            let mut slices = slices.as_mut_slice();
            IoSlice::advance_slices(&mut slices, 0);
            while !slices.is_empty() {
                let result = match &mut self.target {
                    OpenTarget::File(file) => file.write_vectored(slices),
                    OpenTarget::Stream(file, _) => file.write_vectored(slices),
                    // They were sent above.
                    OpenTarget::Upload(..) => break,
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
            OpenTarget::File(file) => file.path(),
            OpenTarget::Stream(_, name) | OpenTarget::Upload(_, name) => name,
        }
    }

    fn failed(&self, error: &io::Error, left: u64) -> Error {
        Error::io(error, "writing", self.path(), Some(left))
    }

    /// Gives the file its final name: syncs and renames it, or completes its upload. The caller must sync the
    /// directory. `name` is its name in its folder.
    pub(crate) fn finish(self, name: String) -> Result<MadeFile> {
        let path = self.path().to_owned();
        let (bytes, sum) = (self.written, self.sum.as_ref().map(PieceSum::sum));
        let (mut identity, mut tag) = (None, None);
        match self.target {
            OpenTarget::File(file) => {
                let is_stream = file.is_stream();
                let named = file.give_name().map_err(|e| Error::io(&e, "writing", &path, Some(0)))?;
                identity = (!is_stream).then_some(named);
            }
            OpenTarget::Stream(..) => {}
            OpenTarget::Upload(upload, _) => {
                let _sending = wait(WaitKind::Network);
                tag = upload.finish()?;
            }
        }
        Ok(MadeFile { name, path, bytes, sum, identity, tag })
    }
}
