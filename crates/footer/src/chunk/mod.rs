//! Row groups and column chunks: the packed rows that decoding stores, and fields decoded on demand.

pub(crate) mod column_chunk;
#[cfg(feature = "page-checksums")]
pub(crate) mod decompress;
#[cfg(feature = "page-checksums")]
pub(crate) mod delta_text;
pub(crate) mod details;
pub(crate) mod encryption;
#[cfg(feature = "page-checksums")]
pub(crate) mod page_checksums;
#[cfg(feature = "page-checksums")]
pub(crate) mod page_sizes;
pub(crate) mod pages;
pub(crate) mod row_group;
pub(crate) mod rows;
pub(crate) mod short_sizes;
pub(crate) mod statistics;
