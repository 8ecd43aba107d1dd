//! Opens files and reads their footers, one or many at a time.

#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod buffer;
mod footer_alone;
pub(crate) mod many;
pub(crate) mod request;
pub(crate) mod source;
pub(crate) mod tail;
