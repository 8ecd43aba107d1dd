//! Contents of pages: rows, dictionaries, Bloom filters.

pub(crate) mod args;
#[cfg_attr(not(feature = "full"), path = "../../demo_build/values.rs")]
mod contents;

pub(crate) use contents::{bloom, dictionary, head};
