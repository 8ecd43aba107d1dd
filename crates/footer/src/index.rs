//! An index of a footer: where every column chunk's struct stands, eight bytes a chunk, to be kept
//! beside the file.
//!
//! With it, a chunk of a footer of any size is decoded without walking what is before it, and nothing
//! else of the footer is read. The schema is part of the index, so that names need no walk either; it
//! is decoded when asked for.
//!
//! ```text
//! magic (8) | footer length (8) | sum of the footer (8) | columns (8) | row groups (8)
//! | locators (8 each, row group by row group) | schema's list as in the footer
//! ```

use std::sync::{Arc, OnceLock};

use crate::buffer::FooterBytes;
use crate::error::{Error, Fault, FaultKind};
use crate::footer::Footer;
use crate::index_pass;
use crate::indexed_chunk::IndexedChunk;
use crate::options::Options;
use crate::row::{Locator, locator};
use crate::schema::Schema;
use crate::source::RangeReader;
use crate::thrift::{Cursor, STRUCT};

/// The first bytes of an index; the last of them is the version.
const MAGIC: [u8; 8] = *b"SAWFIDX3";

/// Bytes before the locators.
const HEAD: usize = 40;

/// Samples that the sum of a footer is made of, and the bytes of each; and the bytes at the end, in
/// which the offsets of the last row group tell of all before them.
const SAMPLES: u64 = 16;
const SAMPLE_LEN: u64 = 64;
const END_LEN: u64 = 4096;

/// Where the column chunks of a footer stand.
#[derive(Debug, Clone)]
pub struct FooterIndex {
    footer_len: u64,
    sum: u64,
    columns: usize,
    row_groups: usize,
    /// Eight bytes a chunk, little endian.
    locators: FooterBytes,
    schema: OnceLock<Arc<Schema>>,
    schema_bytes: FooterBytes,
}

/// Where a chunk stands in the footer.
#[derive(Debug, Clone, Copy)]
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
        let list = crate::decode::schema_list(bytes)?;
        let rows = &self.decoded.rows;
        let mut locators = Vec::with_capacity(rows.packed.len());
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
            schema: OnceLock::from(self.shared_schema()),
            schema_bytes: self.bytes.slice(list)?,
        })
    }
}

/// A sum over samples of the footer, the same for the same footer: enough to tell a file that was
/// written anew from the one that was indexed, at a cost that does not grow with it.
fn sum(len: u64, mut read: impl FnMut(u64, &mut [u8]) -> std::io::Result<()>) -> std::io::Result<u64> {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let mut buffer = [0; END_LEN as usize];
    let samples = (0..SAMPLES).map(|sample| (len / SAMPLES * sample, SAMPLE_LEN));
    for (start, sample) in samples.chain([(len.saturating_sub(END_LEN), END_LEN)]) {
        let part = &mut buffer[..sample.min(len - start) as usize];
        read(start, part)?;
        for bytes in part.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            // As FNV-1a, by words: the rotation brings the high bits, which no product reaches, down.
            sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
    Ok(sum)
}

fn sum_of(bytes: &[u8]) -> u64 {
    // Samples of a slice lie within it.
    sum(bytes.len() as u64, |at, part| RangeReader::read_exact_at(bytes, at, part)).unwrap_or_default()
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
        let found = index_pass::places(bytes, options)?;
        let schema_bytes = shared.slice(found.schema);
        Ok(Self {
            footer_len: bytes.len() as u64,
            sum: sum_of(bytes),
            columns: found.columns,
            row_groups: found.row_groups,
            locators: Locators::shared(found.locators),
            schema: OnceLock::new(),
            schema_bytes: schema_bytes.ok_or_else(|| Error::new("expected bytes that stay the same"))?,
        })
    }

    /// The index as bytes, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.locators.len() + self.schema_bytes.len());
        bytes.extend_from_slice(&MAGIC);
        for number in [self.footer_len, self.sum, self.columns as u64, self.row_groups as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.locators.as_slice());
        bytes.extend_from_slice(self.schema_bytes.as_slice());
        bytes
    }

    /// The index of kept bytes, which it shares.
    ///
    /// # Errors
    ///
    /// The bytes are no index, or not of this version.
    pub fn from_bytes(bytes: impl Into<FooterBytes>) -> Result<Self, Error> {
        let shared = bytes.into();
        let bytes = shared.as_slice();
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(wrong());
        }
        let number =
            |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)) };
        let head = || Some((number(8)?, number(16)?, number(24)?, number(32)?));
        let (footer_len, sum, columns, row_groups) = head().ok_or_else(wrong)?;
        let count = columns.checked_mul(row_groups).and_then(|count| usize::try_from(count).ok());
        let end = count.and_then(|count| count.checked_mul(8)?.checked_add(HEAD)).ok_or_else(wrong)?;
        Ok(Self {
            footer_len,
            sum,
            columns: usize::try_from(columns).map_err(|_| wrong())?,
            row_groups: usize::try_from(row_groups).map_err(|_| wrong())?,
            locators: shared.slice(HEAD..end).ok_or_else(wrong)?,
            schema: OnceLock::new(),
            schema_bytes: shared.slice(end..bytes.len()).ok_or_else(wrong)?,
        })
    }

    /// Whether the index is of this footer, as far as its length and samples of its bytes tell.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn fits(&self, footer: &[u8]) -> Result<(), Error> {
        match footer.len() as u64 == self.footer_len && sum_of(footer) == self.sum {
            true => Ok(()),
            false => Err(self.other(footer.len() as u64)),
        }
    }

    /// As [`FooterIndex::fits`], of a footer that starts at byte `start` of `reader`; a few small reads.
    pub(crate) fn fits_in<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        start: u64,
        len: u64,
    ) -> Result<(), Error> {
        if len != self.footer_len {
            return Err(self.other(len));
        }
        let found = sum(len, |at, part| reader.read_exact_at(start + at, part));
        match found.map_err(|error| Error::io("reading the footer", &error))? == self.sum {
            true => Ok(()),
            false => Err(self.other(len)),
        }
    }

    fn other(&self, found: u64) -> Error {
        let expected = self.footer_len;
        Error::new(format!("expected the indexed footer of {expected} bytes, found another one, of {found}"))
            .with_advice("the file was written anew: make the index anew")
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
        let schema = Schema::read(&mut Cursor::new(self.schema_bytes.as_slice(), 0)).map_err(|_| wrong())?;
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
        let Some(place) = self.place(row_group, column) else { return Ok(None) };
        if footer.len() as u64 != self.footer_len {
            let (expected, found) = (self.footer_len, footer.len() as u64);
            let what = "bytes, as the indexed footer has";
            let fault = Fault::new(0, FaultKind::Mismatch { what, expected, found });
            return Err(IndexedChunk::error(footer, 0, (row_group, column), fault));
        }
        IndexedChunk::decode(footer, place.at as usize, 0, (row_group, column)).map(Some)
    }
}

fn wrong() -> Error {
    Error::new("expected an index of a footer, found other bytes or a part of one")
        .with_advice("make the index anew")
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
