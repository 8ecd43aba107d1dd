//! An index of a footer: where every column chunk's struct stands, four bytes a chunk, to be kept beside
//! the file.
//!
//! With it, a chunk of a footer of any size is decoded without walking what is before it, and of a
//! mapped footer only the touched pages are read. The schema is part of the index, so that names need
//! no walk either.
//!
//! ```text
//! magic (8) | footer length (8) | sum of the footer (8) | columns (8) | row groups (8)
//! | places (4 each, row group by row group) | schema's list as in the footer
//! ```

use std::sync::Arc;

use crate::buffer::FooterBytes;
use crate::error::{Error, Fault, FaultKind};
use crate::footer::Footer;
use crate::rows::Chunk;
use crate::scan;
use crate::schema::Schema;
use crate::thrift::Cursor;
use crate::trace;

/// The first bytes of an index; the last of them is the version.
const MAGIC: [u8; 8] = *b"SAWFIDX1";

/// Bytes before the places.
const HEAD: usize = 40;

/// Where the column chunks of a footer stand.
#[derive(Debug, Clone)]
pub struct FooterIndex {
    footer_len: u64,
    sum: u64,
    columns: usize,
    row_groups: usize,
    places: Vec<u32>,
    schema: Arc<Schema>,
    schema_bytes: FooterBytes,
}

/// A chunk decoded by way of an index.
#[derive(Debug, Clone, Copy)]
pub struct IndexedChunk<'a> {
    bytes: &'a [u8],
    chunk: Chunk,
    row_group: usize,
    column: usize,
}

impl Footer {
    /// The index of the footer; none unless all of it was decoded.
    pub fn index(&self) -> Option<FooterIndex> {
        let (columns, row_groups) = (self.num_columns(), self.num_row_groups());
        if columns != self.schema().num_leaves() || row_groups != self.num_row_groups_in_file() {
            return None;
        }
        let bytes = self.bytes.as_slice();
        let list = crate::decode::schema_list(bytes)?;
        Some(FooterIndex {
            footer_len: bytes.len() as u64,
            sum: sum(bytes),
            columns,
            row_groups,
            places: self.decoded.rows.packed.iter().map(|row| row[3] as u32).collect(),
            schema: self.shared_schema(),
            schema_bytes: self.bytes.slice(list)?,
        })
    }
}

/// A sum over samples of the footer, the same for the same footer: enough to tell a file that was
/// written anew from the one that was indexed, at a cost that does not grow with it.
fn sum(bytes: &[u8]) -> u64 {
    let step = (bytes.len() / 4096).max(1);
    let ends = bytes.iter().rev().take(64);
    bytes.iter().step_by(step).chain(ends).fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| {
        // FNV-1a.
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl FooterIndex {
    /// The index as bytes, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.places.len() * 4 + self.schema_bytes.len());
        bytes.extend_from_slice(&MAGIC);
        for number in [self.footer_len, self.sum, self.columns as u64, self.row_groups as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.places.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
        bytes.extend_from_slice(self.schema_bytes.as_slice());
        bytes
    }

    /// The index of kept bytes.
    ///
    /// # Errors
    ///
    /// The bytes are no index, or not of this version.
    pub fn from_bytes(bytes: impl Into<FooterBytes>) -> Result<Self, Error> {
        let shared = bytes.into();
        let bytes = shared.as_slice();
        let wrong = || {
            Error::new("expected an index of a footer, found other bytes or a part of one")
                .with_advice("make the index anew")
        };
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(wrong());
        }
        let number =
            |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)) };
        let head = || Some((number(8)?, number(16)?, number(24)?, number(32)?));
        let (footer_len, sum, columns, row_groups) = head().ok_or_else(wrong)?;
        let count = columns.checked_mul(row_groups).and_then(|count| usize::try_from(count).ok());
        let end = count.and_then(|count| count.checked_mul(4)?.checked_add(HEAD)).ok_or_else(wrong)?;
        let places = bytes.get(HEAD..end).ok_or_else(wrong)?;
        let places =
            places.chunks_exact(4).map(|place| u32::from_le_bytes([place[0], place[1], place[2], place[3]]));
        let schema_bytes = shared.slice(end..bytes.len()).ok_or_else(wrong)?;
        let schema = Schema::read(&mut Cursor::new(schema_bytes.as_slice(), 0)).map_err(|_| wrong())?;
        if schema.num_leaves() as u64 != columns {
            return Err(wrong());
        }
        Ok(Self {
            footer_len,
            sum,
            columns: schema.num_leaves(),
            // No more than places, of which there are fewer than bytes; without columns, a number only.
            row_groups: usize::try_from(row_groups).map_err(|_| wrong())?,
            places: places.collect(),
            schema: Arc::new(schema),
            schema_bytes,
        })
    }

    /// Whether the index is of this footer, as far as its length and samples of its bytes tell.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn fits(&self, footer: &[u8]) -> Result<(), Error> {
        if footer.len() as u64 == self.footer_len && sum(footer) == self.sum {
            return Ok(());
        }
        let (expected, found) = (self.footer_len, footer.len());
        Err(Error::new(format!(
            "expected the indexed footer of {expected} bytes, found another one, of {found}"
        ))
        .with_advice("the file was written anew: make the index anew"))
    }

    /// The file's schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The number of columns.
    pub fn num_columns(&self) -> usize {
        self.columns
    }

    /// The number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.row_groups
    }

    /// Decodes one chunk of the footer that was indexed; none if there is no such chunk.
    ///
    /// # Errors
    ///
    /// The footer is not the one that was indexed, as far as the place of the chunk tells.
    pub fn chunk<'a>(
        &self,
        footer: &'a [u8],
        row_group: usize,
        column: usize,
    ) -> Result<Option<IndexedChunk<'a>>, Error> {
        if column >= self.columns || row_group >= self.row_groups {
            return Ok(None);
        }
        let Some(&place) = self.places.get(row_group * self.columns + column) else { return Ok(None) };
        let decode = || {
            if footer.len() as u64 != self.footer_len {
                let (expected, found) = (self.footer_len, footer.len() as u64);
                let what = "bytes, as the indexed footer has";
                return Err(Fault::new(0, FaultKind::Mismatch { what, expected, found }));
            }
            scan::column_chunk(&mut Cursor::new(footer, place as usize))
        };
        match decode() {
            Ok(chunk) => Ok(Some(IndexedChunk { bytes: footer, chunk, row_group, column })),
            Err(fault) => Err(explain(footer, place as usize, row_group, column, fault)),
        }
    }
}

fn explain(bytes: &[u8], start: usize, row_group: usize, column: usize, fault: Fault) -> Error {
    Error::new(fault.kind.to_string())
        .at_path(trace::path_in_chunk(bytes, start, row_group, column, fault.at))
        .at_offset(fault.at as u64)
        .with_advice("the index is of another footer, or either is damaged: make the index anew")
}

impl<'a> IndexedChunk<'a> {
    /// The physical type.
    pub fn physical_type(&self) -> crate::PhysicalType {
        crate::PhysicalType::from_number(self.chunk.traits.physical_type)
    }

    /// How the pages are compressed.
    pub fn codec(&self) -> crate::Codec {
        crate::Codec::from_number(self.chunk.traits.codec)
    }

    /// The encodings that occur in the chunk.
    pub fn encodings(&self) -> crate::EncodingSet {
        self.chunk.traits.encodings
    }

    /// The number of values, nulls among them.
    pub fn num_values(&self) -> i64 {
        self.chunk.num_values
    }

    /// Bytes of all pages before compression.
    pub fn uncompressed_size(&self) -> i64 {
        self.chunk.uncompressed
    }

    /// The chunk's pages in the file, from its dictionary page on.
    pub fn byte_range(&self) -> std::ops::Range<u64> {
        let start = crate::decode::first_byte_of(&self.chunk);
        // Sizes are never negative: the scan refuses them.
        start..start.saturating_add(self.chunk.compressed as u64)
    }

    /// Everything else that the footer says of the chunk.
    ///
    /// # Errors
    ///
    /// A value is malformed.
    pub fn details(&self) -> Result<crate::ChunkDetails<'a>, Error> {
        let start = self.chunk.at as usize;
        let mut cursor = Cursor::new(self.bytes, start);
        crate::details::column_chunk(&mut cursor, crate::details::Want::All)
            .map_err(|fault| explain(self.bytes, start, self.row_group, self.column, fault))
    }
}
