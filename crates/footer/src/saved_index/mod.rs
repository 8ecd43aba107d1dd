//! An index of a footer that can be saved: where each column chunk stands, without decoding it.

pub(crate) mod index;
pub(crate) mod indexed_chunk;
pub(crate) mod indexed_footer;
mod layout;
pub(crate) mod pass;
pub(crate) mod sum;

pub(crate) use layout::{MAGIC, WRITE_AGAIN, no_index};
