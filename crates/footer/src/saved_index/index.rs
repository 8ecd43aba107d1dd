//! An index of a footer: where every column chunk's struct stands, eight bytes a chunk, to be kept
//! beside the file.
//!
//! With it, a chunk of a footer of any size is decoded without walking what is before it, and nothing
//! else of the footer is read. The schema is part of the index, so that names need no walk either; it
//! is decoded when asked for. As bytes ([`crate::saved_index`]) it has a checksum over all of itself, the schema's bytes
//! to compare with the footer's, and a sum of every chunk's struct: nothing is given of bytes that changed since.

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

/// Samples that the sum of a footer is made of, and the bytes of each; and the bytes at the end, in
/// which the offsets of the last row group tell of all before them.
const SAMPLES: u64 = 16;
const SAMPLE_LEN: u64 = 64;
const END_LEN: u64 = 4096;

/// Where the column chunks of a footer stand.
#[derive(Debug, Clone)]
pub struct FooterIndex {
    pub(crate) footer_len: u64,
    pub(crate) sum: u64,
    pub(crate) columns: usize,
    pub(crate) row_groups: usize,
    /// Eight bytes a chunk, little endian.
    pub(crate) locators: FooterBytes,
    pub(crate) chunk_sums: ChunkSums,
    pub(crate) schema: OnceLock<Arc<Schema>>,
    /// Where the schema's list starts in the footer.
    pub(crate) schema_at: u64,
    pub(crate) schema_bytes: FooterBytes,
}

/// The sums of the chunks' structs.
#[derive(Debug, Clone)]
pub(crate) enum ChunkSums {
    /// Those of the footer that the index was made of, of which they are taken when the index is kept.
    OfFooter(FooterBytes),
    /// Four bytes a chunk, little endian.
    Kept(FooterBytes),
}

/// Where a chunk stands in the footer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    pub at: u64,
    /// 0 if it is not known.
    pub len: u64,
}

impl Footer {
    /// The index of the footer, without another walk; none unless all of it was decoded.
    pub fn index(&self) -> Option<FooterIndex> {
        let (columns, row_groups) = (self.num_columns(), self.num_row_groups());
        if columns != self.schema().num_leaves() || row_groups != self.num_row_groups_in_file() {
            return None;
        }
        let bytes = self.bytes.as_slice();
        let list = crate::decode::file_metadata::schema_list(bytes)?;
        let rows = &self.decoded.rows;
        // Without memory for it there is none either: it is a quarter of what the rows take.
        let mut locators = allocate::with_room(rows.packed.len())?;
        for row in 0..rows.packed.len() {
            let chunk = rows.get(row);
            let at = chunk.at as usize;
            // Chunks of a row group stand one right behind the other.
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

/// A sum over samples of the footer, the same for the same footer: enough to tell a file that was
/// written anew from the one that was indexed, at a cost that does not grow with it.
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
    /// Makes the index of a footer by a pass that decodes nothing: much faster than a whole decode. Of
    /// the options, the method and the threads count.
    ///
    /// # Errors
    ///
    /// The bytes are no `FileMetaData`, as far as the pass looks.
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
            schema_bytes: schema_bytes.ok_or_else(|| Error::new("expected bytes that stay the same"))?,
        })
    }

    /// Whether the index is of this footer, as far as its length, its schema and samples of its other bytes tell. Each
    /// chunk's bytes are compared when the chunk is asked for.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn fits(&self, footer: &[u8]) -> Result<(), Error> {
        self.fits_in(footer, 0, footer.len() as u64)
    }

    /// As [`FooterIndex::fits`], of a footer that starts at byte `start` of `reader`; a few reads.
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
        Error::new(format!("expected the indexed footer of {expected} bytes, found another one, of {found}"))
            .with_advice(format!("the file was written anew: {WRITE_AGAIN}"))
    }

    /// The file's schema, decoded when first asked for.
    ///
    /// # Errors
    ///
    /// The schema is malformed, or has another number of columns than the index.
    pub fn schema(&self) -> Result<&Schema, Error> {
        if let Some(schema) = self.schema.get() {
            return Ok(schema);
        }
        let schema = Schema::read(&mut Cursor::new(self.schema_bytes.as_slice(), 0)).map_err(|fault| {
            Error::new(format!(
                "expected a schema in the index of the footer, found other bytes: {}",
                fault.kind
            ))
            .with_advice("the footer that was indexed is damaged")
        })?;
        if schema.num_leaves() != self.columns {
            let (leaves, columns) = (schema.num_leaves(), self.columns);
            let what = format!("expected a schema of {columns} columns, as row groups have, found {leaves}");
            return Err(Error::new(what).with_advice("the footer that was indexed is damaged"));
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

    /// The length of the footer that was indexed.
    pub fn footer_len(&self) -> u64 {
        self.footer_len
    }

    pub(crate) fn place(&self, row_group: usize, column: usize) -> Option<Place> {
        if column >= self.columns || row_group >= self.row_groups {
            return None;
        }
        let at = (row_group * self.columns + column) * 8;
        let locator = u64::from_le_bytes(*self.locators.as_slice().get(at..)?.first_chunk()?);
        Some(Place { at: locator & 0xffff_ffff, len: locator >> 32 & 0xffff })
    }

    /// Whether these are the bytes of a chunk's struct in the footer that was indexed, as far as the index knows: one
    /// that was not kept has no sums.
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

    /// Decodes one chunk of the footer that was indexed; none if there is no such chunk.
    ///
    /// # Errors
    ///
    /// The footer is not the one that was indexed, as far as its length and the chunk's bytes tell.
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

/// Locators as bytes, in the order that they are kept in.
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
