//! A column chunk of a decoded footer.

use std::fmt;
use std::ops::Range;

use crate::chunk::details::{self, ChunkDetails, Want};
use crate::chunk::row_group::RowGroup;
use crate::chunk::rows::{
    Chunk, ENCRYPTED, HAS_DICTIONARY, NO_METADATA, STATISTICS_NONE, STATISTICS_UNKNOWN,
};
use crate::chunk::statistics::{self, SizeStatistics, Statistics};
use crate::decode::file_metadata;
use crate::error::{Error, Result};
use crate::matching::kernel::PREFETCH;
use crate::memory::pages::prefetch;
use crate::schema::element::Element;
use crate::schema::enums::{Codec, EncodingSet, PhysicalType};
use crate::thrift::cursor::Cursor;

/// A column chunk of a [`Footer`](crate::Footer).
///
/// The numbers needed for planning are available directly; everything else is decoded from the chunk's own
/// bytes by [`ColumnChunk::details`] and its siblings, in well under a microsecond.
///
/// Accessors without another note unpack the chunk's 32-byte row: a few nanoseconds, no allocation.
#[derive(Clone, Copy)]
pub struct ColumnChunk<'a> {
    pub(crate) group: RowGroup<'a>,
    pub(crate) position: usize,
    /// The chunk's row, decoded on demand.
    pub(crate) row: usize,
}

impl<'a> ColumnChunk<'a> {
    #[inline]
    pub(crate) fn chunk(&self) -> Chunk {
        self.group.footer.decoded.rows.get(self.row)
    }

    /// The row group that holds the chunk.
    #[inline]
    pub fn row_group(&self) -> RowGroup<'a> {
        self.group
    }

    /// The chunk's place among the decoded columns.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The index of the column among the schema's leaves.
    #[inline]
    pub fn leaf(&self) -> usize {
        self.group.footer.leaf_of(self.position).unwrap_or(self.position)
    }

    /// The column's element of the schema.
    pub fn element(&self) -> Element<'a> {
        let schema = self.group.footer.schema();
        // Decoded columns are always leaves of the schema.
        schema.leaf(self.leaf()).unwrap_or_else(|| schema.root())
    }

    /// The column's path: names joined by dots.
    ///
    /// Costs an allocation.
    pub fn path(&self) -> String {
        self.element().path()
    }

    /// Whether the footer holds the chunk's metadata. If not, the column is encrypted with its own key and
    /// all numbers are 0.
    #[inline]
    pub fn has_metadata(&self) -> bool {
        self.chunk().traits.flags & NO_METADATA == 0
    }

    /// Whether the column is encrypted.
    #[inline]
    pub fn is_encrypted(&self) -> bool {
        self.chunk().traits.flags & ENCRYPTED != 0
    }

    /// The physical type stated in the chunk.
    #[inline]
    pub fn physical_type(&self) -> PhysicalType {
        PhysicalType::from_number(self.chunk().traits.physical_type)
    }

    /// How the pages are compressed.
    #[inline]
    pub fn codec(&self) -> Codec {
        Codec::from_number(self.chunk().traits.codec)
    }

    /// The encodings used in the chunk.
    #[inline]
    pub fn encodings(&self) -> EncodingSet {
        self.chunk().traits.encodings
    }

    /// The number of values, including nulls.
    #[inline]
    pub fn num_values(&self) -> i64 {
        self.chunk().num_values
    }

    /// The size of all pages in the file in bytes, including headers.
    #[inline]
    pub fn compressed_size(&self) -> i64 {
        self.chunk().compressed
    }

    /// The size of all pages before compression in bytes, including headers.
    #[inline]
    pub fn uncompressed_size(&self) -> i64 {
        self.chunk().uncompressed
    }

    /// Where the first data page starts in the file.
    #[inline]
    pub fn data_page_offset(&self) -> i64 {
        self.chunk().data_page_offset
    }

    /// Where the dictionary page starts in the file, as the footer states it. Some writers state 0 for a
    /// chunk without a dictionary; [`ColumnChunk::byte_range`] handles this.
    #[inline]
    pub fn dictionary_page_offset(&self) -> Option<i64> {
        (self.chunk().traits.flags & HAS_DICTIONARY != 0).then_some(self.chunk().dictionary_page_offset)
    }

    /// The range of the chunk's pages in the file, starting with the dictionary page if present. It is longer than
    /// [`ColumnChunk::compressed_size`] in files of `parquet-mr` before 1.2.9, which forgot the dictionary's header.
    /// If that size cannot be true, the range ends where the next chunk, an index or the footer starts.
    pub fn byte_range(&self) -> Range<u64> {
        let stated = self.stated_range();
        stated.start..self.end(&stated)
    }

    /// The range that the footer states.
    pub(crate) fn stated_range(&self) -> Range<u64> {
        let chunk = self.chunk();
        let start = file_metadata::first_byte_of(&chunk);
        // The scan rejects negative sizes.
        start..start.saturating_add(chunk.compressed as u64)
    }

    /// Checks whether a reader of this format version can read the column, as far as the footer tells. An unknown
    /// encoding matters only if a page has it.
    ///
    /// Costs a few comparisons; an error allocates.
    ///
    /// # Errors
    ///
    /// The chunk is encrypted, or its type or codec is unknown.
    pub fn readable(&self) -> Result<()> {
        let what = if !self.has_metadata() || self.is_encrypted() {
            "expected an unencrypted column, found an encrypted column".to_string()
        } else if !self.physical_type().is_known() {
            format!("expected a type of the format, found {}", self.physical_type())
        } else if self.element().physical_type() != Some(self.physical_type()) {
            let of_schema = self.element().physical_type();
            let expected = of_schema.map(|wanted| wanted.to_string()).unwrap_or_default();
            format!("expected the schema's type {expected}, found {}", self.physical_type())
        } else if !self.codec().is_known() {
            format!("expected a codec of the format, found {}", self.codec())
        } else {
            return Ok(());
        };
        let error = Error::new(what)
            .at_path(format!("row_groups[{}].columns[{}].meta_data", self.group.index(), self.leaf()))
            .with_advice(format!("leave out the column `{}`; the other columns can be read", self.path()));
        Err(self.group.footer.name_error(error))
    }

    /// Where the chunk's struct starts in the footer.
    pub fn footer_offset(&self) -> usize {
        self.chunk().at as usize
    }

    fn decode(&self, want: Want) -> Result<ChunkDetails<'a>> {
        let footer = self.group.footer;
        let mut cursor = Cursor::new(footer.bytes.as_slice(), self.chunk().at as usize);
        let mut found =
            details::column_chunk(&mut cursor, want).map_err(|fault| footer.chunk_error(fault, self))?;
        if !self.wants_statistics() {
            found.statistics = None;
        }
        Ok(found)
    }

    /// Whether [`Options::statistics`](crate::Options::statistics) includes this chunk.
    #[inline]
    fn wants_statistics(&self) -> bool {
        match &self.group.footer.decoded.with_statistics {
            None => true,
            Some(columns) => columns.binary_search(&(self.leaf() as u32)).is_ok(),
        }
    }

    /// Everything else that the footer states about the chunk.
    ///
    /// Costs a walk over the chunk's struct, up to a microsecond, and allocates its lists.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn details(&self) -> Result<ChunkDetails<'a>> {
        self.decode(Want::All)
    }

    /// The file path and the locations of the page indexes, the bloom filter and the index page. Skips nested
    /// values, which avoids allocating them.
    ///
    /// Costs a walk over the chunk's struct, some 100 ns.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn locations(&self) -> Result<ChunkDetails<'a>> {
        self.decode(Want::Locations)
    }

    /// Bounds and counts, borrowed from the footer.
    ///
    /// Costs the decoding of one struct, 20 to 50 ns: the place is known from decoding the footer.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn statistics(&self) -> Result<Option<Statistics<'a>>> {
        let footer = self.group.footer;
        if !self.wants_statistics() {
            return Ok(None);
        }
        let bytes = footer.bytes.as_slice();
        let (at, place) = footer.decoded.rows.statistics(self.row);
        let mut cursor = Cursor::new(bytes, at);
        match place {
            STATISTICS_NONE => return Ok(None),
            STATISTICS_UNKNOWN => match details::statistics_at(&mut cursor) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(fault) => return Err(footer.chunk_error(fault, self)),
            },
            place => cursor.at += usize::from(place),
        }
        // A caller usually asks for the neighbours' statistics next.
        prefetch(bytes, cursor.at, PREFETCH);
        if let Some((found, _)) = statistics::usual(bytes, cursor.at) {
            return Ok(Some(found));
        }
        statistics::any(&mut cursor).map(Some).map_err(|fault| footer.chunk_error(fault, self))
    }

    /// The number of nulls, if the chunk's statistics state it.
    ///
    /// Costs what [`ColumnChunk::statistics`] does.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn null_count(&self) -> Result<Option<i64>> {
        Ok(self.statistics()?.and_then(|statistics| statistics.null_count))
    }

    /// Sizes and level histograms.
    ///
    /// Costs what [`ColumnChunk::details`] does.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn size_statistics(&self) -> Result<Option<SizeStatistics>> {
        Ok(self.details()?.size_statistics)
    }

    /// The range of the offset index in the file; `None` if the chunk has none.
    ///
    /// Costs what [`ColumnChunk::locations`] does.
    ///
    /// # Errors
    ///
    /// A value is malformed or negative.
    pub fn offset_index_range(&self) -> Result<Option<Range<u64>>> {
        let found = self.locations()?;
        self.index_range("offset_index", found.offset_index_offset, found.offset_index_length)
    }

    /// The range of the column index in the file; `None` if the chunk has none.
    ///
    /// Costs what [`ColumnChunk::locations`] does.
    ///
    /// # Errors
    ///
    /// A value is malformed or negative.
    pub fn column_index_range(&self) -> Result<Option<Range<u64>>> {
        let found = self.locations()?;
        self.index_range("column_index", found.column_index_offset, found.column_index_length)
    }

    pub(crate) fn index_range(
        &self,
        name: &str,
        offset: Option<i64>,
        length: Option<i32>,
    ) -> Result<Option<Range<u64>>> {
        let (Some(offset), Some(length)) = (offset, length) else { return Ok(None) };
        match (u64::try_from(offset), u64::try_from(length)) {
            (Ok(offset), Ok(length)) => Ok(Some(offset..offset.saturating_add(length))),
            _ => {
                let what = format!("expected a non-negative offset and length, found {offset} and {length}");
                let path =
                    format!("row_groups[{}].columns[{}].{name}_offset", self.group.index(), self.leaf());
                Err(self.group.footer.name_error(Error::new(what).at_path(path)))
            }
        }
    }
}

impl fmt::Debug for ColumnChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnChunk")
            .field("path", &self.path())
            .field("physical_type", &self.physical_type())
            .field("codec", &self.codec())
            .field("encodings", &self.encodings())
            .field("num_values", &self.num_values())
            .field("compressed_size", &self.compressed_size())
            .field("uncompressed_size", &self.uncompressed_size())
            .field("data_page_offset", &self.data_page_offset())
            .field("dictionary_page_offset", &self.dictionary_page_offset())
            .finish()
    }
}
