//! Reads one column chunk page by page.
//!
//! ```text
//! page ─┬─ definition levels ─▶ bitmap ───────────────────────────┐
//!       └─ plain values, or indices ─▶ entries ─▶ values ─▶ spread over the rows that have one
//! ```
//!
//! A [`Stored`] knows how values are stored and converts them. Plain values of one page without NULLs are not
//! even copied, if the [`Stored`] can use them in place.

use arrow_buffer::bit_chunk_iterator::BitChunks;
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

use super::NotRead;
use super::hybrid::Hybrid;

/// The storage of a column chunk's plain values, which are not dictionary indices.
pub(super) trait Stored {
    /// The converted value.
    type Value: ArrowNativeType;

    /// Starts another array.
    fn start_array(&mut self) {}

    /// Starts a data page of plain values, with all of their bytes.
    fn start_page(&mut self, _values: &Bytes) {}

    /// Converts the entries of the dictionary, the only one of the chunk, which precedes all values.
    fn entries(&mut self, mut page: Bytes, count: usize) -> Result<Vec<Self::Value>, NotRead> {
        let mut entries = Vec::new();
        self.values(&mut page, count, &mut entries)?;
        Ok(entries)
    }

    /// Splits the next values off the bytes of a page and appends them.
    fn values(&mut self, bytes: &mut Bytes, count: usize, to: &mut Vec<Self::Value>) -> Result<(), NotRead>;

    /// Returns the next values in place, if they can be used there.
    fn in_place(&self, _bytes: &mut Bytes, _count: usize) -> Option<Buffer> {
        None
    }
}

/// A column chunk, and how far it has been read.
pub(super) struct PagedColumn<S: Stored> {
    pages: Box<dyn PageReader>,
    /// Whether the pages have definition levels.
    optional: bool,
    pub stored: S,
    dictionary: Vec<S::Value>,
    page: DataPage,
    /// Values that are not NULL, before they are spread over the rows.
    dense: Vec<S::Value>,
}

/// The part of a page not yet read.
struct DataPage {
    rows: usize,
    levels: Option<Hybrid>,
    values: Values,
}

enum Values {
    Plain(Bytes),
    Indices(Hybrid),
}

impl<S: Stored> PagedColumn<S> {
    pub(super) fn new(pages: Box<dyn PageReader>, optional: bool, stored: S) -> Self {
        let page = DataPage { rows: 0, levels: None, values: Values::Plain(Bytes::new()) };
        Self { pages, optional, stored, dictionary: Vec::new(), page, dense: Vec::new() }
    }

    /// Skips rows.
    pub(super) fn skip(&mut self, rows: usize) -> Result<(), NotRead> {
        let mut left = rows;
        while left > 0 {
            if self.page.rows == 0 {
                let next = self.pages.peek_next_page()?.ok_or(NotRead)?;
                match next.num_rows.or(next.num_levels) {
                    Some(rows) if !next.is_dict && rows <= left => {
                        self.pages.skip_next_page()?;
                        left -= rows;
                    }
                    _ => self.next_page()?,
                }
                continue;
            }
            let rows = left.min(self.page.rows);
            self.read(rows)?;
            left -= rows;
        }
        Ok(())
    }

    /// Reads the next rows: values, arbitrary in place of NULLs.
    pub(super) fn read(&mut self, rows: usize) -> Result<(Buffer, Option<NullBuffer>), NotRead> {
        let mut bitmap = BooleanBufferBuilder::new(if self.optional { rows } else { 0 });
        let mut values: Vec<S::Value> = Vec::new();
        self.stored.start_array();
        let mut read = 0;
        while read < rows {
            while self.page.rows == 0 {
                self.next_page()?;
            }
            let taken = self.page.rows.min(rows - read);
            let present = match &mut self.page.levels {
                None => taken,
                Some(levels) => {
                    levels.bits(taken, &mut bitmap)?;
                    BitChunks::new(bitmap.as_slice(), read, taken)
                        .iter_padded()
                        .map(|bits| bits.count_ones() as usize)
                        .sum()
                }
            };
            self.page.rows -= taken;
            if present == rows
                && let Values::Plain(bytes) = &mut self.page.values
                && let Some(there) = self.stored.in_place(bytes, rows)
            {
                return Ok((there, None));
            }
            values.reserve_exact(rows - read);
            if present == taken {
                self.page.values.append(&mut self.stored, present, &self.dictionary, &mut values)?;
            } else {
                self.dense.clear();
                self.page.values.append(&mut self.stored, present, &self.dictionary, &mut self.dense)?;
                spread(&mut self.dense, &bitmap, read, taken, &mut values);
            }
            read += taken;
        }
        let nulls = (self.optional && rows > 0).then(|| NullBuffer::new(bitmap.finish()));
        Ok((Buffer::from_vec(values), nulls.filter(|nulls| nulls.null_count() > 0)))
    }

    /// Starts the next page, a dictionary or rows.
    fn next_page(&mut self) -> Result<(), NotRead> {
        match self.pages.get_next_page()?.ok_or(NotRead)? {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                    return Err(NotRead);
                }
                // Views refer to the bytes of the first dictionary.
                if !self.dictionary.is_empty() {
                    return Err(NotRead);
                }
                self.dictionary = self.stored.entries(buf, num_values as usize)?;
                Ok(())
            }
            Page::DataPage { mut buf, num_values, encoding, def_level_encoding, .. } => {
                let mut levels = None;
                if self.optional {
                    let length = buf.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
                    let length = length.filter(|length| *length <= buf.len() - 4).ok_or(NotRead)?;
                    if def_level_encoding != Encoding::RLE {
                        return Err(NotRead);
                    }
                    levels = Some(buf.slice(4..4 + length));
                    buf = buf.slice(4 + length..);
                }
                self.set_page(num_values, levels, encoding, buf)
            }
            Page::DataPageV2 {
                mut buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (before, length) = (rep_levels_byte_len as usize, def_levels_byte_len as usize);
                if before + length > buf.len() {
                    return Err(NotRead);
                }
                let levels = self.optional.then(|| buf.slice(before..before + length));
                buf = buf.slice(before + length..);
                self.set_page(num_values, levels, encoding, buf)
            }
        }
    }

    fn set_page(
        &mut self,
        rows: u32,
        levels: Option<Bytes>,
        encoding: Encoding,
        values: Bytes,
    ) -> Result<(), NotRead> {
        let values = match encoding {
            Encoding::PLAIN => {
                self.stored.start_page(&values);
                Values::Plain(values)
            }
            // A page that has only NULLs may lack the width of the indices.
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let width = values.first().copied().unwrap_or(0);
                Values::Indices(Hybrid::new(values.slice(values.len().min(1)..), width)?)
            }
            _ => return Err(NotRead),
        };
        let levels = levels.map(|levels| Hybrid::new(levels, 1)).transpose()?;
        self.page = DataPage { rows: rows as usize, levels, values };
        Ok(())
    }
}

impl Values {
    /// Consumes the next values and appends them.
    fn append<S: Stored>(
        &mut self,
        stored: &mut S,
        count: usize,
        dictionary: &[S::Value],
        to: &mut Vec<S::Value>,
    ) -> Result<(), NotRead> {
        match self {
            Self::Plain(bytes) => stored.values(bytes, count, to),
            Self::Indices(indices) => indices.entries(count, dictionary, to),
        }
    }
}

/// Appends the values at the rows that have one, according to the bits `from..from + rows`.
fn spread<W: ArrowNativeType>(
    dense: &mut Vec<W>,
    bitmap: &BooleanBufferBuilder,
    from: usize,
    rows: usize,
    to: &mut Vec<W>,
) {
    // All slots after the row of the last value belong to NULLs.
    dense.push(W::default());
    let mut next = 0;
    let mut left = rows;
    for bits in BitChunks::new(bitmap.as_slice(), from, rows).iter_padded() {
        let rows = left.min(64);
        if let (u64::MAX, Some(all)) = (bits, dense.get(next..next + rows)) {
            to.extend_from_slice(all);
            next += rows;
        } else {
            to.extend((0..rows).map(|row| {
                let value = dense[next];
                next += (bits >> row & 1) as usize;
                value
            }));
        }
        left -= rows;
    }
}
