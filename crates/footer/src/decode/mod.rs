//! The walk over `FileMetaData`, from the footer's bytes to a [`Footer`](crate::Footer).

pub(crate) mod carried;
pub(crate) mod ending;
pub(crate) mod file_metadata;
pub(crate) mod groups;
pub(crate) mod parts;
pub(crate) mod scan;
