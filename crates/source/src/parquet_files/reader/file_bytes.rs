//! The bytes of a file for the `parquet` crate. Each read names its position, so that pages share one
//! descriptor, and the bytes of a small row group are read at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use sawmill_footer::RangeReader;
use sawmill_inspect::CorrectedHeaders;
use sawmill_store::ObjectReader;

use crate::object_bytes::ObjectBytes;

/// Most bytes of a row group that are read at once.
const FEW: u64 = 128 << 10;

/// A file or an object, open for reading.
pub(crate) type Readable = Arc<dyn RangeReader + Send + Sync>;

/// Headers of pages, by their places, for the `parquet` crate to read in place of the file's.
pub(crate) type Headers = Arc<BTreeMap<u64, Bytes>>;

/// The bytes of an open file or object, for the decoder of footers and for the `parquet` crate.
#[derive(Clone)]
pub struct FileBytes {
    file: Readable,
    length: u64,
    /// Bytes that were read already, and their position.
    held: (u64, Bytes),
    headers: Headers,
    stop: Option<Arc<AtomicBool>>,
}

impl FileBytes {
    /// Lets this flag, once it is raised, end the checks of pages.
    pub fn stopped_by(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
    }

    /// Lets the `parquet` crate read these headers of pages.
    pub(crate) fn with_headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }

    /// Lets decoders read these headers of pages in place of the file's.
    pub fn corrected(self, headers: CorrectedHeaders) -> Self {
        let headers = headers.into_iter().map(|(place, header)| (place, header.into())).collect();
        self.with_headers(Arc::new(headers))
    }

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// Its length cannot be determined.
    pub fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::new(Arc::new(file), length, 0..0))
    }

    /// Returns the bytes of an object.
    pub fn of_object(object: ObjectReader) -> Self {
        let length = object.object().size();
        Self::new(Arc::new(ObjectBytes(object)), length, 0..0)
    }

    /// Returns a file of this length. Reads the bytes of a range now, if they are few.
    pub(crate) fn new(file: Readable, length: u64, range: Range<u64>) -> Self {
        let few = range.end.min(length).checked_sub(range.start).filter(|few| *few <= FEW);
        let mut held = vec![0; few.unwrap_or(0) as usize];
        // A failed read is repeated when the bytes are needed, and reported then.
        if file.read_exact_at(range.start, &mut held).is_err() {
            held.clear();
        }
        Self { file, length, held: (range.start, held.into()), headers: Headers::default(), stop: None }
    }

    /// Returns the bytes already read, from `start` on.
    fn held_from(&self, start: u64) -> Option<Bytes> {
        let (first, bytes) = &self.held;
        let from = usize::try_from(start.checked_sub(*first)?).ok()?;
        (from < bytes.len()).then(|| bytes.slice(from..))
    }
}

impl RangeReader for FileBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.held_from(offset).as_deref().and_then(|held| held.get(..buffer.len())) {
            Some(held) => {
                buffer.copy_from_slice(held);
                Ok(())
            }
            None => self.file.read_exact_at(offset, buffer),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Relaxed))
    }
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for FileBytes {
    type T = Part;

    fn get_read(&self, start: u64) -> Result<Part> {
        let header = self.headers.get(&start).cloned();
        let (held, behind) = match header.or_else(|| self.held_from(start)) {
            Some(held) => {
                let behind = start + held.len() as u64;
                (held, behind)
            }
            None => (Bytes::new(), start),
        };
        let rest = Rest { file: Arc::clone(&self.file), at: behind, end: self.length };
        Ok(Part { held, rest, buffered: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let header = self.headers.get(&start).filter(|header| header.len() <= length);
        if let Some(header) = header {
            let behind = self.get_bytes(start + header.len() as u64, length - header.len())?;
            return Ok([&header[..], &behind[..]].concat().into());
        }
        if let Some(held) = self.held_from(start).filter(|held| held.len() >= length) {
            return Ok(held.slice(..length));
        }
        // The length comes from the file's metadata: never read more than the file has.
        if self.length.checked_sub(start).is_none_or(|left| left < length as u64) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from byte {start} on exceed the file's length of {}",
                self.length
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// The bytes of a file from a position on.
pub struct Part {
    held: Bytes,
    rest: Rest,
    buffered: Option<BufReader<Rest>>,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.held.has_remaining() {
            let few = buffer.len().min(self.held.remaining());
            self.held.copy_to_slice(&mut buffer[..few]);
            return Ok(few);
        }
        self.buffered.get_or_insert_with(|| BufReader::new(self.rest.clone())).read(buffer)
    }
}

/// The bytes of a file from a position on that were not read yet.
#[derive(Clone)]
struct Rest {
    file: Readable,
    at: u64,
    end: u64,
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let few = (buffer.len() as u64).min(self.end.saturating_sub(self.at)) as usize;
        self.file.read_exact_at(self.at, &mut buffer[..few])?;
        self.at += few as u64;
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Returns a file of 1,000 bytes that is partly read.
    fn bytes(held: Range<u64>) -> (Vec<u8>, FileBytes) {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (bytes, FileBytes::new(Arc::new(file), 1000, held))
    }

    #[test]
    fn bytes_are_those_of_the_file_whether_read_before_or_not() {
        for held in [0..0, 100..500, 0..1000, 900..5000] {
            let (all, file) = bytes(held.clone());
            for (start, length) in [(0, 1), (90, 20), (100, 400), (450, 100), (600, 10), (990, 10), (0, 1000)]
            {
                let expected = &all[start..start + length];
                assert_eq!(file.get_bytes(start as u64, length).unwrap(), expected, "{held:?}");
                let mut read = vec![0; length];
                file.get_read(start as u64).unwrap().read_exact(&mut read).unwrap();
                assert_eq!(read, expected, "{held:?}");
                RangeReader::read_exact_at(&file, start as u64, &mut read).unwrap();
                assert_eq!(read, expected, "{held:?}");
            }
            let mut read = Vec::new();
            file.get_read(450).unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read, all[450..], "{held:?}");
        }
    }

    #[test]
    fn bytes_after_the_end_are_an_error_and_take_no_memory() {
        let (_, file) = bytes(0..1000);
        for (start, length) in [(0, 1001), (999, 2), (1000, 1), (5000, 1), (u64::MAX, 1), (0, usize::MAX)] {
            assert!(file.get_bytes(start, length).is_err(), "{start} {length}");
        }
        let mut read = Vec::new();
        assert_eq!(file.get_read(2000).unwrap().read_to_end(&mut read).unwrap(), 0);
    }
}
