//! A footer that is indexed instead of decoded: every chunk is read and decoded on demand.
//!
//! ```text
//! Footer::index ── to_bytes ──▶ file ──▶ Footer::open_with_index ──chunk(row group, column)──▶ one small read
//! ```

use std::fs::File;
use std::path::Path;

use crate::error::Error;
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::source::{self, RangeReader};
use crate::open::tail;
use crate::saved_index::index::FooterIndex;
use crate::saved_index::indexed_chunk::IndexedChunk;
use crate::saved_index::{self, MAGIC};

/// How many bytes to read first for a chunk too long for its locator to hold the length.
const LONG_CHUNK: u64 = 1 << 17;

/// A footer whose chunks are located by an index.
#[derive(Debug)]
pub struct IndexedFooter<R = File> {
    reader: R,
    index: FooterIndex,
    /// Where the footer starts in the file.
    start: u64,
    name: String,
}

impl Footer {
    /// Returns the bytes of the footer's index: a file that has them is for [`Footer::open_with_index`].
    ///
    /// # Errors
    ///
    /// The footer was decoded only in part.
    pub fn index_bytes(&self) -> Result<Vec<u8>, Error> {
        let index = self.index().ok_or_else(|| {
            self.name_error(
                Error::new("expected a completely decoded footer, found a part of one").with_advice(
                    "decode all columns and row groups, or build the index with FooterIndex::build",
                ),
            )
        })?;
        Ok(index.to_bytes())
    }

    /// Opens a file by the saved index of its footer: decodes only the requested chunks, reading each chunk's
    /// own bytes.
    ///
    /// Costs a read of the index and samples of the footer.
    ///
    /// # Errors
    ///
    /// Either file cannot be read, or the index belongs to another footer.
    pub fn open_with_index(
        path: impl AsRef<Path>,
        index: impl AsRef<Path>,
    ) -> Result<IndexedFooter<File>, Error> {
        let path = path.as_ref();
        let index = FooterIndex::load(index)?;
        let (file, _) = source::open_regular(path)?;
        IndexedFooter::new(file, &path.display().to_string(), index)
    }
}

impl FooterIndex {
    /// Loads a saved index from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or does not contain an index.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (file, len) = source::open_regular(path)?;
        let reading = |error: std::io::Error| Error::io("reading the index", &error).in_path(path);
        // If the file is something else, nothing more is read, whatever its length.
        let mut start = [0; MAGIC.len()];
        let start = &mut start[..len.min(MAGIC.len() as u64) as usize];
        file.read_exact_at(0, start).map_err(reading)?;
        if *start != MAGIC {
            return Err(saved_index::no_index().in_path(path));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let bytes = allocate::zeroed_for("the index", len);
        let mut bytes = bytes.map_err(|error| error.in_path(path))?;
        file.read_exact_at(0, &mut bytes).map_err(reading)?;
        Self::from_bytes(bytes).map_err(|error| error.in_path(path))
    }
}

impl<R: RangeReader> IndexedFooter<R> {
    /// The footer at the end of `reader`, called `name` in errors, with its index.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, do not end like a Parquet file, or contain another footer than the indexed one.
    pub fn new(reader: R, name: &str, index: FooterIndex) -> Result<Self, Error> {
        let reading = |error: std::io::Error| Error::io("reading the footer", &error).in_file(name);
        let file_len = reader.len().map_err(reading)?;
        let mut end = [0; tail::TAIL_LEN as usize];
        let end = &mut end[..file_len.min(tail::TAIL_LEN) as usize];
        reader.read_exact_at(file_len - end.len() as u64, end).map_err(reading)?;
        let len = tail::metadata_len(end, file_len).map_err(|error| error.in_file(name))?;
        let start = file_len - tail::TAIL_LEN - len;
        index.fits_in(&reader, start, len).map_err(|error| error.in_file(name))?;
        Ok(Self { reader, index, start, name: name.to_string() })
    }

    /// The index.
    pub fn index(&self) -> &FooterIndex {
        &self.index
    }

    /// Reads one chunk into `buffer` and decodes it; `None` if the chunk does not exist.
    ///
    /// Costs one small read and a walk over the chunk's struct.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read or are not a column chunk.
    pub fn chunk<'b>(
        &self,
        row_group: usize,
        column: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<IndexedChunk<'b>>, Error> {
        let Some(place) = self.index.place(row_group, column) else { return Ok(None) };
        let left = self.index.footer_len().saturating_sub(place.at);
        let mut len = if place.len == 0 { LONG_CHUNK } else { place.len }.min(left);
        loop {
            buffer.clear();
            // No longer than the footer, which is part of the file.
            let room = buffer.try_reserve_exact(len as usize);
            room.map_err(|_| allocate::too_little("a column chunk", len as usize).in_file(&self.name))?;
            buffer.resize(len as usize, 0);
            self.reader
                .read_exact_at(self.start + place.at, buffer)
                .map_err(|error| Error::io("reading a column chunk", &error).in_file(&self.name))?;
            if place.len != 0 || len == left || IndexedChunk::is_whole(buffer) {
                break;
            }
            len = len.saturating_mul(8).min(left);
        }
        let buffer: &'b [u8] = buffer;
        let decoded = IndexedChunk::decode(&self.index, buffer, 0, place.at, (row_group, column));
        decoded.map(Some).map_err(|error| error.in_file(&self.name))
    }
}
