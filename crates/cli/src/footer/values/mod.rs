//! What is in the pages rather than in the footer: rows, dictionaries, Bloom filters.

#[cfg(feature = "formats")]
mod bloom;
pub(crate) mod bloom_args;
#[cfg(feature = "formats")]
mod chunk_alone;
#[cfg(feature = "formats")]
mod dictionary;
pub(crate) mod dictionary_args;
#[cfg(feature = "formats")]
mod head;
pub(crate) mod head_args;
