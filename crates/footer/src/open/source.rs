//! Where footers are read from: files, and anything else that provides ranges of bytes.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::decode::carried::Carried;
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::memory::{allocate, pages};
use crate::open::tail;
use crate::options::Options;

/// A source of known length whose bytes can be read in any order: a file, an object in a store.
pub trait RangeReader {
    /// The number of bytes.
    ///
    /// # Errors
    ///
    /// The length cannot be determined.
    fn len(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes starting at `offset`.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, or there are too few.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Whether to stop working on it: page checks ask before each page.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether it is empty.
    ///
    /// # Errors
    ///
    /// As for [`RangeReader::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl RangeReader for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl RangeReader for [u8] {
    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        match start.and_then(|start| self.get(start..)).and_then(|rest| rest.get(..buffer.len())) {
            Some(found) => {
                buffer.copy_from_slice(found);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Footer {
    /// Reads the footer of a file.
    ///
    /// Costs a read of the last 64 KiB, a second one if the footer is longer, and one walk.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a regular file or does not end like a Parquet file; or its footer is
    /// malformed. Every error names the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &Options::new())
    }

    /// Like [`Footer::open`], but decodes only what `options` ask for.
    ///
    /// Costs a read of [`Options::tail_hint`] bytes, a second one if the footer is longer, and one walk over
    /// what the options select.
    ///
    /// # Errors
    ///
    /// As for [`Footer::open`]; or an option names a column that the schema does not have.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::open_after(path.as_ref(), options, &mut Carried::default())
    }

    /// Like [`Footer::open_with`], reusing what previous footers left.
    pub(crate) fn open_after(path: &Path, options: &Options, carried: &mut Carried) -> Result<Self> {
        let (file, file_len) = open_regular(path)?;
        let name = path.display().to_string();
        let bytes = read_metadata(&file, file_len, options).map_err(|error| error.in_file(&name))?;
        Self::decode_after(bytes.into(), options, Some(Arc::new(name)), Some(file_len), carried)?
            .with_page_indexes(&file, options)
    }

    /// Reads the footer from `reader`, called `name` in errors. Reads as many last bytes as the options' tail
    /// hint says, and reads again only if the footer is longer.
    ///
    /// Costs the same reads and walk as [`Footer::open_with`], through the reader.
    ///
    /// # Errors
    ///
    /// As for [`Footer::open_with`].
    pub fn read<R: RangeReader + ?Sized>(reader: &R, name: &str, options: &Options) -> Result<Self> {
        Self::read_after(reader, name, options, &mut Carried::default())
    }

    /// Like [`Footer::read`], reusing what previous footers left.
    pub(crate) fn read_after<R: RangeReader + ?Sized>(
        reader: &R,
        name: &str,
        options: &Options,
        carried: &mut Carried,
    ) -> Result<Self> {
        let reading = |error: io::Error| Error::io("reading the footer", &error).in_file(name);
        let len = reader.len().map_err(reading)?;
        let bytes = read_metadata(reader, len, options).map_err(|error| error.in_file(name))?;
        let name = Some(Arc::new(name.to_owned()));
        Self::decode_after(bytes.into(), options, name, Some(len), carried)?
            .with_page_indexes(reader, options)
    }
}

/// Opens a regular file and returns its length. Opens a FIFO without waiting for its writer, detects it, and
/// rejects it.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let file = open_to_read(path).map_err(|error| Error::io("opening", &error).in_path(path))?;
    let found = file.metadata().map_err(|error| Error::io("reading", &error).in_path(path))?;
    if found.is_dir() {
        return Err(Error::new("expected a Parquet file, found a directory")
            .in_path(path)
            .with_advice("name the files in the directory"));
    }
    if !found.is_file() {
        return Err(Error::new("expected a Parquet file, found a pipe, socket or device")
            .in_path(path)
            .with_advice("a footer is at the end of a file: copy the data to a regular file"));
    }
    Ok((file, found.len()))
}

/// Opens anything at the path without waiting for a FIFO's writer.
fn open_to_read(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    how.read(true);
    #[cfg(unix)]
    {
        // The value on most Linux processors; elsewhere, the value that most systems use.
        const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, O_NONBLOCK);
    }
    how.open(path)
}

/// The length of a footer, if the options allow it.
pub(crate) fn allowed(len: u64, options: &Options) -> Result<u64> {
    if len <= options.max_footer {
        return Ok(len);
    }
    let most = options.max_footer;
    Err(Error::new(format!("expected a footer of at most {most} bytes, found a length of {len}")).with_advice(
        "the file is damaged; or, if its footer is as long as that, allow it: --max-footer, or Options::max_footer",
    ))
}

fn read_metadata<R: RangeReader + ?Sized>(reader: &R, file_len: u64, options: &Options) -> Result<Vec<u8>> {
    let reading = |error: io::Error| Error::io("reading the footer", &error);
    let tail_len = tail::TAIL_LEN as usize;
    // The tail never exceeds the file, so the file bounds the allocation.
    let hint = usize::try_from(file_len).unwrap_or(usize::MAX).min(options.tail_hint.max(tail_len));
    let mut suffix = allocate::zeroed_for("the file's last part", hint)?;
    reader.read_exact_at(file_len - hint as u64, &mut suffix).map_err(reading)?;
    let len = allowed(tail::metadata_len(&suffix, file_len)?, options)?;
    let too_long = |_| Error::new("expected a footer that fits into memory");
    let len = usize::try_from(len).map_err(too_long)?;
    suffix.truncate(hint - tail_len);
    if len <= suffix.len() {
        // A separate buffer: a kept footer should not keep everything that was read.
        let own = allocate::with_room(len).ok_or_else(|| allocate::too_little("the footer", len));
        let mut own: Vec<u8> = own?;
        own.extend_from_slice(&suffix[suffix.len() - len..]);
        return Ok(own);
    }
    let mut bytes = allocate::zeroed_for("the footer", len)?;
    pages::advise(&mut bytes);
    let (missing, there) = bytes.split_at_mut(len - suffix.len());
    there.copy_from_slice(&suffix);
    let start = file_len - tail::TAIL_LEN - len as u64;
    reader.read_exact_at(start, missing).map_err(reading)?;
    Ok(bytes)
}
