//! Which sizes of column chunks can be true.

use std::ops::Range;

use sawmill_footer::{ColumnChunk, Footer};

/// The length of the magic bytes at the start of a file.
const MAGIC_LEN: u64 = 4;

/// The length of what follows a footer: its length, and the magic bytes again.
const TAIL_LEN: u64 = 8;

/// The part of the file that can hold data and indexes; without an end if the file's length is unknown, or the file
/// is a footer alone.
pub(crate) fn body_of(footer: &Footer) -> Range<u64> {
    let is_whole = !footer.has_no_data();
    let end = footer.file_len().filter(|_| is_whole).map(|len| len - TAIL_LEN.min(len));
    let end = end.map_or(u64::MAX, |end| end.saturating_sub(footer.footer_len() as u64));
    MAGIC_LEN..end
}

/// Whether a chunk has values, by its row group if it states none: then its pages have bytes.
pub(crate) fn has_values(chunk: &ColumnChunk<'_>) -> bool {
    chunk.has_metadata() && (chunk.num_values() > 0 || chunk.row_group().num_rows() > 0)
}

/// The sizes that are 0 or negative, and the chunk has values: the names of their fields.
pub(crate) fn states_no_bytes(chunk: &ColumnChunk<'_>) -> impl Iterator<Item = &'static str> + use<> {
    let sizes = [
        ("total_uncompressed_size", chunk.uncompressed_size()),
        ("total_compressed_size", chunk.compressed_size()),
    ];
    let has_values = has_values(chunk);
    sizes.into_iter().filter(move |(_, size)| *size == 0 && has_values).map(|(name, _)| name)
}

/// The bytes that the footer states for the pages of a chunk.
pub(crate) fn stated_range(chunk: &ColumnChunk<'_>) -> Range<u64> {
    let start = chunk.byte_range().start;
    start..start.saturating_add(chunk.compressed_size().unsigned_abs())
}

/// Whether the stated pages of a chunk end after the last byte of data.
pub(crate) fn is_beyond(chunk: &ColumnChunk<'_>, body: &Range<u64>) -> bool {
    chunk.has_metadata() && stated_range(chunk).end > body.end && chunk.is_here().is_ok()
}
