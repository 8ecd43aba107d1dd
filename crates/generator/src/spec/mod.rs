//! What a dataset is: a spec read from TOML, checked, explained, and the tree of its fields.

pub(crate) mod civil;
pub(crate) mod dataset;
pub(crate) mod explain;
pub(crate) mod folder;
pub(crate) mod json_schema;
pub(crate) mod literal;
pub(crate) mod logical_type;
pub(crate) mod reader;
pub(crate) mod row_size;
pub(crate) mod toml_reader;
pub(crate) mod wide;
