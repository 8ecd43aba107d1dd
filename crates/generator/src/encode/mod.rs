//! Encodings, codecs, statistics and Bloom filters of values; the Thrift of headers and footers.

pub(crate) mod bloom_filter;
pub(crate) mod byte_stream_split;
pub(crate) mod compression;
pub(crate) mod delta;
pub(crate) mod dictionary_page;
pub(crate) mod levels;
pub(crate) mod long_bounds;
pub(crate) mod physical;
pub(crate) mod statistics;
pub(crate) mod thrift;
pub(crate) mod values;
