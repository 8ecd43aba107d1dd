//! What a kept index is as bytes, and the sums by which it knows damage and other footers.

mod layout;
pub(crate) mod sum;

pub(crate) use layout::{MAGIC, WRITE_AGAIN, no_index};
