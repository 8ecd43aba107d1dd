//! Checks the checksums of pages.

use sawmill_footer::{Footer, PageChecksums, RangeReader, page_checksums};

use super::Inconsistency;

/// Reads the pages of all decoded column chunks that are in this file and not encrypted. For every chunk,
/// calls `found` with the first page whose checksum does not match or that cannot be read. Returns the
/// sums over all chunks.
pub(crate) fn check_pages<R: RangeReader + ?Sized>(
    footer: &Footer,
    reader: &R,
    mut found: impl FnMut(Inconsistency),
) -> PageChecksums {
    let mut all = PageChecksums::default();
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        if chunk.is_here().is_err() || chunk.is_encrypted() || !chunk.has_metadata() {
            continue;
        }
        // Values that the footer does not count are in all pages.
        let is_counted = chunk.num_values() > 0 || chunk.row_group().num_rows() == 0;
        let values = if is_counted { chunk.num_values() } else { i64::MAX };
        let PageChecksums { pages, checked, bytes, wrong, unread, .. } =
            page_checksums(reader, chunk.byte_range(), values);
        all.pages += pages;
        all.checked += checked;
        all.bytes += bytes;
        let what = wrong
            .map(|wrong| format!("expected bytes that match the page's checksum, found others in {wrong}"));
        let what = what.or_else(|| unread.map(|error| format!("{} - {}", error.what(), error.path())));
        if let Some(what) = what {
            let path = format!("row_groups[{}].columns[{}], pages", chunk.row_group().index(), chunk.leaf());
            found(Inconsistency { what, path, offset: Some(chunk.footer_offset() as u64) });
        }
    }
    all
}
