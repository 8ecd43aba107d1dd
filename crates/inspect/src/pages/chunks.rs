//! Checks the pages of column chunks, with the limits that the footer gives them.

use sawmill_footer::{ColumnChunk, Error, Footer, RangeReader};

use crate::check::Inconsistency;
use crate::check::structure::has_unknown_levels;
use crate::pages::limits::{DEFAULT_MAX_PAGE, LargestPages, MAX_LIST, PageLimits, compresses_all};
use crate::pages::reading::{CheckedPages, Checks, CorrectedHeaders, read_pages};

/// Checks the sizes and levels of the pages that hold the first `rows` rows of the wanted column chunks, before a
/// decoder of pages sees them. The limit of one page is `max_page` bytes. Returns how many bytes a row of these
/// columns may take, decoded, as [`LargestPages::row`] has it; and the headers of pages that their decoder must read in place
/// of the file's.
///
/// Costs a read for each page, and a walk over its levels. Pages of Brotli, large pages of Gzip and LZ4, and pages of
/// text stored as differences of lengths are decompressed.
///
/// # Errors
///
/// A page is larger than that or than its chunk, decompresses to something else than its header claims, or has
/// other levels; a chunk has not the rows of its row group; a row's list may take more than two such pages, decoded;
/// or the largest pages of all columns, together, are too large and hardly stored. Pages that cannot be read are
/// left to their decoder.
pub fn check_page_sizes<R: RangeReader + ?Sized>(
    footer: &Footer,
    reader: &R,
    max_page: u64,
    rows: u64,
    wanted: impl Fn(&ColumnChunk<'_>) -> bool,
) -> Result<(u64, CorrectedHeaders), Error> {
    let max_row = max_page.saturating_mul(MAX_LIST);
    let (mut row, mut corrected) = (0, Vec::new());
    let mut left = i64::try_from(rows).unwrap_or(i64::MAX);
    for group in footer.row_groups() {
        if left <= 0 {
            break;
        }
        let mut largest = LargestPages::default();
        for chunk in group.columns() {
            if chunk.is_encrypted() || !chunk.has_metadata() || !wanted(&chunk) {
                continue;
            }
            let (found, headers) = check_sizes(&chunk, reader, max_page, left.unsigned_abs(), max_row)?;
            corrected.extend(headers);
            largest = largest.and(found);
            largest.check(max_page).map_err(|error| in_chunk(&chunk, error))?;
        }
        row = row.max(largest.row);
        left -= group.num_rows();
    }
    Ok((row, corrected))
}

/// Checks the sizes of the pages that hold the first `rows` rows of a chunk, as [`check_page_sizes`] does. Returns the
/// largest of them.
///
/// # Errors
///
/// As there, but for pages of several columns together, and for what a row takes.
pub fn check_chunk_page_sizes<R: RangeReader + ?Sized>(
    chunk: &ColumnChunk<'_>,
    reader: &R,
    max_page: u64,
    rows: u64,
) -> Result<LargestPages, Error> {
    check_sizes(chunk, reader, max_page, rows, u64::MAX).map(|(largest, _)| largest)
}

fn check_sizes<R: RangeReader + ?Sized>(
    chunk: &ColumnChunk<'_>,
    reader: &R,
    max_page: u64,
    rows: u64,
    max_row: u64,
) -> Result<(LargestPages, CorrectedHeaders), Error> {
    // A row of a list may have any number of values.
    let is_list = chunk.element().max_rep() > 0;
    let most = if is_list { i64::MAX } else { i64::try_from(rows).unwrap_or(i64::MAX) };
    let limits = limits(chunk, max_page, rows);
    let checks = Checks { checksums: false, limits: Some(&limits), any_size: false, max_row };
    let found = read_pages(reader, chunk.byte_range(), values_of_pages(chunk).min(most), checks);
    found.refused.map_or(Ok((found.largest, found.restated)), |error| Err(in_chunk(chunk, error)))
}

/// The values of all pages; more than there can be, if the footer does not count them.
fn values_of_pages(chunk: &ColumnChunk<'_>) -> i64 {
    match chunk.known_values() {
        values if values > 0 || chunk.row_group().num_rows() == 0 => values,
        _ => i64::MAX,
    }
}

/// The limits of a chunk's pages, of which those with the first `rows` rows are read.
fn limits(chunk: &ColumnChunk<'_>, max_page: u64, rows: u64) -> PageLimits {
    let element = chunk.element();
    let max_levels = [element.max_def(), element.max_rep()];
    PageLimits {
        codec: chunk.codec(),
        chunk_size: chunk.uncompressed_size(),
        rows: u64::try_from(chunk.row_group().num_rows()).ok().filter(|all| *all <= rows),
        compresses_all: compresses_all(chunk.row_group().footer().created_by().as_deref()),
        ..PageLimits::new(element.physical_type(), element.type_length(), max_levels, max_page)
    }
}

fn in_chunk(chunk: &ColumnChunk<'_>, error: Error) -> Error {
    let mut place = format!("row group {}, column {}", chunk.row_group().index(), chunk.path());
    if !error.path().is_empty() {
        place = format!("{place}, {}", error.path());
    }
    let error = error.at_path(place);
    match chunk.row_group().footer().file_name() {
        Some(name) => error.in_file(name),
        None => error,
    }
}

/// Reads the pages of all decoded column chunks that are in this file and not encrypted. For every chunk, calls `found`
/// with the first page whose checksum does not match, whose levels are not what its header and its row group state, or
/// that cannot be read. Levels of pages larger than [`DEFAULT_MAX_PAGE`] are not looked at. Returns the sums over all
/// chunks, and how many were left out.
pub(crate) fn check_pages<R: RangeReader + ?Sized>(
    footer: &Footer,
    reader: &R,
    mut found: impl FnMut(Inconsistency),
) -> (CheckedPages, u64) {
    let (mut all, mut left_out) = (CheckedPages::default(), 0);
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        if chunk.is_here().is_err() || chunk.is_encrypted() || !chunk.has_metadata() {
            left_out += 1;
            continue;
        }
        let limits = PageLimits { corrects_rows: false, ..limits(&chunk, DEFAULT_MAX_PAGE, u64::MAX) };
        let limits = Some(&limits).filter(|_| !has_unknown_levels(chunk.element()));
        let checks = Checks { checksums: true, limits, any_size: true, max_row: u64::MAX };
        let read = read_pages(reader, chunk.byte_range(), values_of_pages(&chunk), checks);
        all.pages += read.pages;
        all.checked += read.checked;
        let wrong = read
            .wrong
            .map(|wrong| format!("expected bytes that match the page's checksum, found others in {wrong}"));
        let told = read.unread.or(read.refused).map(|error| match error.path() {
            "" => error.what(),
            page => format!("{} - {page}", error.what()),
        });
        if let Some(what) = wrong.or(told) {
            let path = format!("row_groups[{}].columns[{}], pages", chunk.row_group().index(), chunk.leaf());
            found(Inconsistency { what, path, offset: Some(chunk.footer_offset() as u64) });
        }
    }
    (all, left_out)
}
