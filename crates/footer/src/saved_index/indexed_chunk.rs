//! A column chunk that an index located, decoded from its own bytes alone.

use std::ops::Range;

use crate::chunk::details::{self, ChunkDetails, Want};
use crate::chunk::rows::{Chunk, HAS_DICTIONARY, NO_METADATA, STATISTICS_NONE, STATISTICS_UNKNOWN};
use crate::chunk::statistics::{self, Statistics};
use crate::decode::scan;
use crate::error::{Error, Fault};
use crate::saved_index::WRITE_AGAIN;
use crate::saved_index::index::FooterIndex;
use crate::schema::enums::{Codec, EncodingSet, PhysicalType};
use crate::thrift::cursor::Cursor;
use crate::thrift::trace;

/// A chunk decoded through an index.
///
/// Accessors cost a load unless their description says more.
#[derive(Debug, Clone, Copy)]
pub struct IndexedChunk<'a> {
    /// The footer, or the part of it that starts with the chunk.
    bytes: &'a [u8],
    /// Where `bytes` start in the footer.
    base: u64,
    /// Its offset is relative to the start of `bytes`.
    chunk: Chunk,
    row_group: usize,
    column: usize,
}

impl<'a> IndexedChunk<'a> {
    /// Decodes the chunk at `at` of `bytes`, which start at byte `base` of the footer that `index` belongs
    /// to.
    pub(crate) fn decode(
        index: &FooterIndex,
        bytes: &'a [u8],
        at: usize,
        base: u64,
        (row_group, column): (usize, usize),
    ) -> Result<Self, Error> {
        let mut cursor = Cursor::new(bytes, at);
        let scanned = scan::column_chunk(&mut cursor).and_then(|chunk| {
            let own = bytes.get(at..cursor.at).unwrap_or_default();
            index.same_chunk(row_group, column, own).map_err(|kind| Fault::new(at, kind))?;
            Ok(chunk)
        });
        match scanned {
            Ok(chunk) => Ok(Self { bytes, base, chunk, row_group, column }),
            Err(fault) => Err(explain(bytes, at, base, (row_group, column), fault)),
        }
    }

    /// Whether the bytes start with a complete chunk.
    pub(crate) fn is_whole(bytes: &[u8]) -> bool {
        scan::column_chunk(&mut Cursor::new(bytes, 0)).is_ok()
    }

    pub(crate) fn error(bytes: &[u8], at: usize, place: (usize, usize), fault: Fault) -> Error {
        explain(bytes, at, 0, place, fault)
    }

    /// The row group's index.
    pub fn row_group(&self) -> usize {
        self.row_group
    }

    /// The column's index.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Whether the footer holds the chunk's metadata. If not, the column is encrypted with its own key and
    /// all numbers are 0.
    pub fn has_metadata(&self) -> bool {
        self.chunk.traits.flags & NO_METADATA == 0
    }

    /// The physical type.
    pub fn physical_type(&self) -> PhysicalType {
        PhysicalType::from_number(self.chunk.traits.physical_type)
    }

    /// How the pages are compressed.
    pub fn codec(&self) -> Codec {
        Codec::from_number(self.chunk.traits.codec)
    }

    /// The encodings used in the chunk.
    pub fn encodings(&self) -> EncodingSet {
        self.chunk.traits.encodings
    }

    /// The number of values, including nulls.
    pub fn num_values(&self) -> i64 {
        self.chunk.num_values
    }

    /// The size of all pages in the file in bytes, including headers.
    pub fn compressed_size(&self) -> i64 {
        self.chunk.compressed
    }

    /// The size of all pages before compression in bytes, including headers.
    pub fn uncompressed_size(&self) -> i64 {
        self.chunk.uncompressed
    }

    /// Where the first data page starts in the file.
    pub fn data_page_offset(&self) -> i64 {
        self.chunk.data_page_offset
    }

    /// Where the dictionary page starts in the file, as the footer states it.
    pub fn dictionary_page_offset(&self) -> Option<i64> {
        (self.chunk.traits.flags & HAS_DICTIONARY != 0).then_some(self.chunk.dictionary_page_offset)
    }

    /// The range of the chunk's pages in the file, starting with the dictionary page if present.
    pub fn byte_range(&self) -> Range<u64> {
        let start = crate::decode::file_metadata::first_byte_of(&self.chunk);
        // The scan rejects negative sizes.
        start..start.saturating_add(self.chunk.compressed as u64)
    }

    /// Bounds and counts, borrowed from the footer.
    ///
    /// Costs a walk over the chunk's struct.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn statistics(&self) -> Result<Option<Statistics<'a>>, Error> {
        let at = self.chunk.at as usize;
        let found = match self.chunk.statistics {
            STATISTICS_NONE => return Ok(None),
            STATISTICS_UNKNOWN => details::statistics(&mut Cursor::new(self.bytes, at)),
            place => statistics::statistics(&mut Cursor::new(self.bytes, at + usize::from(place))).map(Some),
        };
        found.map_err(|fault| explain(self.bytes, at, self.base, (self.row_group, self.column), fault))
    }

    /// Everything else that the footer states about the chunk.
    ///
    /// Costs a walk over the chunk's struct, and allocates its lists.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn details(&self) -> Result<ChunkDetails<'a>, Error> {
        let at = self.chunk.at as usize;
        details::column_chunk(&mut Cursor::new(self.bytes, at), Want::All)
            .map_err(|fault| explain(self.bytes, at, self.base, (self.row_group, self.column), fault))
    }
}

fn explain(bytes: &[u8], start: usize, base: u64, place: (usize, usize), fault: Fault) -> Error {
    let (row_group, column) = place;
    Error::new(fault.kind.to_string())
        .at_path(trace::path_in_chunk(bytes, start, row_group, column, fault.at))
        .at_offset(base + fault.at as u64)
        .with_advice(format!("the index belongs to another footer, or the footer is damaged: {WRITE_AGAIN}"))
}
