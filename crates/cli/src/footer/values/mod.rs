//! What is in the pages rather than in the footer: rows, dictionaries, Bloom filters.

#[cfg(feature = "full")]
mod bloom;
pub(crate) mod bloom_args;
#[cfg(feature = "full")]
mod chunk_alone;
#[cfg(feature = "full")]
mod dictionary;
pub(crate) mod dictionary_args;
#[cfg(feature = "full")]
mod head;
pub(crate) mod head_args;
