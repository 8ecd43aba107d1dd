//! Rows, dictionaries and Bloom filters, read by the `parquet` crate.

mod bloom;
mod chunk_alone;
mod dictionary;
mod head;

pub(crate) use {bloom::run as bloom, dictionary::run as dictionary, head::run as head};
