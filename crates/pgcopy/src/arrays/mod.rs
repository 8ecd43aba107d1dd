//! Views of Arrow arrays for every layout: integers, bytes, dictionary keys, lists; and the error for a value
//! that cannot be encoded.

pub(crate) mod byte_strings;
pub(crate) mod checked_text;
pub(crate) mod dictionary;
pub(crate) mod fault;
pub(crate) mod inline_view;
pub(crate) mod integers;
pub(crate) mod lists;
pub(crate) mod marks;
pub(crate) mod parquet_interval;
