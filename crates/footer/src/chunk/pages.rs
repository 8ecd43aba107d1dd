//! Iterates over the pages of a column chunk as their headers describe them.
//!
//! ```text
//! byte range of the chunk ─▶ header (Thrift) ─▶ ChunkPage ─▶ body, passed on in parts ─▶ next header ...
//! ```
//!
//! Nothing is decompressed or decoded. Each read is of at most [`READ_LEN`] bytes, whatever size a page claims
//! to have; a header that is not complete within [`MAX_HEADER`] bytes is an error.

use std::ops::Range;

use crate::chunk::column_chunk::ColumnChunk;
use crate::error::{Error, Fault, FaultKind, Result};
use crate::open::source::RangeReader;
use crate::schema::enums::{Encoding, PageType};
use crate::thrift::cursor::{Cursor, FALSE, I32, STRUCT, Step, each_field};

/// Bytes per read of bodies.
const READ_LEN: usize = 1 << 18;

/// Bytes per read for a header whose body is left out: several small pages, or little of a large one.
const HEADER_READ_LEN: usize = 1 << 16;

/// The longest header accepted; a header may hold bounds of long values. `parquet-cpp` accepts as much.
const MAX_HEADER: usize = 1 << 24;

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
    /// The size of the levels before the values, which are not compressed, in a data page of version 2.
    pub levels_size: u32,
    /// Whether the body, but for these levels, is compressed if the chunk has a codec.
    pub is_compressed: bool,
    /// How its values are encoded.
    pub encoding: Encoding,
    /// How its definition and its repetition levels are encoded, if it is a data page of version 1.
    pub level_encodings: [Encoding; 2],
    /// Whether its header describes one kind of page, as it should.
    pub is_one_kind: bool,
    /// The size of its repetition levels, which are the first, if it is a data page of version 2.
    pub repetition_size: u32,
    /// How many NULLs the header of a data page of version 2 states.
    pub num_nulls: Option<i32>,
    /// How many rows the header of a data page of version 2 states.
    pub num_rows: Option<i32>,
}

impl ChunkPage {
    /// Where its body ends in the file.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.header_len as u64).saturating_add(self.compressed_size.into())
    }
}

/// Reads the pages of a column chunk.
#[derive(Debug)]
pub struct ChunkPages<'r, R: ?Sized> {
    reader: &'r R,
    /// Where the next page starts, and where the chunk ends.
    at: u64,
    end: u64,
    /// The length of the file, once it was asked for.
    file_len: Option<u64>,
    index: usize,
    /// Bytes already read, starting with the next page.
    buffer: Vec<u8>,
    used: usize,
    /// The column chunk and its file for errors, if they are known.
    chunk: Option<String>,
    file: Option<String>,
}

impl<'r, R: RangeReader + ?Sized> ChunkPages<'r, R> {
    /// Reads the pages in this range of a file. [`ColumnChunk::pages`] is the same for a column chunk, and its
    /// errors name the chunk.
    pub fn new(reader: &'r R, range: Range<u64>) -> Self {
        Self {
            reader,
            at: range.start,
            end: range.end,
            file_len: None,
            index: 0,
            buffer: Vec::new(),
            used: 0,
            chunk: None,
            file: None,
        }
    }

    /// Returns the next page without its body; `None` after the last page.
    ///
    /// Costs a read of 64 KiB for each page that does not begin within the last read. Bodies are left out.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, a header is malformed or longer than 16 MiB, or a page extends beyond its chunk or
    /// the file.
    pub fn next_header(&mut self) -> Result<Option<ChunkPage>> {
        let Some(page) = self.begin(false)? else { return Ok(None) };
        self.leave_out(&page)?;
        Ok(Some(page))
    }

    /// Leaves out the body of the page that [`ChunkPages::begin`] returned.
    ///
    /// # Errors
    ///
    /// The body extends beyond the file.
    pub fn leave_out(&mut self, page: &ChunkPage) -> Result<()> {
        let body_end = page.end();
        let there = self.buffer.len() - self.used;
        // Nothing else notices that the last body is cut off.
        if page.compressed_size as usize > there && body_end > self.file_len()? {
            return Err(self.cut_off(body_end));
        }
        self.used += there.min(page.compressed_size as usize);
        self.at = body_end;
        self.index += 1;
        Ok(())
    }

    /// Returns the next page and passes its body to `body` in parts; `None` after the last page.
    ///
    /// Costs a read of the page, whole.
    ///
    /// # Errors
    ///
    /// As for [`ChunkPages::next_header`].
    pub fn next_page(&mut self, body: impl FnMut(&[u8])) -> Result<Option<ChunkPage>> {
        let Some(page) = self.begin(true)? else { return Ok(None) };
        self.read_body(&page, body)?;
        Ok(Some(page))
    }

    /// Passes the body of the page that [`ChunkPages::begin`] returned to `body`, in parts.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, or the body extends beyond the file.
    pub fn read_body(&mut self, page: &ChunkPage, mut body: impl FnMut(&[u8])) -> Result<()> {
        let body_end = page.end();
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
        Ok(())
    }

    /// Returns the next page, up to its body, which [`ChunkPages::leave_out`] or [`ChunkPages::read_body`] must pass before
    /// the next page; `None` after the last page. `with_body` says whether to read as much at once as suits bodies.
    ///
    /// # Errors
    ///
    /// As for [`ChunkPages::next_header`].
    pub fn begin(&mut self, with_body: bool) -> Result<Option<ChunkPage>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let page = self.header(if with_body { READ_LEN } else { HEADER_READ_LEN })?;
        self.used += page.header_len;
        if page.end() > self.end {
            let left = self.end.saturating_sub(page.offset + page.header_len as u64);
            let size = page.compressed_size;
            let what = format!(
                "expected a page within its column chunk, of which {left} bytes are left, found {size}"
            );
            return Err(self.error(what));
        }
        Ok(Some(page))
    }

    /// The header of the next page, which stays in the buffer.
    fn header(&mut self, read_len: usize) -> Result<ChunkPage> {
        loop {
            let there = self.buffer.len() - self.used;
            let kind = match page_header(&self.buffer[self.used..]) {
                Ok(page) => return Ok(ChunkPage { index: self.index, offset: self.at, ..page }),
                Err(fault) => fault.kind,
            };
            let is_incomplete = matches!(kind, FaultKind::End { .. } | FaultKind::Count { .. });
            if !is_incomplete || there as u64 >= self.end - self.at {
                return Err(self.error(format!("expected the header of a page: {kind}")));
            }
            if there >= MAX_HEADER {
                let what = format!(
                    "expected the header of a page of at most {MAX_HEADER} bytes, found a longer one"
                );
                return Err(self.error(what));
            }
            let more = there.max(read_len).min(MAX_HEADER - there);
            self.read_on(self.at + there as u64, more)?;
        }
    }

    /// Reads up to `len` bytes starting at `start` and appends them to the buffer.
    fn read_on(&mut self, start: u64, len: usize) -> Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let kept = self.buffer.len();
        let end = self.end.min(self.file_len()?);
        if start >= end {
            return Err(self.cut_off(self.end));
        }
        let len = len.min(usize::try_from(end - start).unwrap_or(usize::MAX));
        self.buffer.resize(kept + len, 0);
        let read = self.reader.read_exact_at(start, &mut self.buffer[kept..]);
        read.map_err(|error| self.place(Error::io("reading a page", &error)))
    }

    fn file_len(&mut self) -> Result<u64> {
        if let Some(len) = self.file_len {
            return Ok(len);
        }
        let len = self.reader.len().map_err(|error| self.place(Error::io("reading a page", &error)))?;
        Ok(*self.file_len.insert(len))
    }

    /// The error for a page that would end at `end`, beyond the file.
    fn cut_off(&self, end: u64) -> Error {
        let len = self.file_len.unwrap_or_default();
        self.error(format!("expected a page within the file's {len} bytes, found a chunk up to byte {end}"))
    }

    fn error(&self, what: String) -> Error {
        self.place(Error::new(what).with_advice("the file is damaged: write or copy it again"))
    }

    fn place(&self, error: Error) -> Error {
        let page = format!("page {}, byte {} of the file", self.index, self.at);
        let error = match &self.chunk {
            None => error.at_path(page),
            Some(chunk) => error.at_path(format!("{chunk}, {page}")),
        };
        match &self.file {
            None => error,
            Some(file) => error.in_file(file),
        }
    }
}

impl ColumnChunk<'_> {
    /// Checks that the footer does not say that the chunk's pages are in another file.
    ///
    /// Costs what [`ColumnChunk::locations`] does.
    ///
    /// # Errors
    ///
    /// It names another file: this one has the metadata of several, such as `_metadata`.
    pub fn is_here(&self) -> Result<()> {
        let path = self.locations().ok().and_then(|found| found.file_path);
        let Some(other) = path.filter(|path| !path.is_empty()) else { return Ok(()) };
        let what = format!("expected values in this file, found a column chunk that is in `{other}`");
        let error = Error::new(what)
            .at_path(format!("row group {}, column {}", self.row_group().index(), self.path()))
            .with_advice("name the files that hold the values, or their directory");
        Err(self.row_group().footer.name_error(error))
    }

    /// Reads the pages of this chunk, in order. Errors name the file, the row group and the column.
    ///
    /// Costs two allocations; each page costs what [`ChunkPages::next_header`] or [`ChunkPages::next_page`]
    /// does.
    ///
    /// # Errors
    ///
    /// The chunk is encrypted or in another file, so that its pages cannot be read.
    pub fn pages<'r, R: RangeReader + ?Sized>(&self, reader: &'r R) -> Result<ChunkPages<'r, R>> {
        let footer = self.row_group().footer;
        let chunk = format!("row group {}, column {}", self.row_group().index(), self.path());
        let refused = |what: String| Err(footer.name_error(Error::new(what).at_path(chunk.clone())));
        if self.is_encrypted() || !self.has_metadata() {
            return refused("expected an unencrypted column, found an encrypted column".to_owned());
        }
        self.is_here()?;
        let file = footer.name.as_ref().map(|name| name.to_string());
        Ok(ChunkPages { chunk: Some(chunk), file, ..ChunkPages::new(reader, self.byte_range()) })
    }
}

/// Decodes the page header at the start of the bytes.
fn page_header(bytes: &[u8]) -> Step<ChunkPage> {
    let cursor = &mut Cursor::new(bytes, 0);
    let (mut page_type, mut uncompressed, mut compressed, mut crc) = (None, None, None, None);
    let (mut of_kind, mut kinds) = (OfKind::default(), 0);
    each_field!(cursor, {
        (1, I32) => page_type = Some(cursor.i32()?),
        (2, I32) => uncompressed = Some(size(cursor)?),
        (3, I32) => compressed = Some(size(cursor)?),
        (4, I32) => crc = Some(cursor.i32()?.cast_unsigned()),
        (kind @ (5 | 7 | 8), STRUCT) => {
            of_kind = OfKind::read(cursor, kind)?;
            kinds += 1;
        },
    });
    Ok(ChunkPage {
        index: 0,
        offset: 0,
        header_len: cursor.at,
        page_type: PageType::from_number(page_type.ok_or(Fault::missing(0, "type"))?),
        compressed_size: compressed.ok_or(Fault::missing(0, "compressed_page_size"))?,
        uncompressed_size: uncompressed.ok_or(Fault::missing(0, "uncompressed_page_size"))?,
        num_values: of_kind.num_values,
        crc,
        levels_size: of_kind.levels_size,
        is_compressed: !of_kind.is_stored,
        encoding: Encoding::from_number(of_kind.encoding),
        level_encodings: of_kind.level_encodings.map(Encoding::from_number),
        is_one_kind: kinds <= 1,
        repetition_size: of_kind.repetition_size,
        num_nulls: of_kind.num_nulls,
        num_rows: of_kind.num_rows,
    })
}

fn size(cursor: &mut Cursor<'_>) -> Step<u32> {
    let at = cursor.at;
    let value = cursor.i32()?;
    let expected = "a non-negative size";
    u32::try_from(value).map_err(|_| Fault::new(at, FaultKind::Range { value: value.into(), expected }))
}

/// What the header says that depends on the kind of page.
#[derive(Default)]
struct OfKind {
    num_values: i32,
    levels_size: u32,
    /// Whether the body is not compressed.
    is_stored: bool,
    encoding: i32,
    level_encodings: [i32; 2],
    repetition_size: u32,
    num_nulls: Option<i32>,
    num_rows: Option<i32>,
}

impl OfKind {
    /// The header of a data page (field 5 of the page's header), a dictionary page (7), or a data page of version 2
    /// (8). `num_values` is the first field of each; only version 2 states the size of the levels.
    fn read(cursor: &mut Cursor<'_>, kind: i16) -> Step<Self> {
        let mut found = Self::default();
        let is_version_2 = kind == 8;
        let encoding = if is_version_2 { 4 } else { 2 };
        each_field!(cursor, {
            (1, I32) => found.num_values = cursor.i32()?,
            (id, I32) if id == encoding => found.encoding = cursor.i32()?,
            (3, I32) if kind == 5 => found.level_encodings[0] = cursor.i32()?,
            (4, I32) if kind == 5 => found.level_encodings[1] = cursor.i32()?,
            (2, I32) if is_version_2 => found.num_nulls = Some(cursor.i32()?),
            (3, I32) if is_version_2 => found.num_rows = Some(cursor.i32()?),
            (id @ (5 | 6), I32) if is_version_2 => {
                let size = size(cursor)?;
                found.levels_size = found.levels_size.saturating_add(size);
                if id == 6 {
                    found.repetition_size = size;
                }
            },
            (7, FALSE) if is_version_2 => found.is_stored = true,
        });
        Ok(found)
    }
}
