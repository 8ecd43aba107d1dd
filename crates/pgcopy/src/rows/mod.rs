//! Lays out the rows of a batch and writes its columns side by side, into reusable buffers.

pub(crate) mod buffers;
pub(crate) mod encoder;
pub(crate) mod fields;
pub(crate) mod layout;
pub(crate) mod observer;
#[cfg(test)]
mod one_by_one;
pub(crate) mod valid;
pub(crate) mod write;
