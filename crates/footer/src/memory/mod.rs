//! The memory that footers need: fallible allocation, huge pages, reuse.

pub(crate) mod allocate;
#[cfg_attr(not(feature = "fast"), path = "without_pages.rs")]
pub(crate) mod pages;
pub(crate) mod word_hasher;
