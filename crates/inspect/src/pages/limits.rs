//! Refuses pages that would take more memory than a reader allows, before they are decompressed, and those whose
//! levels are not what their header and row group state.
//!
//! A header of some bytes may claim 2 GiB, for which decoders allocate memory at once; the decoders of Gzip,
//! Brotli and LZ4 frames do not stop at the claimed size; and a dictionary or text stored as lengths may claim any
//! number of values.

use std::borrow::Cow;

use sawmill_footer::{ChunkPage, Codec, Encoding, Error, PageType, PhysicalType};

use crate::pages::coded_rows::RowBytes;
use crate::pages::decompress::{decompressed, first_bytes, length_up_to};
use crate::pages::delta_text::{self, is_delta_text};
use crate::pages::levels::{self, Levels};

/// The default for the largest page to decompress: 64 MiB. Writers make pages of about 1 MiB, unless a single value
/// is larger.
pub const DEFAULT_MAX_PAGE: u64 = 64 << 20;

/// Some writers count neither headers nor levels in the size of a chunk: pages up to this size are not compared
/// with it.
const SMALL_PAGE: u64 = 1 << 20;

/// A page that cannot take more than this when it is decompressed is not decompressed beforehand, as a test.
const MAX_UNTESTED: u64 = 256 << 20;

/// The most bytes that one byte of Deflate and of LZ4 may expand to.
const DEFLATE_RATIO: u64 = 1032;
const LZ4_RATIO: u64 = 255;

/// The largest pages of all columns together may be this many times as large as one page may be, unless they are
/// stored in more than a hundredth of that: each reader holds a page of each column, and its dictionary.
const MAX_PAGES_AT_ONCE: u64 = 2;
const USUAL_RATIO: u64 = 100;

/// The bytes that a text of a dictionary takes in memory besides its own, however short it is.
const TEXT_SIZE: u64 = 16;

/// A row's list may take this many times as much as a page, with this much for the levels of a value.
pub(crate) const MAX_LIST: u64 = 2;
const LEVELS_SIZE: u64 = 4;

/// The bytes of a row's list up to which they need not be known: more than sixty such rows are decoded at once.
const MAX_ESTIMATED_ROW: u64 = 1 << 20;

/// The longest length that precedes Snappy's data.
const SNAPPY_LENGTH: usize = 5;

const ADVICE: &str = "the file is damaged, or made to exhaust memory; if its values are as large as that, allow it: \
                      --max-page, or the limit that the program passes";

/// The error of a page that must not be decompressed.
pub(crate) fn refused(what: String) -> Error {
    Error::new(what).with_advice(ADVICE)
}

/// The error of a page whose content is not what its header, or its row group, states.
pub(crate) fn damaged(what: String) -> Error {
    Error::new(what).with_advice("the file is damaged: write or copy it again")
}

/// How large the pages of a column chunk may be, and which levels they may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// The largest page in bytes, compressed or not.
    pub max_page: u64,
    /// How the pages are compressed.
    pub codec: Codec,
    /// The size of all pages before compression, as the chunk's metadata states it.
    pub chunk_size: i64,
    /// The highest definition and repetition levels.
    pub max_levels: [u32; 2],
    /// The fewest bytes that a value takes in a dictionary: its width, or the length before it.
    pub value_size: u32,
    /// Whether values are text or bytes of any length.
    pub is_text: bool,
    /// How many rows the pages have together, if all of them are checked.
    pub rows: Option<u64>,
    /// Whether headers that state more rows than their page has are corrected, instead of refused.
    pub corrects_rows: bool,
    /// Whether pages of version 2 are compressed even if their header denies it: an early parquet-cpp wrote them.
    pub compresses_all: bool,
}

/// Whether a writer compressed all pages of version 2, but stated that they are not compressed: Arrow C++ before
/// release 3. Arrow's readers look at the same versions (ARROW-10353).
pub fn compresses_all(created_by: Option<&str>) -> bool {
    let version = created_by.and_then(|name| name.strip_prefix("parquet-cpp version "));
    version.and_then(|version| version.split('.').next()?.parse::<u32>().ok()).is_some_and(|major| major < 2)
}

/// The largest pages of several column chunks, which a reader holds at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LargestPages {
    /// Their size before compression, and what the texts of dictionaries take besides.
    pub uncompressed: u64,
    /// Their size in the file.
    pub compressed: u64,
    /// The most bytes of a row, decoded: the mean of the page where it is the highest, also where NULL takes as much as
    /// a value; or what a row's values of a dictionary have, at most.
    pub row: u64,
}

impl LargestPages {
    /// The sums of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            uncompressed: self.uncompressed.saturating_add(other.uncompressed),
            compressed: self.compressed.saturating_add(other.compressed),
            row: self.row.saturating_add(other.row),
        }
    }

    /// The larger ones; a page of texts or other values.
    pub(crate) fn or(self, page: &ChunkPage, is_text: bool) -> Self {
        let is_decoded = is_text && page.page_type == PageType::DictionaryPage;
        let texts = if is_decoded { u64::try_from(page.num_values).unwrap_or(0) } else { 0 };
        let other = Self {
            uncompressed: u64::from(page.uncompressed_size) + texts.saturating_mul(TEXT_SIZE),
            compressed: page.compressed_size.into(),
            row: 0,
        };
        if other.uncompressed > self.uncompressed { other } else { self }
    }

    /// Checks whether pages so large may be held at once where a single one may have `max_page` bytes.
    ///
    /// # Errors
    ///
    /// They are larger, and were compressed to less than a hundredth.
    pub fn check(&self, max_page: u64) -> Result<(), Error> {
        let Self { uncompressed, compressed, .. } = *self;
        let most = max_page.saturating_mul(MAX_PAGES_AT_ONCE);
        if uncompressed <= most || uncompressed / USUAL_RATIO <= compressed {
            return Ok(());
        }
        let what = format!(
            "expected at most {most} bytes in the largest pages of all columns, found {uncompressed} in \
             {compressed} bytes of the file"
        );
        Err(refused(what))
    }
}

/// What the body of a page tells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content {
    /// Its levels, if there are any to see.
    pub levels: Option<Levels>,
    /// The bytes of its texts, if they are stored as lengths or share prefixes.
    pub text: u64,
}

/// Whether the values of a page are places in a dictionary.
pub(crate) fn is_coded(page: &ChunkPage) -> bool {
    matches!(page.encoding, Encoding::PlainDictionary | Encoding::RleDictionary)
}

impl PageLimits {
    /// The limits of pages whose values have this type, of this length if it is fixed, and these highest levels. They are
    /// not compressed, and the sizes of the chunk are unknown.
    pub fn new(
        physical: Option<PhysicalType>,
        length: Option<i32>,
        max_levels: [u32; 2],
        max_page: u64,
    ) -> Self {
        let value_size = match physical {
            // The length before it.
            Some(PhysicalType::ByteArray) => 4,
            Some(PhysicalType::FixedLenByteArray) => length.and_then(|len| len.try_into().ok()).unwrap_or(0),
            other => other.and_then(|of| of.width(None)).map_or(1, |width| width as u32),
        };
        let is_text = physical == Some(PhysicalType::ByteArray);
        Self {
            max_page,
            codec: Codec::Uncompressed,
            chunk_size: 0,
            max_levels,
            value_size,
            is_text,
            rows: None,
            corrects_rows: true,
            compresses_all: false,
        }
    }

    /// Whether a page is compressed although its header denies it.
    pub(crate) fn denies_codec(&self, page: &ChunkPage) -> bool {
        let is_stored = page.page_type == PageType::DataPageV2 && !page.is_compressed;
        self.compresses_all && is_stored && self.codec != Codec::Uncompressed
    }

    /// Whether a page has no more bytes, and in lists no more values, than a page may have.
    pub(crate) fn hold(&self, page: &ChunkPage) -> bool {
        let values = if self.max_levels[1] > 0 { u64::try_from(page.num_values).unwrap_or(0) } else { 0 };
        u64::from(page.uncompressed_size.max(page.compressed_size)).max(values) <= self.max_page
    }

    /// Checks what a page's header claims.
    pub(crate) fn check_header(&self, page: &ChunkPage) -> Result<(), String> {
        let (uncompressed, compressed) = (u64::from(page.uncompressed_size), u64::from(page.compressed_size));
        let size = uncompressed.max(compressed);
        if size > self.max_page {
            return Err(format!("expected pages of at most {} bytes, found one of {size}", self.max_page));
        }
        // A chunk with pages is never empty: a size of 0 is unknown.
        if u64::from(self.value_size) > self.max_page {
            let (most, width) = (self.max_page, self.value_size);
            return Err(format!("expected values of at most {most} bytes, found a column of {width}"));
        }
        let chunk_size =
            u64::try_from(self.chunk_size).ok().filter(|size| *size > 0).unwrap_or(self.max_page);
        if uncompressed > chunk_size.max(SMALL_PAGE) {
            return Err(format!(
                "expected a page within the chunk's {chunk_size} uncompressed bytes, found one of {uncompressed}"
            ));
        }
        if !page.is_one_kind {
            return Err("expected the header of one kind of page, found several in one".to_owned());
        }
        self.check_count(page)
    }

    /// Checks the number of values. Decoders allocate memory for all values of a dictionary, and a page of lists may
    /// have any number of values.
    fn check_count(&self, page: &ChunkPage) -> Result<(), String> {
        let Ok(count) = u64::try_from(page.num_values) else {
            return Err(format!("expected the number of values of a page, found {}", page.num_values));
        };
        let size = u64::from(page.uncompressed_size);
        if page.page_type == PageType::DictionaryPage && count * u64::from(self.value_size) > size {
            return Err(format!(
                "expected a dictionary within its {size} bytes, found one of {count} values"
            ));
        }
        let [_, repetition] = self.max_levels;
        if repetition > 0 && count > self.max_page {
            return Err(format!(
                "expected at most {} values in a page of lists, found {count}",
                self.max_page
            ));
        }
        Ok(())
    }

    /// The mean memory of a row of a page, whether its values are NULL or not.
    pub(crate) fn row_of_values(&self, page: &ChunkPage, levels: Levels) -> u64 {
        let count = u64::try_from(page.num_values).unwrap_or(0);
        match self.max_levels {
            [_, 0] => self.value_size.into(),
            _ => {
                (LEVELS_SIZE + u64::from(self.value_size)).saturating_mul(count).div_ceil(levels.rows.max(1))
            }
        }
    }

    /// The most values that a row may have.
    pub(crate) fn max_list(&self) -> u64 {
        self.max_page.saturating_mul(MAX_LIST) / (LEVELS_SIZE + u64::from(self.value_size))
    }

    /// How many of the first bytes of a page's body [`PageLimits::check_body`] and [`PageLimits::row_bytes`] need, if no
    /// value of the dictionary is longer than this.
    pub(crate) fn needed(&self, page: &ChunkPage, longest: u64) -> usize {
        let body = page.compressed_size as usize;
        let of_levels = match page.page_type {
            PageType::DataPageV2 if self.is_summed(page, longest, None) => body,
            PageType::DataPage if self.max_levels != [0, 0] => body,
            PageType::DataPageV2 => body.min(page.levels_size as usize),
            PageType::DictionaryPage if self.is_text => body,
            _ => 0,
        };
        of_levels.max(self.needed_for_size(page, body))
    }

    fn needed_for_size(&self, page: &ChunkPage, body: usize) -> usize {
        match self.codec {
            _ if is_delta_text(page.encoding) => body,
            _ if !page.is_compressed => 0,
            Codec::Snappy => body.min(page.levels_size as usize + SNAPPY_LENGTH),
            Codec::Brotli => body,
            Codec::Gzip | Codec::Lz4 if self.is_tested(page) => body,
            _ => 0,
        }
    }

    /// Whether a page may take so much that it is decompressed as a test.
    fn is_tested(&self, page: &ChunkPage) -> bool {
        let ratio = if self.codec == Codec::Gzip { DEFLATE_RATIO } else { LZ4_RATIO };
        u64::from(page.compressed_size.saturating_sub(page.levels_size)).saturating_mul(ratio) > MAX_UNTESTED
    }

    /// Checks that a page's body decompresses to what its header claims and no more, and its levels. A body that cannot be decompressed is for the decoder to report.
    pub(crate) fn check_body(&self, page: &ChunkPage, body: &[u8]) -> Result<Content, Error> {
        self.check_size(page, body).map_err(refused)?;
        let levels = match page.page_type {
            PageType::DataPage | PageType::DataPageV2 => self.levels(page, body).map_err(damaged)?,
            _ => None,
        };
        let text = match is_delta_text(page.encoding) {
            true => self.check_text(page, body, levels).map_err(refused)?,
            false => 0,
        };
        Ok(Content { levels, text })
    }

    /// The lengths of a dictionary's texts; `None` if they cannot be decompressed.
    pub(crate) fn lengths(&self, page: &ChunkPage, body: &[u8]) -> Option<Vec<u32>> {
        let values = decompressed(self.codec, body, page.uncompressed_size as usize)?;
        let (mut lengths, mut rest) = (Vec::new(), &values[..]);
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length);
            lengths.push(length);
            rest = behind.get(length as usize..).unwrap_or_default();
        }
        Some(lengths)
    }

    /// Whether the bytes of a page's rows may be so many, if a value has up to `longest`, that they are added up.
    pub(crate) fn is_summed(&self, page: &ChunkPage, longest: u64, levels: Option<Levels>) -> bool {
        let values = levels.map_or(u64::try_from(page.num_values).unwrap_or(0), |levels| levels.longest_row);
        let goes_on = levels.is_some_and(|levels| !levels.begins_row);
        let limit = MAX_ESTIMATED_ROW.min(self.max_page);
        let is_large = goes_on || values.saturating_mul(longest) > limit;
        self.is_text && self.max_levels[1] > 0 && is_coded(page) && is_large
    }

    /// The bytes of the rows of a page with these levels, given the lengths of a dictionary's values; the first row may
    /// have `open` bytes of earlier pages. `None` if they cannot be decoded.
    pub(crate) fn row_bytes(
        &self,
        page: &ChunkPage,
        body: &[u8],
        levels: Levels,
        lengths: &[u32],
        open: u64,
    ) -> Option<RowBytes> {
        let part = self.decompressed_part(page, body)?;
        // Version 2 has its levels before what is compressed.
        let (of_levels, values) = match page.page_type {
            PageType::DataPage => (part.as_ref(), part.get(levels.end..)?),
            _ => (body, part.as_ref()),
        };
        RowBytes::summed(page, self.max_levels, (of_levels, values), lengths, open)
    }

    /// What is compressed of a page, without that.
    fn decompressed_part<'b>(&self, page: &ChunkPage, body: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let before = page.levels_size.min(page.uncompressed_size);
        let codec = if page.is_compressed { self.codec } else { Codec::Uncompressed };
        decompressed(codec, body.get(before as usize..)?, (page.uncompressed_size - before) as usize)
    }

    /// Checks the levels of a data page.
    fn levels(&self, page: &ChunkPage, body: &[u8]) -> Result<Option<Levels>, String> {
        if page.page_type == PageType::DataPageV2 {
            let len = page.levels_size.min(page.compressed_size).min(page.uncompressed_size);
            let start = |len: usize| body.get(..len).map(Cow::Borrowed);
            return levels::check(page, self.max_levels, len as usize, start);
        }
        let claimed = match self.codec {
            Codec::Uncompressed => page.compressed_size,
            _ => page.uncompressed_size,
        } as usize;
        levels::check(page, self.max_levels, claimed, |len| first_bytes(self.codec, body, claimed, len))
    }

    fn check_size(&self, page: &ChunkPage, body: &[u8]) -> Result<(), String> {
        let levels = page.levels_size.min(page.uncompressed_size);
        let claimed = u64::from(page.uncompressed_size - levels);
        let Some(stored) = body.get(levels as usize..).filter(|stored| !stored.is_empty()) else {
            return Ok(());
        };
        let found = match self.codec {
            _ if !page.is_compressed => None,
            Codec::Snappy => snappy_length(stored),
            Codec::Gzip if self.is_tested(page) => {
                length_up_to(claimed, flate2::read::MultiGzDecoder::new(stored))
            }
            Codec::Brotli => length_up_to(claimed, brotli::Decompressor::new(stored, 4096)),
            Codec::Lz4 if self.is_tested(page) => {
                length_up_to(claimed, lz4_flex::frame::FrameDecoder::new(stored))
            }
            _ => None,
        };
        // Nothing is decompressed if no bytes are claimed.
        match found.filter(|found| claimed > 0 && *found != claimed) {
            Some(found) if found > claimed => {
                Err(format!("expected {claimed} bytes in a page, as its header claims, found more"))
            }
            Some(found) => {
                Err(format!("expected {claimed} bytes in a page, as its header claims, found {found}"))
            }
            None => Ok(()),
        }
    }

    /// Checks the lengths of a page's text, behind these levels.
    fn check_text(&self, page: &ChunkPage, body: &[u8], levels: Option<Levels>) -> Result<u64, String> {
        if body.get(page.levels_size.min(page.uncompressed_size) as usize..).is_none_or(<[u8]>::is_empty) {
            return Ok(0);
        }
        let unreadable = || {
            let claimed = page.uncompressed_size.saturating_sub(page.levels_size);
            format!("expected {claimed} bytes in a page, found others that cannot be read")
        };
        let body = self.decompressed_part(page, body).ok_or_else(unreadable)?;
        // Version 2 has its levels before the body.
        let values = match (page.page_type, levels) {
            (PageType::DataPage, Some(levels)) => body.get(levels.end..),
            (PageType::DataPage, None) => None,
            _ => Some(body.as_ref()),
        };
        let values = values.ok_or("expected levels before the values of a page, found its end")?;
        let count = u64::try_from(page.num_values).unwrap_or(0);
        let count = levels.map_or(count, |levels| levels.values);
        delta_text::check(page.encoding, values, count, self.max_page)
    }
}

/// The length at the start of Snappy's data.
fn snappy_length(bytes: &[u8]) -> Option<u64> {
    let mut length = 0;
    for (place, byte) in bytes.iter().take(SNAPPY_LENGTH).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn pages_at_once_are_refused_only_if_they_are_hardly_stored() {
        let pages = |uncompressed, compressed| {
            LargestPages { uncompressed, compressed, row: 0 }.check(1 << 20).is_ok()
        };
        assert!(pages(2 << 20, 1), "as large as two pages");
        assert!(pages(400 << 20, 5 << 20), "compressed to more than a hundredth");
        assert!(!pages(3 << 20, 1 << 10));
    }

    /// Limits of a chunk of INT32 or text, in lists or not.
    fn limits(codec: Codec, max_rep: u32) -> PageLimits {
        let limits = PageLimits::new(Some(PhysicalType::Int32), None, [max_rep, max_rep], 1 << 20);
        PageLimits { codec, chunk_size: 1 << 20, ..limits }
    }

    pub(crate) fn page(page_type: PageType, uncompressed_size: u32, num_values: i32) -> ChunkPage {
        ChunkPage {
            index: 0,
            offset: 4,
            header_len: 20,
            page_type,
            compressed_size: 30,
            uncompressed_size,
            num_values,
            crc: None,
            levels_size: 0,
            is_compressed: true,
            encoding: Encoding::Plain,
            level_encodings: [Encoding::Rle; 2],
            is_one_kind: true,
            repetition_size: 0,
            num_nulls: None,
            num_rows: None,
        }
    }

    #[test]
    fn arrow_before_release_3_compressed_what_it_said_it_did_not() {
        assert!(compresses_all(Some("parquet-cpp version 1.5.1-SNAPSHOT")));
        for other in
            ["parquet-cpp-arrow version 3.0.0", "parquet-cpp version 2.0.0", "parquet-mr version 1.8.1"]
        {
            assert!(!compresses_all(Some(other)), "{other}");
        }
        let page = ChunkPage { is_compressed: false, ..page(PageType::DataPageV2, 400, 10) };
        let limits = PageLimits { compresses_all: true, ..limits(Codec::Snappy, 0) };
        assert!(
            limits.denies_codec(&page) && !PageLimits { compresses_all: false, ..limits }.denies_codec(&page)
        );
        assert!(!PageLimits { codec: Codec::Uncompressed, ..limits }.denies_codec(&page));
    }

    #[test]
    fn counts_that_cannot_be_true_are_refused() {
        let flat = limits(Codec::Snappy, 0);
        assert!(flat.check_header(&page(PageType::DictionaryPage, 400, 100)).is_ok());
        assert!(flat.check_header(&page(PageType::DictionaryPage, 400, 101)).is_err());
        assert!(flat.check_header(&page(PageType::DataPage, 400, i32::MAX)).is_ok(), "NULL takes no bytes");
        assert!(limits(Codec::Snappy, 1).check_header(&page(PageType::DataPage, 400, i32::MAX)).is_err());
        assert!(limits(Codec::Snappy, 1).check_header(&page(PageType::DataPage, 400, -1)).is_err());
        let two = ChunkPage { is_one_kind: false, ..page(PageType::DataPage, 400, 1) };
        assert!(flat.check_header(&two).is_err());
    }

    #[test]
    fn snappys_length_is_compared_with_what_the_header_claims() {
        let limits = limits(Codec::Snappy, 0);
        let page = |uncompressed_size, levels_size| ChunkPage {
            levels_size,
            ..page(PageType::DataPageV2, uncompressed_size, 10)
        };
        assert!(limits.check_body(&page(300, 0), &[0xac, 2]).is_ok());
        assert!(limits.check_body(&page(302, 2), &[9, 9, 0xac, 2]).is_ok(), "after levels");
        for claimed in [299, 301] {
            assert!(limits.check_body(&page(claimed, 0), &[0xac, 2]).is_err(), "{claimed}");
        }
    }
}
