//! Checks pages before a decoder sees them: checksums, sizes, levels, and the lengths of text (feature
//! `page-checksums`).

mod coded_rows;
mod decompress;
mod delta_text;
mod levels;
pub(crate) mod page_checksums;
pub(crate) mod page_sizes;
