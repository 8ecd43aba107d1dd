//! Reads the pages of a column chunk and checks each: its checksum, its size and its levels.
//!
//! Source: `parquet.thrift`, `PageHeader.crc`: the CRC-32 of a page's body as stored in the file, after any
//! compression and including levels. Writers may omit it.

use std::ops::Range;

use sawmill_footer::{ChunkPage, ChunkPages, Error, PageType, RangeReader};

use crate::pages::coded_rows::RowBytes;
use crate::pages::levels::Levels;
use crate::pages::limits::{Content, LargestPages, PageLimits, damaged, is_coded, refused};
use crate::rewrite::output::{I32, Output};

/// The field that states whether a page of version 2 is compressed, behind its sizes of levels.
const COMPRESSED: u8 = 0x11;
const NOT_COMPRESSED: u8 = 0x12;

/// The result of checking the pages of a column chunk.
#[derive(Debug, Clone, Default)]
pub struct CheckedPages {
    /// The pages that were read.
    pub pages: u64,
    /// Pages whose checksum matches their bytes.
    pub checked: u64,
    /// The first page whose checksum does not match its bytes, and both. Later pages were not read.
    pub wrong: Option<String>,
    /// Why later pages could not be read, if their own content is the reason.
    pub unread: Option<Error>,
    /// Why a page must not be decoded. Later pages were not read.
    pub refused: Option<Error>,
    /// The largest dictionary page and the largest data page.
    pub largest: LargestPages,
    /// Corrected headers.
    pub restated: CorrectedHeaders,
    /// Where data pages begin, and how many rows the pages before have, as far as levels tell; and the same of the end.
    pub starts: Vec<(u64, u64)>,
}

/// Where the headers of pages are that state more rows than the page has, or that it is not compressed, and headers of
/// the same length that state what is true: a decoder must read these.
pub type CorrectedHeaders = Vec<(u64, Vec<u8>)>;

/// Checks the pages in this range of a file, usually [`ColumnChunk::byte_range`](sawmill_footer::ColumnChunk::byte_range),
/// up to the page that holds the last of `num_values` values and, if their number is known, of its rows. Stops at the
/// first page beyond these limits. `checksums` says whether to verify checksums.
pub fn check_pages_within<R: RangeReader + ?Sized>(
    reader: &R,
    range: Range<u64>,
    num_values: i64,
    limits: &PageLimits,
    checksums: bool,
) -> CheckedPages {
    let checks = Checks { checksums, limits: Some(limits), any_size: false, max_row: u64::MAX };
    read_pages(reader, range, num_values, checks)
}

/// What to check of pages.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'l> {
    pub checksums: bool,
    pub limits: Option<&'l PageLimits>,
    /// Whether a page beyond the limit of its size is none to refuse; its levels are then unknown.
    pub any_size: bool,
    /// The most bytes that a row of a list may take, decoded.
    pub max_row: u64,
}

pub(crate) fn read_pages<R: RangeReader + ?Sized>(
    reader: &R,
    range: Range<u64>,
    num_values: i64,
    checks: Checks<'_>,
) -> CheckedPages {
    let mut pages = ChunkPages::new(reader, range);
    let mut found = CheckedPages::default();
    let (mut data, mut dictionary) = (LargestPages::default(), LargestPages::default());
    let (mut texts, mut row) = (Texts::default(), 0);
    let (mut rows, mut has_dictionary) = (Rows::new(checks), false);
    let (mut left, mut end) = (num_values, 0);
    while left > 0 || rows.are_missing() {
        if reader.is_stopped() {
            found.refused = Some(Error::new("stopped"));
            break;
        }
        let ReadPage { page, denies_codec, crc, content, body } =
            match read_page(&mut pages, checks, texts.longest) {
                Ok(Some(read)) => read,
                Ok(None) => {
                    found.refused = rows.check().err();
                    break;
                }
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
        let is_data = matches!(page.page_type, PageType::DataPage | PageType::DataPageV2);
        if is_data && !page.encoding.is_known() {
            let what = format!("expected an encoding of the format, found {}", page.encoding);
            let error = Error::new(what).with_advice("leave out the column; the other columns can be read");
            found.refused = Some(error.at_path(place_of(&page)));
            break;
        }
        let is_text = checks.limits.is_some_and(|limits| limits.is_text);
        let kind = if is_data { &mut data } else { &mut dictionary };
        *kind = kind.or(&page, is_text);
        if page.page_type == PageType::DictionaryPage {
            texts.add(&page, &body, checks);
            has_dictionary = true;
        }
        if checks.any_size && !has_dictionary && has_indices(&page, content, checks) {
            let what = "expected a dictionary page before a page of its indices, found none".to_owned();
            found.refused = Some(damaged(what).at_path(place_of(&page)));
            break;
        }
        if let Some((stated, crc)) = page.crc.zip(crc) {
            if crc != stated {
                found.wrong = Some(other_checksum(&page, stated, crc));
                break;
            }
            found.checked += 1;
        }
        if is_data {
            left = left.saturating_sub(page.num_values.into());
            found.starts.extend(rows.found.map(|before| (page.offset, before)));
            end = page.offset + page.header_len as u64 + u64::from(page.compressed_size);
            let added = rows.add_bytes(&page, content, &texts, &body).and_then(|bytes| {
                row = row.max(bytes);
                let more =
                    content.levels.map(|levels| rows.check_stated(&page, levels)).transpose()?.flatten();
                if more.is_some() || denies_codec {
                    found.restated.push(restated(reader, &page, more, denies_codec)?);
                }
                rows.add(&page, content.levels)
            });
            if let Err(error) = added {
                found.refused = Some(error);
                break;
            }
        }
    }
    found.starts.extend(rows.found.map(|all| (end, all)));
    found.largest = LargestPages { row, ..data.and(dictionary) };
    found
}

/// Whether a page has indices of a dictionary, as far as its levels are known. Writers leave out an empty dictionary.
fn has_indices(page: &ChunkPage, content: Content, checks: Checks<'_>) -> bool {
    let has_levels = checks.limits.is_none_or(|limits| limits.max_levels != [0, 0]);
    let has_values = content.levels.map_or(!has_levels && page.num_values > 0, |levels| levels.values > 0);
    is_coded(page) && has_values && page.page_type != PageType::DictionaryPage
}

/// The texts of a chunk's dictionary.
#[derive(Default)]
struct Texts {
    /// The bytes of the longest, or of each value of another type.
    longest: u64,
    /// Those of each text of a list, if there is one dictionary.
    lengths: Option<Vec<u32>>,
    are_read: bool,
}

impl Texts {
    fn add(&mut self, page: &ChunkPage, body: &[u8], checks: Checks<'_>) {
        let Some(limits) = checks.limits.filter(|_| !checks.any_size) else { return };
        let lengths = if limits.is_text { limits.lengths(page, body) } else { None };
        let longest = match &lengths {
            Some(lengths) => lengths.iter().max().copied().unwrap_or(0),
            None if limits.is_text => page.uncompressed_size,
            None => limits.value_size,
        };
        self.longest = self.longest.max(longest.into());
        self.lengths = lengths.filter(|_| limits.max_levels[1] > 0 && !self.are_read);
        self.are_read = true;
    }
}

/// The rows of the pages that were read.
struct Rows<'l> {
    checks: Checks<'l>,
    wanted: Option<u64>,
    /// How many there are, if the levels of all pages are known.
    found: Option<u64>,
    /// Whether a page had values.
    began: bool,
    /// How many values the last row has so far, at most, and how many it may have.
    open: u64,
    max_list: u64,
    /// How many bytes the last row may have so far.
    open_bytes: u64,
}

impl<'l> Rows<'l> {
    fn new(checks: Checks<'l>) -> Self {
        Self {
            checks,
            wanted: checks.limits.and_then(|limits| limits.rows),
            found: Some(0),
            began: false,
            open: 0,
            open_bytes: 0,
            max_list: checks.limits.filter(|_| !checks.any_size).map_or(u64::MAX, PageLimits::max_list),
        }
    }

    fn are_missing(&self) -> bool {
        self.wanted.zip(self.found).is_some_and(|(wanted, found)| found < wanted)
    }

    /// Checks the rows that the header of a page of version 2 states, by which readers skip pages. Returns how many the
    /// page has, if the header states more and is to be corrected.
    fn check_stated(&self, page: &ChunkPage, levels: Levels) -> Result<Option<u64>, Error> {
        let Some(stated) = page.num_rows else { return Ok(None) };
        let corrects = self.checks.limits.is_some_and(|limits| limits.corrects_rows);
        let (rows, is_more) = (levels.rows, u64::try_from(stated).is_ok_and(|stated| stated > levels.rows));
        let error = if !levels.begins_row && self.began {
            let what = "expected a page of version 2 to begin with a row, found one that continues a row";
            let advice = "Arrow C++ before release 12 wrote such lists: read the file with pyarrow and write it again, \
                          or leave the column out";
            Error::new(what).with_advice(advice)
        } else if i64::from(stated).cast_unsigned() == rows || is_more && corrects {
            return Ok(Some(rows).filter(|_| is_more));
        } else {
            let by = match stated == page.num_values {
                true => {
                    ", the number of values, which Arrow C++ before release 12 and parquet.js write for lists"
                }
                false => "",
            };
            damaged(format!("expected a num_rows of {rows}, as the page's levels have, found {stated}{by}"))
        };
        Err(error.at_path(place_of(page)))
    }

    /// Adds the rows of a data page.
    fn add(&mut self, page: &ChunkPage, levels: Option<Levels>) -> Result<(), Error> {
        self.found = self.found.zip(levels).map(|(found, levels)| found.saturating_add(levels.rows));
        if let Some(Levels { longest_row, rows, begins_row, .. }) = levels {
            let before = if begins_row { 0 } else { self.open };
            let values = before.saturating_add(longest_row);
            if values > self.max_list {
                let most = self.max_list;
                let what =
                    format!("expected rows with at most {most} values in a list, found one with {values}");
                return Err(refused(what).at_path(place_of(page)));
            }
            self.open = if rows == 0 { values } else { longest_row };
        }
        let is_first = !self.began;
        self.began |= page.num_values > 0;
        let what = if is_first && levels.is_some_and(|levels| !levels.begins_row) {
            "expected the repetition level 0 at the start of a row, found a higher one".to_owned()
        } else if let Some((wanted, found)) = self.wanted.zip(self.found).filter(|(all, found)| found > all) {
            format!("expected pages of {wanted} rows, as the row group has, found {found} up to this one")
        } else {
            return Ok(());
        };
        Err(damaged(what).at_path(place_of(page)))
    }

    /// Adds the bytes of the rows of a data page, before its rows. Returns those of a row: their mean, or with a
    /// dictionary the most.
    fn add_bytes(
        &mut self,
        page: &ChunkPage,
        content: Content,
        texts: &Texts,
        body: &[u8],
    ) -> Result<u64, Error> {
        let (size, longest) = (u64::from(page.uncompressed_size).max(content.text), texts.longest);
        let Some(levels) = content.levels else {
            let values = u64::try_from(page.num_values).unwrap_or(0);
            return Ok(if is_coded(page) { values.saturating_mul(longest) } else { size });
        };
        let of_values = self.checks.limits.map_or(0, |limits| limits.row_of_values(page, levels));
        let mean = size.div_ceil(levels.rows.max(1)).max(of_values);
        // Outside of lists a row has one value, which is in one page.
        if levels.longest_row == 0 {
            return Ok(if is_coded(page) {
                longest.min(levels.values.saturating_mul(longest))
            } else {
                mean
            });
        }
        let open = if levels.begins_row { 0 } else { self.open_bytes };
        let summed = || {
            let limits = self.checks.limits.filter(|limits| limits.is_summed(page, longest, Some(levels)))?;
            limits.row_bytes(page, body, levels, texts.lengths.as_deref()?, open)
        };
        let rows = match is_coded(page) {
            true => summed().unwrap_or_else(|| RowBytes::at_most(longest, levels, open)),
            false => RowBytes::at_most(size, Levels { longest_row: 1, values: 1, ..levels }, open),
        };
        if rows.largest > self.checks.max_row {
            let (most, bytes) = (self.checks.max_row, rows.largest);
            let what =
                format!("expected rows of at most {most} bytes in a list, found one that may take {bytes}");
            return Err(refused(what).at_path(place_of(page) + &self.place_in(levels, rows.begun)));
        }
        self.open_bytes = rows.last;
        Ok(if is_coded(page) { rows.largest.max(of_values) } else { mean })
    }

    /// Which row of the next page, with these levels, is the one that was reached when `begun` rows had begun there; or
    /// which rows it has. Empty if that is unknown.
    fn place_in(&self, levels: Levels, begun: Option<u64>) -> String {
        let Some(found) = self.found else { return String::new() };
        let row_of = |begun: u64| found.saturating_add(begun).saturating_sub(1);
        let first = row_of(u64::from(levels.begins_row));
        let (first, last) = match begun {
            Some(begun) => (row_of(begun), row_of(begun)),
            None => (first, first.max(row_of(levels.rows))),
        };
        if first == last { format!(", row {first}") } else { format!(", rows {first} to {last}") }
    }

    /// Checks that there are as many as there should be, after the last page.
    fn check(&self) -> Result<(), Error> {
        match self.wanted.zip(self.found).filter(|(wanted, found)| wanted != found) {
            None => Ok(()),
            Some((wanted, found)) => Err(damaged(format!(
                "expected pages of {wanted} rows, as the row group has, found {found} in all of them"
            ))),
        }
    }
}

/// Where the header of a page is, and one of the same length that states these rows, or that the page is compressed.
fn restated<R: RangeReader + ?Sized>(
    reader: &R,
    page: &ChunkPage,
    rows: Option<u64>,
    denies_codec: bool,
) -> Result<(u64, Vec<u8>), Error> {
    let unknown =
        || damaged("expected the numbers of a page in its header".to_owned()).at_path(place_of(page));
    let failed =
        |error: std::io::Error| Error::new(format!("reading a page failed: {error}")).at_path(place_of(page));
    let mut header = vec![0; page.header_len];
    reader.read_exact_at(page.offset, &mut header).map_err(failed)?;
    let [nulls, stated] = [page.num_nulls, page.num_rows].map(Option::unwrap_or_default);
    let of_levels = [page.levels_size.saturating_sub(page.repetition_size), page.repetition_size];
    let [definition, repetition] = of_levels.map(u32::cast_signed);
    let numbers = [page.num_values, nulls, stated, page.encoding.number(), definition, repetition];
    // Where the first fields of the page's kind end.
    let end_of = |header: &[u8], numbers: &[i32]| {
        let mut sought = Output::with_room(6 * numbers.len());
        for (field, number) in (1..).zip(numbers) {
            sought.field(field, I32);
            sought.integer(I32, (*number).into());
        }
        let sought = sought.into_bytes();
        header.windows(sought.len()).position(|bytes| bytes == sought).map(|at| at + sought.len())
    };
    if denies_codec {
        let end = end_of(&header, &numbers).ok_or_else(unknown)?;
        *header.get_mut(end).filter(|flag| **flag == NOT_COMPRESSED).ok_or_else(unknown)? = COMPRESSED;
    }
    if let Some(rows) = rows {
        let end = end_of(&header, &numbers[..3]).ok_or_else(unknown)?;
        // The bytes of the larger number: all but the last are marked as continued.
        let len = 1 + header[..end].iter().rev().skip(1).take_while(|byte| **byte >= 0x80).count();
        for (number, byte) in header[end - len..end].iter_mut().enumerate() {
            *byte = (rows << 1 >> (7 * number)) as u8 & 0x7f | if number + 1 < len { 0x80 } else { 0 };
        }
    }
    let again = ChunkPages::new(header.as_slice(), 0..u64::MAX).begin(false)?.ok_or_else(unknown)?;
    let num_rows = rows.map_or(page.num_rows, |rows| i32::try_from(rows).ok());
    let wanted = ChunkPage { index: 0, offset: 0, num_rows, ..*page };
    if again == wanted { Ok((page.offset, header)) } else { Err(unknown()) }
}

/// Where a page is.
fn place_of(page: &ChunkPage) -> String {
    format!("page {}, byte {} of the file", page.index, page.offset)
}

enum Unread {
    Broken(Error),
    Refused(Error),
}

/// A page, with the checksum of its bytes and what they tell, if they were looked at; and as much of its body as that
/// takes.
struct ReadPage {
    page: ChunkPage,
    /// Whether its header denies that it is compressed.
    denies_codec: bool,
    crc: Option<u32>,
    content: Content,
    body: Vec<u8>,
}

/// Reads the next page as far as the checks need it, if no value of the dictionary is longer than this.
fn read_page<R: RangeReader + ?Sized>(
    pages: &mut ChunkPages<'_, R>,
    Checks { checksums, limits, any_size, .. }: Checks<'_>,
    longest: u64,
) -> Result<Option<ReadPage>, Unread> {
    let Some(mut page) = pages.begin(checksums).map_err(Unread::Broken)? else { return Ok(None) };
    let denies_codec = limits.is_some_and(|limits| limits.denies_codec(&page));
    page.is_compressed |= denies_codec;
    let limits = limits.filter(|limits| !any_size || limits.hold(&page));
    let unfit = |error: Error| Unread::Refused(error.at_path(place_of(&page)));
    if let Some(limits) = limits {
        limits.check_header(&page).map_err(|what| unfit(refused(what)))?;
    }
    let needed = limits.map_or(0, |limits| limits.needed(&page, longest));
    if !checksums && needed == 0 {
        pages.leave_out(&page).map_err(Unread::Broken)?;
        let content = limits.map(|limits| limits.check_body(&page, &[]).map_err(unfit)).transpose()?;
        let content = content.unwrap_or_default();
        return Ok(Some(ReadPage { page, denies_codec, crc: None, content, body: Vec::new() }));
    }
    let mut hasher = page.crc.filter(|_| checksums).map(|_| crc32fast::Hasher::new());
    let mut body = Vec::new();
    let take = |part: &[u8]| {
        if let Some(hasher) = &mut hasher {
            hasher.update(part);
        }
        body.extend_from_slice(&part[..part.len().min(needed - body.len())]);
    };
    pages.read_body(&page, take).map_err(Unread::Broken)?;
    let crc = hasher.map(crc32fast::Hasher::finalize);
    // Bytes that were changed are that, whatever they decompress to.
    let content = match limits.filter(|_| crc == page.crc.filter(|_| checksums)) {
        Some(limits) => limits.check_body(&page, &body).map_err(unfit)?,
        None => Content::default(),
    };
    Ok(Some(ReadPage { page, denies_codec, crc, content, body }))
}

/// What is wrong with a page whose header states another checksum than its bytes have.
fn other_checksum(page: &ChunkPage, stated: u32, found: u32) -> String {
    let kind = match page.page_type {
        PageType::DictionaryPage => "dictionary",
        PageType::IndexPage => "index",
        PageType::DataPage | PageType::DataPageV2 => "data",
        PageType::Unknown(_) => "of an unknown type",
    };
    let (index, offset) = (page.index, page.offset);
    format!(
        "page {index} ({kind}, byte {offset} of the file): its header has the checksum {stated:08x}, its bytes have {found:08x}"
    )
}
