//! Verifies page checksums (feature `page-checksums`).
//!
//! Source: `parquet.thrift`, `PageHeader.crc`: the CRC-32 of a page's body as stored in the file, after any
//! compression and including levels. Writers may omit it.

use std::fmt;
use std::ops::Range;

use crate::check::Finding;
use crate::chunk::pages::{ChunkPage, ChunkPages};
use crate::error::Error;
use crate::footer::Footer;
use crate::open::source::RangeReader;
use crate::schema::enums::PageType;

/// The result of checking the pages of a column chunk.
#[derive(Debug, Clone, Default)]
pub struct PageChecksums {
    /// The pages that were read.
    pub pages: u64,
    /// Pages whose checksum matches their bytes.
    pub checked: u64,
    /// Total size of their bodies in bytes.
    pub bytes: u64,
    /// The first page whose checksum does not match its bytes. Later pages were not read.
    pub wrong: Option<WrongChecksum>,
    /// Why later pages could not be read, if their own content is the reason.
    pub unread: Option<Error>,
}

/// A page whose checksum does not match its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongChecksum {
    /// The page; its header holds the writer's checksum.
    pub page: ChunkPage,
    /// The checksum computed from its bytes.
    pub found: u32,
}

impl fmt::Display for WrongChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, found } = self;
        let (kind, index, offset) = (a_page(page.page_type), page.index, page.offset);
        let stated = page.crc.unwrap_or_default();
        write!(
            f,
            "page {index} ({kind}, byte {offset} of the file): its header has the checksum {stated:08x}, its bytes have {found:08x}"
        )
    }
}

/// Verifies the checksums of the pages in this range of a file, usually
/// [`ColumnChunk::byte_range`](crate::ColumnChunk::byte_range), up to the page that holds the last of
/// `num_values` values. Pages of encrypted columns cannot be read.
pub fn page_checksums<R: RangeReader + ?Sized>(
    reader: &R,
    range: Range<u64>,
    num_values: i64,
) -> PageChecksums {
    let mut pages = ChunkPages::new(reader, range);
    let mut found = PageChecksums::default();
    let mut left = num_values;
    while left > 0 {
        let mut hasher = crc32fast::Hasher::new();
        let page = match pages.next_page(|body| hasher.update(body)) {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(error) => {
                found.unread = Some(error);
                break;
            }
        };
        found.pages += 1;
        found.bytes += u64::from(page.compressed_size);
        if matches!(page.page_type, PageType::DataPage | PageType::DataPageV2) {
            left -= i64::from(page.num_values);
        }
        let Some(stated) = page.crc else { continue };
        let crc = hasher.finalize();
        if crc != stated {
            found.wrong = Some(WrongChecksum { page, found: crc });
            break;
        }
        found.checked += 1;
    }
    found
}

impl Footer {
    /// Reads the pages of all decoded column chunks that are in this file and not encrypted. For every chunk,
    /// calls `found` with the first page whose checksum does not match or that cannot be read. Returns the
    /// sums over all chunks.
    pub fn check_pages<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        mut found: impl FnMut(Finding),
    ) -> PageChecksums {
        let mut all = PageChecksums::default();
        for chunk in self.row_groups().flat_map(|group| group.columns()) {
            let here = chunk.locations().is_ok_and(|details| details.file_path.is_none());
            if !here || chunk.is_encrypted() || !chunk.has_metadata() {
                continue;
            }
            let PageChecksums { pages, checked, bytes, wrong, unread } =
                page_checksums(reader, chunk.byte_range(), chunk.num_values());
            all.pages += pages;
            all.checked += checked;
            all.bytes += bytes;
            let what = wrong.map(|wrong| {
                format!("expected bytes that match the page's checksum, found others in {wrong}")
            });
            let what = what.or_else(|| unread.map(|error| format!("{} - {}", error.what(), error.path())));
            if let Some(what) = what {
                let path =
                    format!("row_groups[{}].columns[{}], pages", chunk.row_group().index(), chunk.leaf());
                found(Finding { what, path, offset: Some(chunk.footer_offset() as u64) });
            }
        }
        all
    }
}

fn a_page(page_type: PageType) -> &'static str {
    match page_type {
        PageType::DictionaryPage => "dictionary",
        PageType::IndexPage => "index",
        PageType::DataPage | PageType::DataPageV2 => "data",
        PageType::Unknown(_) => "of an unknown type",
    }
}
