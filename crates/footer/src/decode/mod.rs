//! The walk over `FileMetaData`, from the footer's bytes to a [`Footer`](crate::Footer).

pub(crate) mod carried;
pub(crate) mod decoder;
pub(crate) mod file_metadata;
pub(crate) mod groups;
pub(crate) mod scan;
pub(crate) mod tails;
pub(crate) mod trailing_fields;
pub(crate) mod usual;
