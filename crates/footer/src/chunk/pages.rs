//! Iterates over the pages of a column chunk as their headers describe them.
//!
//! ```text
//! byte range of the chunk ─▶ header (Thrift) ─▶ ChunkPage ─▶ body, passed on in parts ─▶ next header ...
//! ```
//!
//! Nothing is decompressed or decoded. Each read is of [`READ_LEN`] bytes, whatever size a page claims to
//! have.

use std::ops::Range;

use crate::error::{Error, Fault, FaultKind};
use crate::open::source::RangeReader;
use crate::schema::enums::PageType;
use crate::thrift::cursor::{Cursor, I32, STOP, STRUCT, Step};

/// Bytes per read.
const READ_LEN: usize = 1 << 18;

/// The longest header accepted; a header may hold bounds of long values.
const MOST_HEADER: usize = 1 << 24;

/// A page of a column chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPage {
    /// Its index among the chunk's pages, counting the dictionary page.
    pub index: usize,
    /// Where its header starts in the file.
    pub offset: u64,
    /// The length of its header in bytes.
    pub header_len: usize,
    /// Its type.
    pub page_type: PageType,
    /// The size of its body in the file, in bytes.
    pub compressed_size: u32,
    /// The size of its body before compression, in bytes.
    pub uncompressed_size: u32,
    /// The number of its values, including nulls.
    pub num_values: i32,
    /// The CRC-32 of its body as stored in the file, if the writer recorded one.
    pub crc: Option<u32>,
}

/// Reads the pages of a column chunk.
#[derive(Debug)]
pub struct ChunkPages<'r, R: ?Sized> {
    reader: &'r R,
    /// Where the next page starts, and where the chunk ends.
    at: u64,
    end: u64,
    index: usize,
    /// Bytes already read, starting with the next page.
    buffer: Vec<u8>,
    used: usize,
}

impl<'r, R: RangeReader + ?Sized> ChunkPages<'r, R> {
    /// Reads the pages in this range of a file, usually
    /// [`ColumnChunk::byte_range`](crate::ColumnChunk::byte_range).
    pub fn new(reader: &'r R, range: Range<u64>) -> Self {
        Self { reader, at: range.start, end: range.end, index: 0, buffer: Vec::new(), used: 0 }
    }

    /// Returns the next page and passes its body to `body` in parts; `None` after the last page.
    ///
    /// Costs a read of the page, whole.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, a header is malformed, or a page extends beyond its chunk.
    pub fn next_page(&mut self, mut body: impl FnMut(&[u8])) -> Result<Option<ChunkPage>, Error> {
        if self.at >= self.end {
            return Ok(None);
        }
        let page = self.header()?;
        self.used += page.header_len;
        let body_start = page.offset + page.header_len as u64;
        let body_end = body_start + u64::from(page.compressed_size);
        if body_end > self.end {
            let (size, left) = (page.compressed_size, self.end.saturating_sub(body_start));
            let what = format!(
                "expected a page within its column chunk, of which {left} bytes are left, found {size}"
            );
            return Err(self.error(what));
        }
        let mut left = page.compressed_size as usize;
        while left > 0 {
            if self.used == self.buffer.len() {
                self.read_on(body_end - left as u64, READ_LEN)?;
            }
            let part = &self.buffer[self.used..self.buffer.len().min(self.used + left)];
            body(part);
            left -= part.len();
            self.used += part.len();
        }
        self.at = body_end;
        self.index += 1;
        Ok(Some(page))
    }

    /// The header of the next page, which stays in the buffer.
    fn header(&mut self) -> Result<ChunkPage, Error> {
        loop {
            let there = &self.buffer[self.used..];
            let (at, left) = (self.at, (self.end - self.at) as usize);
            let found = page_header(there);
            let whole = there.len() >= left.min(MOST_HEADER);
            match found {
                Ok(page) => return Ok(ChunkPage { index: self.index, offset: at, ..page }),
                Err(fault) if whole => {
                    return Err(self.error(format!("expected the header of a page: {}", fault.kind)));
                }
                // The header may only be incomplete: read more before rejecting it.
                Err(_) => {
                    let more = there.len().max(READ_LEN);
                    let read = at + there.len() as u64;
                    self.read_on(read, more)?;
                }
            }
        }
    }

    /// Reads up to `len` bytes starting at `start` and appends them to the buffer.
    fn read_on(&mut self, start: u64, len: usize) -> Result<(), Error> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let kept = self.buffer.len();
        let len = len.min(usize::try_from(self.end - start).unwrap_or(usize::MAX));
        self.buffer.resize(kept + len, 0);
        let read = self.reader.read_exact_at(start, &mut self.buffer[kept..]);
        read.map_err(|error| self.place(Error::io("reading a page", &error)))
    }

    fn error(&self, what: String) -> Error {
        self.place(Error::new(what).with_advice("the file is damaged: write or copy it again"))
    }

    fn place(&self, error: Error) -> Error {
        error.at_path(format!("page {}, byte {} of the file", self.index, self.at))
    }
}

/// Decodes the page header at the start of the bytes.
fn page_header(bytes: &[u8]) -> Step<ChunkPage> {
    let cursor = &mut Cursor::new(bytes, 0);
    let (mut page_type, mut uncompressed, mut compressed, mut crc) = (None, None, None, None);
    let (mut num_values, mut last) = (0, 0);
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, I32) => page_type = Some(cursor.i32()?),
            (2, I32) => uncompressed = Some(size(cursor)?),
            (3, I32) => compressed = Some(size(cursor)?),
            (4, I32) => crc = Some(cursor.i32()?.cast_unsigned()),
            (5 | 7 | 8, STRUCT) => num_values = first_number(cursor)?,
            (_, wire) => cursor.skip(wire)?,
        }
    }
    let missing = |field| Fault::new(0, FaultKind::Missing { field });
    Ok(ChunkPage {
        index: 0,
        offset: 0,
        header_len: cursor.at,
        page_type: PageType::from_number(page_type.ok_or(missing("type"))?),
        compressed_size: compressed.ok_or(missing("compressed_page_size"))?,
        uncompressed_size: uncompressed.ok_or(missing("uncompressed_page_size"))?,
        num_values,
        crc,
    })
}

fn size(cursor: &mut Cursor<'_>) -> Step<u32> {
    let at = cursor.at;
    let value = cursor.i32()?;
    let expected = "a non-negative size";
    u32::try_from(value).map_err(|_| Fault::new(at, FaultKind::Range { value: value.into(), expected }))
}

/// `num_values`, the first field of every kind of page header.
fn first_number(cursor: &mut Cursor<'_>) -> Step<i32> {
    let (mut found, mut last) = (0, 0);
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => return Ok(found),
            (1, I32) => found = cursor.i32()?,
            (_, wire) => cursor.skip(wire)?,
        }
    }
}
