//! The destination of files, the files of earlier runs, and writing files completely or not at all.

pub(crate) mod checksum;
pub(crate) mod dataset_files;
pub(crate) mod destination;
pub(crate) mod existing;
pub(crate) mod folder;
pub(crate) mod lock;
pub(crate) mod manifest;
pub(crate) mod process;
pub(crate) mod sink;
pub(crate) mod source_file;
pub(crate) mod unfinished_run;
