//! Finds an installed PostgreSQL, or downloads one.

pub(crate) mod binaries;
pub(crate) mod download;
pub(crate) mod search;
