//! The memory that footers need: fallible allocation, huge pages, reuse.

pub(crate) mod allocate;
pub(crate) mod pages;
pub(crate) mod spare;
pub(crate) mod word_hasher;
