//! The TOML of a spec with the position of every value, and the folder of the files that it names.

pub(crate) mod folder;
pub(crate) mod toml_reader;
