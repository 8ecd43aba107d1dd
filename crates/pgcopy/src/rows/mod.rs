//! Rows: the columns of a batch laid out and written side by side, into buffers that are used again.

pub(crate) mod buffers;
pub(crate) mod encoder;
pub(crate) mod fields;
pub(crate) mod layout;
pub(crate) mod observer;
#[cfg(test)]
mod one_by_one;
pub(crate) mod valid;
pub(crate) mod write;
