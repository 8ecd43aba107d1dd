//! A saved index of a footer: locates each column chunk without decoding it.

pub(crate) mod index;
pub(crate) mod indexed_chunk;
pub(crate) mod indexed_footer;
mod layout;
pub(crate) mod pass;
pub(crate) mod sum;

pub(crate) use layout::{MAGIC, WRITE_AGAIN, no_index};
