//! Verifies page checksums (feature `page-checksums`).
//!
//! Source: `parquet.thrift`, `PageHeader.crc`: the CRC-32 of a page's body as stored in the file, after any
//! compression and including levels. Writers may omit it.

use std::fmt;
use std::ops::Range;

use crate::chunk::page_sizes::{self, LargestPages, PageLimits};
use crate::chunk::pages::{ChunkPage, ChunkPages, HEADER_READ_LEN, READ_LEN};
use crate::error::Error;
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
    /// Why a page must not be decompressed. Later pages were not read.
    pub refused: Option<Error>,
    /// The largest dictionary page and the largest data page.
    pub largest: LargestPages,
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
    read_pages(reader, range, num_values, Checks { checksums: true, limits: None })
}

/// Like [`page_checksums`], but stops at the first page beyond these limits; `checksums` says whether to verify
/// checksums, too.
pub fn page_checksums_within<R: RangeReader + ?Sized>(
    reader: &R,
    range: Range<u64>,
    num_values: i64,
    limits: &PageLimits,
    checksums: bool,
) -> PageChecksums {
    read_pages(reader, range, num_values, Checks { checksums, limits: Some(limits) })
}

/// What to check of pages.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'l> {
    pub checksums: bool,
    pub limits: Option<&'l PageLimits>,
}

pub(crate) fn read_pages<R: RangeReader + ?Sized>(
    reader: &R,
    range: Range<u64>,
    num_values: i64,
    checks: Checks<'_>,
) -> PageChecksums {
    let mut pages = ChunkPages::new(reader, range);
    let mut found = PageChecksums::default();
    let (mut data, mut dictionary) = (LargestPages::default(), LargestPages::default());
    let mut left = num_values;
    while left > 0 {
        let read = read_page(&mut pages, checks);
        let (page, crc) = match read {
            Ok(Some(read)) => read,
            Ok(None) => break,
            Err(Unread::Broken(error)) => {
                found.unread = Some(error);
                break;
            }
            Err(Unread::Refused(error)) => {
                found.refused = Some(error);
                break;
            }
        };
        found.pages += 1;
        found.bytes += u64::from(page.compressed_size);
        if matches!(page.page_type, PageType::DataPage | PageType::DataPageV2) {
            left -= i64::from(page.num_values);
            data = data.or(&page);
        } else {
            dictionary = dictionary.or(&page);
        }
        let Some((stated, crc)) = page.crc.zip(crc) else { continue };
        if crc != stated {
            found.wrong = Some(WrongChecksum { page, found: crc });
            break;
        }
        found.checked += 1;
    }
    found.largest = data.and(dictionary);
    found
}

enum Unread {
    Broken(Error),
    Refused(Error),
}

/// Reads the next page as far as the checks need it; returns it with the checksum of its bytes.
fn read_page<R: RangeReader + ?Sized>(
    pages: &mut ChunkPages<'_, R>,
    Checks { checksums, limits }: Checks<'_>,
) -> Result<Option<(ChunkPage, Option<u32>)>, Unread> {
    let read_len = if checksums { READ_LEN } else { HEADER_READ_LEN };
    let Some((page, body_end)) = pages.page(read_len).map_err(Unread::Broken)? else { return Ok(None) };
    let refused = |what| {
        let place = format!("page {}, byte {} of the file", page.index, page.offset);
        Err(Unread::Refused(page_sizes::refused(what).at_path(place)))
    };
    if let Some(Err(what)) = limits.map(|limits| limits.check_header(&page)) {
        return refused(what);
    }
    let needed = limits.map_or(0, |limits| limits.needed(&page));
    if !checksums && needed == 0 {
        pages.leave_out(&page, body_end).map_err(Unread::Broken)?;
        return Ok(Some((page, None)));
    }
    let mut hasher = page.crc.filter(|_| checksums).map(|_| crc32fast::Hasher::new());
    let mut first = Vec::new();
    let body = |part: &[u8]| {
        if let Some(hasher) = &mut hasher {
            hasher.update(part);
        }
        first.extend_from_slice(&part[..part.len().min(needed - first.len())]);
    };
    pages.pass_on(&page, body_end, body).map_err(Unread::Broken)?;
    let crc = hasher.map(crc32fast::Hasher::finalize);
    // Bytes that were changed are that, whatever they decompress to.
    if crc == page.crc.filter(|_| checksums)
        && let Some(Err(what)) = limits.map(|limits| limits.check_body(&page, &first))
    {
        return refused(what);
    }
    Ok(Some((page, crc)))
}

fn a_page(page_type: PageType) -> &'static str {
    match page_type {
        PageType::DictionaryPage => "dictionary",
        PageType::IndexPage => "index",
        PageType::DataPage | PageType::DataPageV2 => "data",
        PageType::Unknown(_) => "of an unknown type",
    }
}
