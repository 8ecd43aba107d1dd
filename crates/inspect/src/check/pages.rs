//! Checks the checksums and levels of pages.

use sawmill_footer::{Footer, PageChecksums, RangeReader, page_checksums};

use super::Inconsistency;
use crate::check::structure::has_unknown_levels;

/// Reads the pages of all decoded column chunks that are in this file and not encrypted. For every chunk,
/// calls `found` with the first page whose checksum does not match, whose levels are not what its header and its row
/// group state, or that cannot be read. Returns the sums over all chunks, and how many were left out.
pub(crate) fn check_pages<R: RangeReader + ?Sized>(
    footer: &Footer,
    reader: &R,
    mut found: impl FnMut(Inconsistency),
) -> (PageChecksums, u64) {
    let (mut all, mut left_out) = (PageChecksums::default(), 0);
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        if chunk.is_here().is_err() || chunk.is_encrypted() || !chunk.has_metadata() {
            left_out += 1;
            continue;
        }
        let PageChecksums { pages, checked, bytes, wrong, unread, refused, .. } =
            match has_unknown_levels(chunk.element()) {
                true => page_checksums(reader, chunk.byte_range(), chunk.num_values()),
                false => chunk.check_pages(reader),
            };
        all.pages += pages;
        all.checked += checked;
        all.bytes += bytes;
        let what = wrong
            .map(|wrong| format!("expected bytes that match the page's checksum, found others in {wrong}"));
        let told = unread.or(refused).map(|error| match error.path() {
            "" => error.what(),
            page => format!("{} - {page}", error.what()),
        });
        let what = what.or(told);
        if let Some(what) = what {
            let path = format!("row_groups[{}].columns[{}], pages", chunk.row_group().index(), chunk.leaf());
            found(Inconsistency { what, path, offset: Some(chunk.footer_offset() as u64) });
        }
    }
    (all, left_out)
}
