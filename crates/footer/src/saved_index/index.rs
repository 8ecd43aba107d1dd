//! An index of a footer: the location of every column chunk's struct in eight bytes per chunk, to be saved
//! beside the file.
//!
//! With it, a chunk of a footer of any size is decoded without walking what precedes it and without reading
//! the rest of the footer. The index includes the schema, decoded on demand, so that names need no walk
//! either. Its saved form ([`crate::saved_index`]) has a checksum over all of itself, the schema's bytes to
//! compare with the footer's, and a checksum of every chunk's struct: bytes that have changed since are never
//! decoded.

use std::sync::{Arc, OnceLock};

use crate::chunk::row::{Locator, locator};
use crate::error::{Error, Fault, FaultKind};
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::buffer::FooterBytes;
use crate::open::source::RangeReader;
use crate::options::Options;
use crate::saved_index::WRITE_AGAIN;
use crate::saved_index::indexed_chunk::IndexedChunk;
use crate::saved_index::pass;
use crate::saved_index::sum;
use crate::schema::arena::Schema;
use crate::thrift::cursor::{Cursor, STRUCT};

/// The number of samples in a footer's checksum and the length of each in bytes; and the length of the sample
/// at the end, where the offsets of the last row group depend on everything before them.
const SAMPLES: u64 = 16;
const SAMPLE_LEN: u64 = 64;
const END_LEN: u64 = 4096;

/// Where the column chunks of a footer are.
///
/// Accessors cost a few loads unless their description says more.
#[derive(Debug, Clone)]
pub struct FooterIndex {
    pub(crate) footer_len: u64,
    pub(crate) sum: u64,
    pub(crate) columns: usize,
    pub(crate) row_groups: usize,
    /// Eight bytes per chunk, little endian.
    pub(crate) locators: FooterBytes,
    pub(crate) chunk_sums: ChunkSums,
    pub(crate) schema: OnceLock<Arc<Schema>>,
    /// Where the schema's list starts in the footer.
    pub(crate) schema_at: u64,
    pub(crate) schema_bytes: FooterBytes,
}

/// The checksums of the chunks' structs.
#[derive(Debug, Clone)]
pub(crate) enum ChunkSums {
    /// Not computed yet: this is the indexed footer, from which they are computed when the index is saved.
    OfFooter(FooterBytes),
    /// Four bytes per chunk, little endian.
    Kept(FooterBytes),
}

/// Where a chunk is in the footer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkPlace {
    pub at: u64,
    /// 0 if unknown.
    pub len: u64,
}

impl Footer {
    /// The index of the footer, without another walk; `None` unless everything was decoded.
    pub fn index(&self) -> Option<FooterIndex> {
        let (columns, row_groups) = (self.num_columns(), self.num_row_groups());
        if columns != self.schema().num_leaves() || row_groups != self.num_row_groups_in_file() {
            return None;
        }
        let bytes = self.bytes.as_slice();
        let list = crate::decode::file_metadata::schema_list(bytes)?;
        let rows = &self.decoded.rows;
        // `None` if memory is short: the index needs a quarter of the rows' memory.
        let mut locators = allocate::with_room(rows.packed.len())?;
        for row in 0..rows.packed.len() {
            let chunk = rows.get(row);
            let at = chunk.at as usize;
            // Chunks of a row group are adjacent.
            let end = if (row + 1).is_multiple_of(columns) {
                let mut cursor = Cursor::new(bytes, at);
                cursor.skip(STRUCT).ok()?;
                cursor.at
            } else {
                rows.get(row + 1).at as usize
            };
            locators.push(locator(at, end, chunk.statistics));
        }
        Some(FooterIndex {
            footer_len: bytes.len() as u64,
            sum: sum_of(bytes),
            columns,
            row_groups,
            locators: Locators::shared(locators),
            chunk_sums: ChunkSums::OfFooter(self.bytes.clone()),
            schema: OnceLock::from(self.shared_schema()),
            schema_at: list.start as u64,
            schema_bytes: self.bytes.slice(list)?,
        })
    }
}

/// A checksum over samples of the footer. It distinguishes a rewritten file from the indexed one, at a cost
/// that does not depend on the footer's length.
fn samples(len: u64, mut read: impl FnMut(u64, &mut [u8]) -> std::io::Result<()>) -> std::io::Result<u64> {
    let mut sum = sum::START;
    let mut buffer = [0; END_LEN as usize];
    let parts = (0..SAMPLES).map(|sample| (len / SAMPLES * sample, SAMPLE_LEN));
    for (start, sample) in parts.chain([(len.saturating_sub(END_LEN), END_LEN)]) {
        let part = &mut buffer[..sample.min(len - start) as usize];
        read(start, part)?;
        sum = sum::with_bytes(sum, part);
    }
    Ok(sum)
}

fn sum_of(bytes: &[u8]) -> u64 {
    // Samples of a slice lie within it.
    samples(bytes.len() as u64, |at, part| RangeReader::read_exact_at(bytes, at, part)).unwrap_or_default()
}

impl FooterIndex {
    /// Builds the index of a footer by a pass that decodes nothing, much faster than decoding everything. Of
    /// the options, only the method and the number of threads matter.
    ///
    /// Costs one walk over the footer, and eight bytes a chunk.
    ///
    /// # Errors
    ///
    /// The bytes that the pass reads are not a `FileMetaData`.
    pub fn build(footer: impl Into<FooterBytes>, options: &Options) -> Result<Self, Error> {
        let shared = footer.into();
        let bytes = shared.as_slice();
        let found = pass::places(bytes, options)?;
        let schema_at = found.schema.start as u64;
        let schema_bytes = shared.slice(found.schema);
        Ok(Self {
            footer_len: bytes.len() as u64,
            sum: sum_of(bytes),
            columns: found.columns,
            row_groups: found.row_groups,
            locators: Locators::shared(found.locators),
            chunk_sums: ChunkSums::OfFooter(shared.clone()),
            schema: OnceLock::new(),
            schema_at,
            schema_bytes: schema_bytes.ok_or_else(|| Error::new("expected bytes that do not change"))?,
        })
    }

    /// Checks that the index belongs to this footer, by its length, its schema and samples of its other
    /// bytes. Each chunk's bytes are compared when the chunk is requested.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn fits(&self, footer: &[u8]) -> Result<(), Error> {
        self.fits_in(footer, 0, footer.len() as u64)
    }

    /// Like [`FooterIndex::fits`], for a footer that starts at byte `start` of `reader`; takes a few reads.
    pub(crate) fn fits_in<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        start: u64,
        len: u64,
    ) -> Result<(), Error> {
        let reading = |error: std::io::Error| Error::io("reading the footer", &error);
        if len != self.footer_len {
            return Err(self.other(len));
        }
        let found = samples(len, |at, part| reader.read_exact_at(start + at, part)).map_err(reading)?;
        let schema_end = self.schema_at.checked_add(self.schema_bytes.len() as u64);
        if found != self.sum || schema_end.is_none_or(|end| end > len) {
            return Err(self.other(len));
        }
        // No longer than the index, which is in memory.
        let mut schema = allocate::zeroed_for("the schema's bytes", self.schema_bytes.len())?;
        reader.read_exact_at(start + self.schema_at, &mut schema).map_err(reading)?;
        match schema == self.schema_bytes.as_slice() {
            true => Ok(()),
            false => Err(self.other(len)),
        }
    }

    fn other(&self, found: u64) -> Error {
        let expected = self.footer_len;
        Error::new(format!(
            "expected the indexed footer of {expected} bytes, found another one of {found} bytes"
        ))
        .with_advice(format!("the file has been rewritten: {WRITE_AGAIN}"))
    }

    /// The file's schema, decoded on first use.
    ///
    /// # Errors
    ///
    /// The schema is malformed, or its number of columns differs from the index's.
    pub fn schema(&self) -> Result<&Schema, Error> {
        if let Some(schema) = self.schema.get() {
            return Ok(schema);
        }
        let schema = Schema::read(&mut Cursor::new(self.schema_bytes.as_slice(), 0)).map_err(|fault| {
            Error::new(format!(
                "expected a schema in the index of the footer, found other bytes: {}",
                fault.kind
            ))
            .with_advice("the indexed footer is damaged")
        })?;
        if schema.num_leaves() != self.columns {
            let (leaves, columns) = (schema.num_leaves(), self.columns);
            let what = format!("expected a schema of {columns} columns like the row groups, found {leaves}");
            return Err(Error::new(what).with_advice("the indexed footer is damaged"));
        }
        Ok(self.schema.get_or_init(|| Arc::new(schema)))
    }

    /// The number of columns.
    pub fn num_columns(&self) -> usize {
        self.columns
    }

    /// The number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.row_groups
    }

    /// The length of the indexed footer in bytes.
    pub fn footer_len(&self) -> u64 {
        self.footer_len
    }

    pub(crate) fn place(&self, row_group: usize, column: usize) -> Option<ChunkPlace> {
        if column >= self.columns || row_group >= self.row_groups {
            return None;
        }
        let at = (row_group * self.columns + column) * 8;
        let locator = u64::from_le_bytes(*self.locators.as_slice().get(at..)?.first_chunk()?);
        Some(ChunkPlace { at: locator & 0xffff_ffff, len: locator >> 32 & 0xffff })
    }

    /// Checks that these are the bytes of a chunk's struct in the indexed footer, if the index has checksums:
    /// it has none until it is saved.
    pub(crate) fn same_chunk(&self, row_group: usize, column: usize, bytes: &[u8]) -> Result<(), FaultKind> {
        let ChunkSums::Kept(sums) = &self.chunk_sums else { return Ok(()) };
        let at = (row_group * self.columns + column) * 4;
        let expected =
            sums.as_slice().get(at..).and_then(<[u8]>::first_chunk).map(|sum| u32::from_le_bytes(*sum));
        let found = sum::of_chunk(bytes);
        let what = "as the checksum of the column chunk's bytes";
        match expected {
            Some(expected) if expected == found => Ok(()),
            _ => Err(FaultKind::Mismatch {
                what,
                expected: expected.unwrap_or_default().into(),
                found: found.into(),
            }),
        }
    }

    /// Decodes one chunk of the indexed footer; `None` if the chunk does not exist.
    ///
    /// Costs a walk over one chunk's struct.
    ///
    /// # Errors
    ///
    /// The footer's length or the chunk's bytes differ from the indexed footer's.
    pub fn chunk<'a>(
        &self,
        footer: &'a [u8],
        row_group: usize,
        column: usize,
    ) -> Result<Option<IndexedChunk<'a>>, Error> {
        let Some(place) = self.place(row_group, column) else { return Ok(None) };
        if footer.len() as u64 != self.footer_len {
            let (expected, found) = (self.footer_len, footer.len() as u64);
            let what = "bytes, as the indexed footer has";
            let fault = Fault::new(0, FaultKind::Mismatch { what, expected, found });
            return Err(IndexedChunk::error(footer, 0, (row_group, column), fault));
        }
        IndexedChunk::decode(self, footer, place.at as usize, 0, (row_group, column)).map(Some)
    }
}

/// Locators as bytes, in the order in which they are saved.
struct Locators(Vec<Locator>);

impl Locators {
    fn shared(mut locators: Vec<Locator>) -> FooterBytes {
        locators.iter_mut().for_each(|locator| *locator = locator.to_le());
        FooterBytes::from_owner(Self(locators))
    }
}

impl AsRef<[u8]> for Locators {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: any number is eight initialised bytes, and bytes need no alignment.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 8) }
    }
}
