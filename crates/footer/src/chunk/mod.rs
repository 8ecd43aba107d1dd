//! Row groups and column chunks: the packed rows that decoding stores, and fields decoded on demand.

pub(crate) mod column_chunk;
pub(crate) mod details;
pub(crate) mod encryption;
pub(crate) mod pages;
pub(crate) mod row_group;
pub(crate) mod rows;
pub(crate) mod short_sizes;
pub(crate) mod statistics;
