//! Where rows go and how they are written: files, row groups and pages; encodings, codec, statistics.

pub(crate) mod column_compression;
pub(crate) mod file_options;
pub(crate) mod rows;
