//! Contents of pages: rows, dictionaries, Bloom filters.

pub(crate) mod args;
#[cfg(feature = "full")]
mod bloom;
#[cfg(feature = "full")]
mod chunk_alone;
#[cfg(feature = "full")]
mod dictionary;
#[cfg(feature = "full")]
mod head;
#[cfg(not(feature = "full"))]
pub(crate) use crate::demo_build::values::{bloom, dictionary, head};
#[cfg(feature = "full")]
pub(crate) use {bloom::run as bloom, dictionary::run as dictionary, head::run as head};
