//! The pages of a column chunk, as their headers describe them.

use std::ops::Range;

use sawmill_footer::{ChunkPages, PageType, RangeReader};

use crate::pages::limits::is_coded;
use crate::rewrite::sizes::{COMPRESSED, UNCOMPRESSED};

/// How often the bytes of a file are walked over, at most: a footer may place all its chunks in the same bytes.
const MAX_WALKS: u64 = 16;
/// Bytes that may be read beside that, for the chunks of small files.
const MAX_READ: u64 = 256 << 20;
/// The bytes that a walk reads for its first header, and the most that it reads for one that is none.
const READ: [u64; 2] = [1 << 16, 1 << 24];

/// What the headers of a chunk's pages say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FoundPages {
    pub start: u64,
    pub end: u64,
    /// Where the dictionary page is, and the first data page.
    pub dictionary: Option<u64>,
    pub data: u64,
    pub sizes: [i64; 2],
    pub values: i64,
    /// Whether values are indices of a dictionary.
    is_coded: bool,
}

impl FoundPages {
    /// Whether there is a dictionary if one is needed: others are the rest of a chunk. Writers leave out the dictionary of a
    /// chunk of NULLs.
    fn is_whole(&self, is_null: bool) -> bool {
        self.dictionary.is_some() || !self.is_coded || is_null
    }
}

/// Walks over the headers of pages.
pub(super) struct Walk<'a, R: ?Sized> {
    reader: &'a R,
    /// How many more bytes may be read and walked over.
    left: u64,
}

impl<'a, R: RangeReader + ?Sized> Walk<'a, R> {
    /// Walks over the pages in the body of a file.
    pub fn new(reader: &'a R, body: Range<u64>) -> Self {
        let len = reader.len().unwrap_or_default().min(body.end);
        Self { reader, left: len.saturating_mul(MAX_WALKS).saturating_add(MAX_READ) }
    }

    /// The pages that fill these bytes, of a chunk whose values may all be NULL. `None` if these are other pages, or no
    /// pages.
    pub fn filling(&mut self, bytes: Range<u64>, is_null: bool) -> Option<FoundPages> {
        let end = bytes.end;
        self.pages(bytes, i64::MAX).filter(|found| found.end == end && found.is_whole(is_null))
    }

    /// The first pages in these bytes, up to the one with the last of `values`, which may all be NULL.
    pub fn with_values(&mut self, bytes: Range<u64>, values: i64, is_null: bool) -> Option<FoundPages> {
        self.pages(bytes, values).filter(|found| found.values == values && found.is_whole(is_null))
    }

    /// Where the last of these pages ends, whether or not its dictionary is before it.
    pub fn end(&mut self, bytes: Range<u64>, values: i64) -> Option<u64> {
        self.pages(bytes, values).filter(|found| found.values == values).map(|found| found.end)
    }

    fn pages(&mut self, bytes: Range<u64>, values: i64) -> Option<FoundPages> {
        let start = bytes.start;
        let mut found = FoundPages { start, end: start, ..FoundPages::default() };
        let read = READ.map(|most| most.min(bytes.end.saturating_sub(bytes.start)));
        self.charge(read[0])?;
        let mut pages = ChunkPages::new(self.reader, bytes);
        while found.values < values {
            let Ok(next) = pages.next_header() else {
                self.charge(read[1])?;
                return None;
            };
            let Some(page) = next else { break };
            let header = i64::try_from(page.header_len).ok()?;
            let size = header + i64::from(page.compressed_size);
            self.charge(size.unsigned_abs())?;
            found.end += size.unsigned_abs();
            found.sizes[COMPRESSED] += size;
            found.sizes[UNCOMPRESSED] += header + i64::from(page.uncompressed_size);
            match page.page_type {
                PageType::DictionaryPage if page.index == 0 => found.dictionary = Some(page.offset),
                PageType::IndexPage => {}
                PageType::DataPage | PageType::DataPageV2 if page.num_values >= 0 => {
                    found.is_coded |= is_coded(&page) && page.num_values > 0;
                    if found.data == 0 {
                        found.data = page.offset;
                    }
                    found.values += i64::from(page.num_values);
                }
                _ => return None,
            }
        }
        (found.data > 0).then_some(found)
    }

    /// Counts bytes. `None` if they are more than are left, or the work is to stop.
    fn charge(&mut self, bytes: u64) -> Option<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.filter(|_| !self.reader.is_stopped()).map(drop)
    }
}
