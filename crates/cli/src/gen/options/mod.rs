//! The options of `sawmill gen`: which dataset, which rows in which files, and how files are written.

pub(crate) mod dataset_args;
pub(crate) mod file_args;
pub(crate) mod layout_args;
pub(crate) mod like_args;
